package joinlog

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/internal/served"
)

// servedLine is what a join takes of a line: docs/served-log.md has all members.
type servedLine struct {
	Version     int            `json:"served_log"`
	Request     string         `json:"engine_request_id"`
	Time        string         `json:"time"`
	User        jsontext.Value `json:"user_id"`
	Delivered   *bool          `json:"delivered"`
	Traffic     string         `json:"traffic"`
	Probability jsontext.Value `json:"probability"`
	Outputs     []servedOutput `json:"outputs"`

	at time.Time
}

type servedOutput struct {
	Name    string                      `json:"name"`
	IDs     []jsontext.Value            `json:"ids"`
	Absent  []int                       `json:"absent"`
	Columns map[string][]jsontext.Value `json:"columns"`
	Made    map[string][]jsontext.Value `json:"made"`

	texts []jsondoc.Text // of IDs
}

// parseServed reads a line. Of another version it reads that only.
func parseServed(text []byte) (l servedLine, err error) {
	var version struct {
		Version int `json:"served_log"`
	}
	if err := json.Unmarshal(text, &version); err != nil || version.Version != served.Version {
		return servedLine{Version: version.Version}, err
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return l, err
	}
	if l.Request == "" || l.Delivered == nil {
		return l, errors.New("engine_request_id or delivered is missing")
	}
	if l.at, err = parseTime(l.Time); err != nil {
		return l, err
	}
	for i := range l.Outputs {
		o := &l.Outputs[i]
		o.texts = make([]jsondoc.Text, len(o.IDs))
		for k := range o.IDs {
			if err := o.texts[k].UnmarshalJSON(o.IDs[k]); err != nil {
				return l, fmt.Errorf("output %d: an id %w", i, err)
			}
		}
		for _, columns := range [...]map[string][]jsontext.Value{o.Columns, o.Made} {
			for name, values := range columns {
				if len(values) != len(o.IDs) {
					return l, fmt.Errorf("output %d has %d ids, and %d values of column %q", i, len(o.IDs), len(values), name)
				}
			}
		}
	}
	return l, nil
}
