package builtin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/testing/modelserver"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

func rerankHead(lines string) string {
	return "url = \"ADDRESS/rerank\"\ndialect = \"rerank\"\npolicy.request_timeout_ms = 30000\n[endpoint.rerank]\nquery = \"{q}\"\n" + lines + "\n"
}

// documents are rows with titles, in another order than their batch.
func documents() rowset.RowSet {
	rows := rankdtest.WithStrings(rankdtest.Rows(1, 2, 3, 4, 5), 3001, "red shoes", nil, "  ", "blue {q} shoes", "hidden")
	rows = rankdtest.WithInts(rows, 5001, int64(10), nil, nil, int64(40), int64(50))
	return rankdtest.Select(rows, 3, 0, 1, 2)
}

// Each server gets what its format says, and its scores go to the rows whose documents they are of.
func TestRerank(t *testing.T) {
	for style, lines := range map[modelserver.Style]string{
		modelserver.Cohere: `model = "rerank-v3.5"`, modelserver.VLLM: "", modelserver.SGLang: "", modelserver.TEI: "texts = true",
	} {
		t.Run(string(style), func(t *testing.T) {
			s := &modelserver.Rerank{Style: style, MaxBytes: 14}
			if style != modelserver.TEI { // which cuts
				s.MaxBytes = 0
			}
			k := modelCase(t, s, rerankHead(lines+"\ndocument = \"{s1}\""), documents(), "f2")
			k.Context = map[string]any{"q": "Red {s1} shoes \"x\""}
			var shortfall task.Shortfall
			k.Shortfall = &shortfall
			out, err := rankdtest.Run(specNamed(t, "remote"), k)
			require.NoError(t, err)
			assert.Equal(t, []any{0.25, 0.5, nil, nil}, rankdtest.Values(out, 1002))
			assert.Nil(t, shortfall.Malformed, "a row without a document has no score by right")
			require.Len(t, s.Requests(), 1)
			list := "documents"
			want := map[string]any{"query": "Red {s1} shoes \"x\""}
			switch style {
			case modelserver.TEI:
				list, want["truncate"] = "texts", true
			case modelserver.Cohere:
				want["model"] = "rerank-v3.5"
			}
			want[list] = []any{"blue {q} shoes", "red shoes"}
			assert.Equal(t, want, s.Requests()[0])
		})
	}
}

// A template has columns, literals and parameters. A row none of whose columns has a value has no document, whatever the literals say.
func TestRerankDocuments(t *testing.T) {
	s := &modelserver.Rerank{Style: modelserver.VLLM, Score: func(string, string) any { return 1.5 }}
	k := modelCase(t, s, rerankHead(`document = "{{Title}}: {s1}, {i1} for {user}"`), documents(), "f2")
	k.Context = map[string]any{"q": "x"}
	out, err := rankdtest.Run(specNamed(t, "remote"), k)
	require.NoError(t, err)
	assert.Equal(t, []any{1.5, 1.5, nil, nil}, rankdtest.Values(out, 1002))
	assert.Equal(t, []any{"{Title}: blue {q} shoes, 40 for 9", "{Title}: red shoes, 10 for 9"}, s.Requests()[0]["documents"])
}

// With pointwise, more rows are more calls, each with its own indices. A call that fails makes the node fail.
func TestRerankInBatches(t *testing.T) {
	var titles []any
	var ids []int64
	for i := range 7 {
		titles, ids = append(titles, fmt.Sprint("d", i)), append(ids, int64(i))
	}
	titles[2] = nil
	rows := rankdtest.WithStrings(rankdtest.Rows(ids...), 3001, titles...)
	calls := 0
	s := &modelserver.Rerank{Style: modelserver.VLLM, MaxBatch: 2, Score: func(_, document string) any { return float64(document[1] - '0') }}
	k := modelCase(t, s, rerankHead("document = \"{s1}\"\nmax_batch = 2\npointwise = true"), rows, "f2")
	k.Context = map[string]any{"q": "x"}
	out, err := rankdtest.Run(specNamed(t, "remote"), k)
	require.NoError(t, err)
	assert.Equal(t, []any{0.0, 1.0, nil, 3.0, 4.0, 5.0, 6.0}, rankdtest.Values(out, 1002))
	assert.Len(t, s.Requests(), 3)
	for _, bad := range []int{1, 2, 3} {
		calls = 0
		s.Fault = func(a *modelserver.Answer) {
			if calls++; calls == bad {
				a.Status, a.Body = http.StatusInternalServerError, []byte("broken")
			}
		}
		_, err = rankdtest.Run(specNamed(t, "remote"), k)
		require.ErrorIs(t, err, task.ErrRemote, bad)
		require.ErrorContains(t, err, "status: 500: broken")
	}
}

