package trace

import (
	"encoding/json"
	"fmt"
	"time"
)

// MarshalJSON returns the JSON form, which docs/reference/trace-format.md describes: the Trace, and figures that follow from it,
// for readers that do not compute.
func (t *Trace) MarshalJSON() ([]byte, error) {
	type plain Trace // without this method
	type node struct {
		*Node
		Wait time.Duration `json:"wait_ns"`
		Run  time.Duration `json:"run_ns"`
		Own  time.Duration `json:"own_ns"`
	}
	document := struct {
		*plain
		Nodes    []node          `json:"nodes"` // in place of Trace.Nodes
		Critical map[string]Path `json:"critical_path"`
		Gaps     []Segment       `json:"gaps"`
	}{
		plain: (*plain)(t), Nodes: make([]node, len(t.Nodes)), Gaps: t.Gaps(),
		Critical: map[string]Path{string(Latency): t.CriticalPath(Latency), string(Service): t.CriticalPath(Service)},
	}
	own := t.Own()
	for i := range t.Nodes {
		n := &t.Nodes[i]
		document.Nodes[i] = node{n, n.Wait(), n.Run(), own[i]}
	}
	return json.Marshal(&document)
}

// Decode reads the JSON form. It refuses another version, and a document that fails Check.
func Decode(doc []byte) (*Trace, error) {
	t := new(Trace)
	err := json.Unmarshal(doc, t)
	switch {
	case err != nil:
	case t.Version != Version:
		err = fmt.Errorf("version %d, and this program reads version %d", t.Version, Version)
	default:
		err = t.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return t, nil
}
