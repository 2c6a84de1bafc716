package modelserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Inference serves one model by the Open Inference Protocol. Its owner fills in the exported fields before it serves.
// Any goroutine.
type Inference struct {
	Model      string
	Version    string   // empty: the server knows no versions
	Extensions []string // "binary_tensor_data", "schedule_policy"
	// Inputs and Outputs are the metadata. Nil: the metadata does not say.
	Inputs, Outputs []Tensor
	// Infer runs the model. The outputs have the names of Outputs.
	Infer func(inputs map[string]Tensor) ([]Tensor, error)
	// Fault changes an answer before it leaves; nil: none does.
	Fault func(answer *Answer)

	mu       sync.Mutex
	requests []Request
}

// An Answer is what leaves. One goroutine.
type Answer struct {
	Request *http.Request
	Status  int
	Header  http.Header
	Body    []byte
}

// A Request is what an inference request said. Immutable.
type Request struct {
	Parameters map[string]any
	Inputs     map[string]Tensor
	Binary     bool // some tensor came in binary
}

// Requests returns the inference requests so far.
func (s *Inference) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// binaryHeader tells the length of the JSON before the binary data.
const binaryHeader = "Inference-Header-Content-Length"

// ServeHTTP implements http.Handler.
func (s *Inference) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &Answer{Request: r, Status: http.StatusOK, Header: make(http.Header)}
	a.Header.Set("Content-Type", "application/json")
	if err := s.answer(a); err != nil {
		a.Status, a.Header = http.StatusBadRequest, http.Header{"Content-Type": {"application/json"}}
		a.Body, _ = json.Marshal(map[string]string{"error": err.Error()})
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

func (s *Inference) answer(a *Answer) (err error) {
	path, verb := strings.Trim(a.Request.URL.Path, "/"), a.Request.Method
	rest, ofModel := strings.CutPrefix(path, "v2/models/")
	switch {
	case path == "v2" && verb == "GET":
		a.Body, err = json.Marshal(map[string]any{"name": "modelserver", "version": "1", "extensions": append([]string{}, s.Extensions...)})
		return err
	case (path == "v2/health/live" || path == "v2/health/ready") && verb == "GET":
		return nil
	case !ofModel:
		return fmt.Errorf("unknown path %s", a.Request.URL.Path)
	}
	parts := strings.Split(rest, "/")
	name := parts[0]
	parts = parts[1:]
	if name != s.Model {
		return fmt.Errorf("unknown model '%s'", name)
	}
	if len(parts) > 1 && parts[0] == "versions" {
		if parts[1] != s.Version {
			return fmt.Errorf("model '%s' has no version %s", name, parts[1])
		}
		parts = parts[2:]
	}
	switch {
	case len(parts) == 0 && verb == "GET":
		return s.metadata(a)
	case len(parts) == 1 && parts[0] == "ready" && verb == "GET":
		return nil
	case len(parts) == 1 && parts[0] == "infer" && verb == "POST":
		return s.infer(a)
	}
	return fmt.Errorf("unknown path %s", a.Request.URL.Path)
}

func (s *Inference) metadata(a *Answer) (err error) {
	type tensor struct {
		Name     string  `json:"name"`
		Datatype string  `json:"datatype"`
		Shape    []int64 `json:"shape"`
	}
	m := map[string]any{"name": s.Model, "platform": "test"}
	if s.Version != "" {
		m["versions"] = []string{s.Version}
	}
	for member, list := range map[string][]Tensor{"inputs": s.Inputs, "outputs": s.Outputs} {
		if list != nil {
			all := []tensor{}
			for _, t := range list {
				all = append(all, tensor{t.Name, t.Datatype, t.Shape})
			}
			m[member] = all
		}
	}
	a.Body, err = json.Marshal(m)
	return err
}

// A head is the JSON of a tensor in a request or an answer.
type head struct {
	Name       string          `json:"name"`
	Shape      []int64         `json:"shape,omitempty"`
	Datatype   string          `json:"datatype,omitempty"`
	Parameters map[string]any  `json:"parameters,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

func (s *Inference) infer(a *Answer) error {
	body, err := io.ReadAll(a.Request.Body)
	if err != nil {
		return err
	}
	text, rest := body, []byte(nil)
	given := a.Request.Header.Get(binaryHeader)
	binary := slices.Contains(s.Extensions, "binary_tensor_data")
	if given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 0 || n > len(body) || !binary {
			return fmt.Errorf("%s is %s", binaryHeader, given)
		}
		text, rest = body[:n], body[n:]
	}
	var request struct {
		ID         *string        `json:"id"`
		Parameters map[string]any `json:"parameters"`
		Inputs     []head         `json:"inputs"`
		Outputs    []head         `json:"outputs"`
	}
	if err := json.Unmarshal(text, &request); err != nil {
		return fmt.Errorf("failed to parse the request JSON buffer: %w", err)
	}
	if request.Inputs == nil {
		return fmt.Errorf("the request has no inputs")
	}
	got := Request{Parameters: request.Parameters, Inputs: make(map[string]Tensor)}
	for _, h := range request.Inputs {
		t := Tensor{Name: h.Name, Datatype: h.Datatype, Shape: h.Shape}
		if h.Name == "" || h.Shape == nil || h.Datatype == "" {
			return fmt.Errorf("an input lacks name, shape or datatype")
		}
		if size, ok := h.Parameters["binary_data_size"].(float64); ok {
			if given == "" || size < 0 || int(size) > len(rest) {
				return fmt.Errorf("input '%s': the body ends before its %v bytes", h.Name, size)
			}
			if h.Data != nil {
				return fmt.Errorf("input '%s' has data and binary data", h.Name)
			}
			got.Binary = true
			err, rest = t.fromBinary(rest[:int(size)]), rest[int(size):]
		} else {
			err = t.fromJSON(h.Data)
		}
		if err != nil {
			return err
		}
		got.Inputs[t.Name] = t
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes follow the last tensor", len(rest))
	}
	if err := s.check(got.Inputs); err != nil {
		return err
	}
	s.mu.Lock()
	s.requests = append(s.requests, got)
	s.mu.Unlock()
	outputs, err := s.Infer(got.Inputs)
	if err != nil {
		return err
	}
	return s.write(a, request.ID, request.Parameters, request.Outputs, outputs)
}

// check compares the inputs of a request with the metadata.
func (s *Inference) check(inputs map[string]Tensor) error {
	for _, want := range s.Inputs {
		t, ok := inputs[want.Name]
		fits := func(got, want []int64) bool {
			return slices.EqualFunc(got, want, func(g, w int64) bool { return w == -1 || g == w })
		}
		switch {
		case !ok:
			return fmt.Errorf("expected input '%s'", want.Name)
		case t.Datatype != want.Datatype:
			return fmt.Errorf("input '%s' has datatype %s, expected %s", want.Name, t.Datatype, want.Datatype)
		case !fits(t.Shape, want.Shape):
			return fmt.Errorf("input '%s' has shape %v, expected %v", want.Name, t.Shape, want.Shape)
		}
	}
	if s.Inputs != nil && len(inputs) != len(s.Inputs) {
		return fmt.Errorf("expected %d inputs but got %d", len(s.Inputs), len(inputs))
	}
	return nil
}

// write writes the outputs that a request wants, in binary where it says so.
func (s *Inference) write(a *Answer, id *string, parameters map[string]any, wanted []head, outputs []Tensor) error {
	if wanted == nil {
		for _, t := range outputs {
			wanted = append(wanted, head{Name: t.Name})
		}
	}
	answer := map[string]any{"model_name": s.Model}
	if s.Version != "" {
		answer["model_version"] = s.Version
	}
	if id != nil {
		answer["id"] = *id
	}
	heads, raw := []head{}, []byte(nil)
	for _, want := range wanted {
		i := slices.IndexFunc(outputs, func(t Tensor) bool { return t.Name == want.Name })
		if i < 0 {
			return fmt.Errorf("unexpected output '%s'", want.Name)
		}
		t := &outputs[i]
		h := head{Name: t.Name, Shape: t.Shape, Datatype: t.Datatype}
		binary, _ := parameters["binary_data_output"].(bool)
		if own, ok := want.Parameters["binary_data"].(bool); ok {
			binary = own
		}
		if binary && slices.Contains(s.Extensions, "binary_tensor_data") {
			bytes := t.toBinary()
			h.Parameters = map[string]any{"binary_data_size": len(bytes)}
			raw = append(raw, bytes...)
		} else {
			var err error
			if h.Data, err = json.Marshal(t.Data); err != nil {
				return fmt.Errorf("output '%s': %w", t.Name, err)
			}
		}
		heads = append(heads, h)
	}
	answer["outputs"] = heads
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	if raw != nil {
		a.Header.Set(binaryHeader, strconv.Itoa(len(text)))
		a.Header.Set("Content-Type", "application/octet-stream")
	}
	a.Body = append(text, raw...)
	return nil
}