// Answers with too few results, with bad ones, and with wrong ones.
func TestRerankAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   []any
		bad    int
		first  string
		err    string
	}{
		"ranked":            {`{"results":[{"index":1,"relevance_score":0.5},{"index":0,"relevance_score":-2e-3}]}`, []any{-2e-3, 0.5}, 0, "", ""},
		"an array":          {`[{"score":0.5,"index":1},{"index":0,"score":1}]`, []any{1.0, 0.5}, 0, "", ""},
		"too few":           {`[{"index":1,"score":0.5}]`, []any{nil, 0.5}, 1, "none: the answer has no result for it", ""},
		"NaN":               {`[{"index":1,"score":0.5},{"index":0,"score":"NaN"}]`, []any{nil, 0.5}, 1, `"NaN"`, ""},
		"null":              {`[{"index":1,"score":0.5},{"index":0,"score":null}]`, []any{nil, 0.5}, 1, `null`, ""},
		"huge":              {`[{"index":1,"score":0.5},{"index":0,"score":1e999}]`, []any{nil, 0.5}, 1, `1e999`, ""},
		"none":              {`[]`, nil, 0, "", "columns.f2 has no value of type float: none: the answer has no result for it is none"},
		"twice":             {`[{"index":1,"score":0.5},{"index":1,"score":1}]`, nil, 0, "", "[1].index is 1, which has come before"},
		"out of range":      {`{"results":[{"index":2,"relevance_score":0.5}]}`, nil, 0, "", "results[0].index is \"2\", must be an integer from 0 to 1"},
		"negative":          {`[{"index":-1,"score":0.5}]`, nil, 0, "", "must be an integer from 0 to 1"},
		"a half":            {`[{"index":0.5,"score":0.5}]`, nil, 0, "", "must be an integer from 0 to 1"},
		"no index":          {`[{"score":0.5}]`, nil, 0, "", "must be an integer from 0 to 1"},
		"the other member":  {`{"results":[{"index":1,"score":0.5}]}`, nil, 0, "", "results[0] has no relevance_score"},
		"the other member2": {`[{"index":1,"relevance_score":0.5}]`, nil, 0, "", "has no score"},
		"no results":        {`{"error":"busy"}`, nil, 0, "", "results is missing"},
		"results twice":     {`{"results":[{"index":1,"relevance_score":0.5}],"results":[]}`, nil, 0, "", "results is there twice"},
		"half":              {`[{"index":1`, nil, 0, "", "not JSON"},
		"more":              {`[] []`, nil, 0, "", "something follows"},
		"a text":            {`"x"`, nil, 0, "", "must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &modelserver.Rerank{Style: modelserver.VLLM, Fault: func(a *modelserver.Answer) { a.Body = []byte(c.answer) }}
			k := modelCase(t, s, rerankHead(`document = "{s1}"`), rankdtest.WithStrings(rankdtest.Rows(1, 2), 3001, "a", "b"), "f2")
			k.Context = map[string]any{"q": "x"}
			var shortfall task.Shortfall
			k.Shortfall = &shortfall
			out, err := rankdtest.Run(specNamed(t, "remote"), k)
			if c.err != "" {
				require.ErrorIs(t, err, task.ErrRemote)
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, rankdtest.Values(out, 1002))
			if c.bad == 0 {
				assert.Nil(t, shortfall.Malformed)
				return
			}
			assert.Equal(t, task.MalformedIDs{Count: c.bad, Of: 2, First: c.first, Key: "f2", Values: true}, *shortfall.Malformed)
		})
	}
}

// A document that is too long costs its row. Without documents nobody is asked, and without a query the node fails.
func TestRerankWithoutDocuments(t *testing.T) {
	s := &modelserver.Rerank{Style: modelserver.SGLang, MaxBytes: 5}
	tables := rerankHead("document = \"{s1}\"\nmax_document_bytes = 5")
	run := func(q string, titles ...any) ([]any, *task.MalformedIDs, error) {
		ids := make([]int64, len(titles))
		for i := range ids {
			ids[i] = int64(i)
		}
		k := modelCase(t, s, tables, rankdtest.WithStrings(rankdtest.Rows(ids...), 3001, titles...), "f2")
		k.Context = map[string]any{"q": q}
		var shortfall task.Shortfall
		k.Shortfall = &shortfall
		out, err := rankdtest.Run(specNamed(t, "remote"), k)
		if err != nil {
			return nil, nil, err
		}
		return rankdtest.Values(out, 1002), shortfall.Malformed, nil
	}
	values, told, err := run("a", "a", "aaaaaaaa", "b")
	require.NoError(t, err)
	assert.Equal(t, []any{1.0, nil, 0.0}, values)
	assert.Equal(t, &task.MalformedIDs{Count: 1, Of: 3, First: "none: its document has 8 bytes", Key: "f2", Values: true}, told)
	asked := len(s.Requests())
	values, told, err = run("a", nil, " ")
	require.NoError(t, err)
	assert.Equal(t, []any{nil, nil}, values)
	assert.Nil(t, told)
	_, _, err = run(" ", "a")
	require.ErrorIs(t, err, task.ErrInvalid)
	require.ErrorContains(t, err, "the query is empty")
	assert.Len(t, s.Requests(), asked)
}

