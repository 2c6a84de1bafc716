package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// MarshalJSON returns the JSON form, which docs/trace.md#the-json-form describes: the Trace, and figures that follow from it,
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
		if err = t.checkIndices(); err == nil {
			err = t.Check()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return t, nil
}

// checkIndices returns an error if an index of a document leads nowhere, or if its nodes wait for each other.
func (t *Trace) checkIndices() error {
	node := func(i int) bool { return 0 <= i && i < len(t.Nodes) }
	ran := 0
	for i := range t.Nodes {
		for _, in := range t.Nodes[i].Inputs {
			if !node(in) {
				return fmt.Errorf("nodes[%d].inputs: no node %d", i, in)
			}
		}
		if t.Nodes[i].Ran() {
			ran++
		}
	}
	for i, track := range t.Tracks {
		for _, s := range track.Slices {
			if !node(s.Node) && (s.Node != -1 || s.Kind != EngineSlice) {
				return fmt.Errorf("tracks[%d].slices: no node %d", i, s.Node)
			}
		}
	}
	for i, f := range t.Flows {
		if !node(f.Node) {
			return fmt.Errorf("flows[%d]: no node %d", i, f.Node)
		}
	}
	for i, timer := range t.Timers {
		if !node(timer.Node) {
			return fmt.Errorf("timers[%d]: no node %d", i, timer.Node)
		}
	}
	if len(t.order()) < ran {
		return errors.New("nodes: inputs form a cycle")
	}
	return nil
}
