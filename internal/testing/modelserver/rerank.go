package modelserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Style says whose format a Rerank speaks.
type Style string

// The styles.
const (
	Cohere Style = "cohere" // documents; results[].relevance_score, and a model is required
	VLLM   Style = "vllm"   // the same with the documents in the results, and the model is optional
	TEI    Style = "tei"    // texts, truncate; a bare array of {index, score}
	SGLang Style = "sglang" // documents; a bare array of {index, score, document}; blank documents are refused
)

// Rerank serves a reranking model. Its owner fills in the exported fields before it serves. Any goroutine.
type Rerank struct {
	Style Style
	// MaxBatch is the most documents of a call; zero: any number.
	MaxBatch int
	// MaxBytes is the longest document, unless the request lets the server cut it; zero: any.
	MaxBytes int
	// Score scores a document. Nil: WordsInCommon.
	Score func(query, document string) any
	// Fault changes an answer before it leaves; nil: none does.
	Fault func(answer *Answer)

	mu       sync.Mutex
	requests []map[string]any
}

// Requests returns the requests so far.
func (s *Rerank) Requests() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// WordsInCommon returns the share of the words of the query that a document has.
func WordsInCommon(query, document string) any {
	words := strings.Fields(strings.ToLower(query))
	have, n := strings.Fields(strings.ToLower(document)), 0
	for _, w := range words {
		if slices.Contains(have, w) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(words)))
}

// refusal is an error status. Immutable.
type refusal struct {
	status int
	text   string
}

// ServeHTTP implements http.Handler.
func (s *Rerank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &Answer{Request: r, Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}}
	if bad := s.answer(a); bad != nil {
		a.Status = bad.status
		a.Body, _ = json.Marshal(map[string]string{"error": bad.text})
	}
	if s.Fault != nil {
		s.Fault(a)
	}
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

func (s *Rerank) answer(a *Answer) *refusal {
	body, err := io.ReadAll(a.Request.Body)
	if err != nil {
		return &refusal{http.StatusBadRequest, err.Error()}
	}
	var request map[string]any
	if a.Request.Method != http.MethodPost || json.Unmarshal(body, &request) != nil {
		return &refusal{http.StatusUnprocessableEntity, "not a request"}
	}
	s.mu.Lock()
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	member := "documents"
	if s.Style == TEI {
		member = "texts"
	}
	query, ok := request["query"].(string)
	list, isList := request[member].([]any)
	_, hasModel := request["model"].(string)
	switch {
	case !ok || !isList || s.Style == Cohere && !hasModel:
		return &refusal{http.StatusUnprocessableEntity, "a required field is missing"}
	case s.Style == SGLang && strings.TrimSpace(query) == "":
		return &refusal{http.StatusBadRequest, "Query cannot be empty or whitespace only"}
	case len(list) == 0:
		return &refusal{http.StatusBadRequest, "Documents cannot be empty"}
	case s.MaxBatch > 0 && len(list) > s.MaxBatch:
		return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("batch size %d > maximum allowed batch size %d", len(list), s.MaxBatch)}
	}
	type ranked struct {
		index    int
		document string
		score    any
	}
	var all []ranked
	truncate, _ := request["truncate"].(bool)
	for i, item := range list {
		text, ok := item.(string)
		switch {
		case !ok:
			return &refusal{http.StatusUnprocessableEntity, "a document is no string"}
		case s.Style == SGLang && strings.TrimSpace(text) == "":
			return &refusal{http.StatusBadRequest, "Each document cannot be empty or whitespace only"}
		case s.MaxBytes > 0 && len(text) > s.MaxBytes && !truncate:
			return &refusal{http.StatusRequestEntityTooLarge, "a document is too long"}
		}
		score := s.Score
		if score == nil {
			score = WordsInCommon
		}
		all = append(all, ranked{i, text, score(query, text)})
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		x, _ := a.score.(float64)
		y, _ := b.score.(float64)
		return cmp.Compare(y, x)
	})
	results := []map[string]any{}
	for _, r := range all {
		result := map[string]any{"index": r.index}
		switch s.Style {
		case TEI:
			result["score"] = r.score
		case SGLang:
			result["score"], result["document"], result["meta_info"] = r.score, r.document, map[string]any{}
		case VLLM:
			result["relevance_score"], result["document"] = r.score, map[string]any{"text": r.document}
		default:
			result["relevance_score"] = r.score
		}
		results = append(results, result)
	}
	var answer any = results
	if s.Style == Cohere || s.Style == VLLM {
		answer = map[string]any{"id": "1", "results": results, "meta": map[string]any{}}
	}
	a.Body, err = json.Marshal(answer)
	if err != nil {
		return &refusal{http.StatusInternalServerError, err.Error()}
	}
	return nil
}
