package rankd

import (
	"errors"
	"fmt"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/nearest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/scheduler"
)

// NodeStatus says how much of its result a node contributed to an answer.
type NodeStatus = scheduler.NodeStatus

// The statuses of a node in an answer.
const (
	NodeOK       = scheduler.NodeOK       // all of it
	NodePartial  = scheduler.NodePartial  // all but rows whose keys failed
	NodeFallback = scheduler.NodeFallback // it failed, and another node's result took its place
	NodeLate     = scheduler.NodeLate     // it is optional, and the plan did not wait for it any longer
	NodeFailed   = scheduler.NodeFailed   // it failed, or a part of it that it can do without
)

// NodeCompleteness says what one node contributed to an answer.
type NodeCompleteness = request.NodeCompleteness

// Completeness says what each lenient node contributed that was due, and each other node that lacks something, in the
// plan's order. It is nil if the plan has no lenient node and nothing is missing.
func (a *Answer) Completeness() []NodeCompleteness {
	if a.result == nil || a.result.Completeness() == nil {
		return nil
	}
	lenient := a.result.Completeness()
	all := make([]NodeCompleteness, len(lenient))
	for i, c := range lenient {
		all[i] = NodeCompleteness{
			Node: c.Node.ID, Op: c.Node.Op, Label: c.Node.Trace, Status: c.Status, Dropped: c.Dropped, Err: c.Err,
		}
		if c.Status == NodeFallback {
			all[i].Fallback = c.Node.Fallback.ID
		}
		if c.Err != nil {
			all[i].Reason = failureOf(c.Err, textNode).text
		}
	}
	return all
}

// Degraded reports whether something is missing in the answer: Completeness says what.
func (a *Answer) Degraded() bool { return a.result != nil && a.result.Degraded() }

// required returns the indices of the nodes that a request requires, by their ids or labels.
func required(g *plan.Graph, names []string) ([]int, error) {
	if len(names) > request.RequireMax {
		return nil, fmt.Errorf("require must name at most %d nodes, got %d", request.RequireMax, len(names))
	}
	if g == nil {
		return nil, errors.New("require names nodes, and the request has no plan")
	}
	var indices []int
	for _, name := range names {
		found := false
		for _, n := range g.Nodes {
			if n.ID == name || n.Trace != "" && n.Trace == name {
				indices, found = append(indices, n.Index), true
			}
		}
		if !found {
			return nil, unknownNode(g, name)
		}
	}
	return indices, nil
}

func unknownNode(g *plan.Graph, name string) error {
	var known []string
	for _, n := range g.Nodes {
		known = append(known, n.ID)
		if n.Trace != "" {
			known = append(known, n.Trace)
		}
	}
	hint := ""
	if near, ok := nearest.Name(name, known); ok {
		hint = "; did you mean " + excerpt.Quote(near) + "?"
	}
	return fmt.Errorf("require names the node %s, and plan %s has none of that id or label%s", excerpt.Quote(name), excerpt.Quote(g.Name), hint)
}
