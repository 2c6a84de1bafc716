package reference

import (
	_ "embed" // for examples.json
	"encoding/json"
)

// An Example is a plan that uses a task, as it runs. Immutable once built; any goroutine.
type Example struct {
	TypeScript string          `json:"typescript"`        // the whole source
	Items      string          `json:"items,omitempty"`   // the source of the plan items, whose rows the plan reads; none: it reads no such
	Redis      []string        `json:"redis,omitempty"`   // commands that fill an empty Redis; none: the demo data
	Service    string          `json:"service,omitempty"` // what the service answers; none: nobody asks one
	Request    json.RawMessage `json:"request"`
	Artifact   json.RawMessage `json:"artifact"` // without the places in the source
	Answer     json.RawMessage `json:"answer"`   // the candidates
}

//go:embed examples.json
var examplesJSON []byte

// Examples returns the examples by op.
func Examples() map[string]Example {
	all := make(map[string]Example)
	if err := json.Unmarshal(examplesJSON, &all); err != nil {
		panic(err) // a test writes the file, and reads it
	}
	return all
}
