package inference

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/registry"
)

// ErrDiffers: the model has other tensors than the table of its endpoint.
var ErrDiffers = errors.New("the table and the model differ")

// metadata is what a server says of its model, as far as it counts here.
type metadata struct {
	Inputs  []registry.Tensor `json:"inputs"`
	Outputs []registry.Tensor `json:"outputs"`
}

// Describe returns the remote.Options.Describe of an endpoint, which returns the text of a Known; nil for one of another dialect. It fails if the
// model does not take and give the tensors of the endpoint, and names both sides.
func Describe(ep *registry.Endpoint) func(get func(path string) ([]byte, error)) (string, error) {
	if ep.Service.Dialect != registry.OpenInference {
		return nil
	}
	return func(get func(path string) ([]byte, error)) (string, error) {
		server, model, _ := ep.Service.ModelPaths()
		var known Known
		body, err := get(server)
		var about struct {
			Extensions []string `json:"extensions"`
		}
		switch {
		case tellsNothing(err): // It has no extension to tell of.
		case err != nil:
			return "", err
		case json.Unmarshal(body, &about) != nil:
			return "", remote.Malformedf("%s does not say what the server is", server)
		}
		known.Binary = slices.Contains(about.Extensions, "binary_tensor_data")
		known.Timeout = slices.Contains(about.Extensions, "schedule_policy")
		if body, err = get(model); err != nil {
			return "", err
		}
		var m metadata
		if err := json.Unmarshal(body, &m); err != nil {
			return "", remote.Malformedf("%s does not say what the model is: %w", model, err)
		}
		if err := m.compare(&ep.Service, known); err != nil {
			return "", remote.Malformedf("endpoint %s, %s: %w: %w", ep.Name, model, ErrDiffers, err)
		}
		return known.String(), nil
	}
}

// tellsNothing reports whether a server does not have the request for what it is. One that fails for another reason is asked again: it may have
// extensions, without which rows with nulls are left out.
func tellsNothing(err error) bool {
	var status *remote.StatusError
	return errors.As(err, &status) && slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, status.Code)
}

// compare returns where the model differs from the tables. A model that does not tell of its inputs, or outputs, does not differ there.
func (m *metadata) compare(s *registry.Service, known Known) error {
	for i := range s.Inputs {
		t := &s.Inputs[i]
		if t.Datatype == "FP16" && !known.Binary {
			return fmt.Errorf("input %s is FP16, which only the extension binary_tensor_data can carry, and the server does not have it", errtext.Quote(t.Name))
		}
		if err := m.find("input", m.Inputs, t, true); err != nil {
			return err
		}
	}
	for i := range m.Inputs {
		if name := m.Inputs[i].Name; !slices.ContainsFunc(s.Inputs, func(t registry.Tensor) bool { return t.Name == name }) {
			return fmt.Errorf("the model takes an input %s, and the table has none", errtext.Quote(name))
		}
	}
	for i := range s.Outputs {
		if err := m.find("output", m.Outputs, &s.Outputs[i], false); err != nil {
			return err
		}
	}
	return nil
}

// find compares a tensor of the table with the one of its name.
func (m *metadata) find(what string, list []registry.Tensor, t *registry.Tensor, exact bool) error {
	if list == nil {
		return nil
	}
	name := errtext.Quote(t.Name)
	i := slices.IndexFunc(list, func(o registry.Tensor) bool { return o.Name == t.Name })
	if i < 0 {
		return fmt.Errorf("the table has an %s %s, and the model has none", what, name)
	}
	theirs, ours := list[i].Shape, t.Shape
	if !exact { // [n] and [n, 1] are the same elements.
		theirs, ours = flat(theirs), flat(ours)
	}
	fits := func(our, their int64) bool { return their == -1 || our == their }
	if list[i].Datatype != t.Datatype || !slices.EqualFunc(ours, theirs, fits) {
		return fmt.Errorf("%s %s is %s %v in the table, and %s %v in the model", what, name, t.Datatype, t.Shape, errtext.Text(list[i].Datatype), list[i].Shape)
	}
	return nil
}

// flat returns a shape without a last dimension of 1 behind the rows.
func flat(shape []int64) []int64 {
	if len(shape) == 2 && shape[1] == 1 {
		return shape[:1]
	}
	return shape
}