// Tables and nodes that do not fit each other are refused when the plan loads.
func TestRerankersThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		lines  string
		column any
		want   string
	}{
		{`document = "{nothing}"`, "f2", "rerank.document: {nothing} is neither"},
		{`document = "{s1"`, "f2", "has a single {"},
		{`document = "x {q}"`, "f2", "rerank.document has no column"},
		{`document = "{f1}"`, "f2", "{f1} is a column of type float"},
		{`document = "{s1}"`, "i1", "a reranker gives one score"},
	} {
		_, err := rankdtest.Run(specNamed(t, "remote"), modelCase(t, http.NotFoundHandler(), rerankHead(c.lines), documents(), c.column))
		require.ErrorContains(t, err, "nodes[0].params", c.lines)
		require.ErrorContains(t, err, c.want, c.lines)
	}
	head := strings.Replace(rerankHead(`document = "{s1}"`), `"{q}"`, `"like {id}"`, 1)
	_, err := rankdtest.Run(specNamed(t, "remote"), modelCase(t, http.NotFoundHandler(), head, documents(), "f2"))
	require.ErrorContains(t, err, "rerank.query names a row with {id}")
}

// Whatever a reranker answers, the result is an error of one line or a score or a null for each row.
func FuzzRerankAnswer(f *testing.F) {
	for _, answer := range []string{`[{"index":1,"score":0.5},{"index":0,"score":null}]`, `{"results":[{"index":0,"relevance_score":1e400}]}`, `{"results":[`} {
		f.Add(answer)
	}
	reg, err := registry.Load(modelTables(strings.ReplaceAll(rerankHead(`document = "{s1}"`), "ADDRESS", "http://h")).FS(), "test")
	require.NoError(f, err)
	spec := specNamed(f, "remote")
	f.Fuzz(func(t *testing.T, answer string) {
		c := rankdtest.Case{Params: map[string]any{"endpoint": "ep_0002", "columns": []any{"f2"}}, Registry: reg, Context: map[string]any{"q": "x"},
			Inputs:  rankdtest.Inputs(rankdtest.WithStrings(rankdtest.Rows(1, 2), 3001, "a", "b")),
			Service: func([]byte) ([]byte, error) { return []byte(answer), nil }}
		out, err := rankdtest.Run(spec, c)
		if err != nil {
			require.NotErrorIs(t, err, task.ErrPanic)
			require.NotErrorIs(t, err, task.ErrContract)
			return
		}
		require.NoError(t, out.Validate())
		require.Equal(t, 2, out.Len())
	})
}

// A query none of whose marks has a value fails the node, whatever its literals say.
func TestRerankWithoutQuery(t *testing.T) {
	for _, c := range []struct {
		query string
		q     any
		want  string // "": the node fails
	}{
		{"Query: {q}", nil, ""}, {"Query: {q}", "", ""}, {"Query: {q}", " \t", ""}, {"{q}", nil, ""}, {"Query: {q}", "shoes", "Query: shoes"},
		{"{q} at {hour}", nil, "at 18"}, {"Query: {user}", nil, "Query: 9"}, {"shoes", nil, "shoes"},
	} {
		s := &modelserver.Rerank{Style: modelserver.VLLM}
		k := modelCase(t, s, strings.Replace(rerankHead(`document = "{s1}"`), "{q}", c.query, 1), documents(), "f2")
		k.RequestParams = map[string]any{"hour": int64(18)}
		if c.q != nil {
			k.Context = map[string]any{"q": c.q}
		}
		_, err := rankdtest.Run(specNamed(t, "remote"), k)
		if c.want == "" {
			require.ErrorIs(t, err, task.ErrInvalid, c)
			require.ErrorContains(t, err, "the query is empty", c)
			assert.Empty(t, s.Requests(), c)
			continue
		}
		require.NoError(t, err, c)
		assert.Equal(t, c.want, strings.TrimSpace(s.Requests()[0]["query"].(string)))
	}
}

// A request that becomes too large is given up before it is made; of several, each has the bound for itself.
func TestRerankTooLarge(t *testing.T) {
	for lines, ok := range map[string]bool{"": false, "pointwise = true\nmax_batch = 1": true} {
		s := &modelserver.Rerank{Style: modelserver.VLLM}
		head := strings.Replace(rerankHead("document = \"{s1}\"\n"+lines), "policy.", "policy.max_request_bytes = 300\npolicy.", 1)
		title := strings.Repeat("x", 150)
		k := modelCase(t, s, head, rankdtest.WithStrings(rankdtest.Rows(1, 2, 3), 3001, title, title, title), "f2")
		k.Context = map[string]any{"q": "x"}
		_, err := rankdtest.Run(specNamed(t, "remote"), k)
		if ok {
			require.NoError(t, err)
			assert.Len(t, s.Requests(), 3)
			continue
		}
		require.ErrorIs(t, err, remote.ErrTooLarge)
		require.ErrorIs(t, err, task.ErrRemote)
		require.ErrorContains(t, err, "too large: the request has more than 300 bytes")
		assert.Empty(t, s.Requests())
	}
}
