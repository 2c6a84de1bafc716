package scheduler

import (
	"errors"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// State goes on when a lenient node fails. The readers of that node then see its stand-in. The graph has what that
// needs: a lenient node holds its inputs until it settles (Node.Holds), and a node on demand also waits for the
// demand.
//
//	onDemand ── a fallback needs it ─▶ waiting
//	running ── Fail, caught ─▶ failed ─┬─ the substitute is there ───────────────────▶ dependents are readied
//	                                   └─ its fallback is needed, runs and succeeds ─▶ dependents are readied

// countOptional counts an optional node that starts (1) or stops (-1) running: the plan waits for it only while a
// required node runs.
func (s *State) countOptional(n *plan.Node, by int) {
	if n.Optional && !s.requires(n.Index) && !s.endless {
		s.optional += by
	}
}

// standFor gives the result of n to the readers of the failed node whose fallback n is, if there is one.
func (s *State) standFor(n *plan.Node, result rowset.RowSet) {
	if n.StandsFor != nil {
		s.stand(n.StandsFor.Index, result)
	}
}

// letGo drops what a node holds.
func (s *State) letGo(n *plan.Node) {
	for _, i := range n.Holds {
		s.read(i)
	}
}

// OnlyOptional reports whether only optional nodes run, and nothing else will start before they have settled. The
// engine then gives them up: it fails each with ErrGivenUp.
func (s *State) OnlyOptional() bool {
	return s.optional > 0 && s.optional == s.inflight && (s.err != nil || s.head == len(s.readyQueue))
}

// catches reports whether the plan goes on without a node that has failed. It does not go on after the deadline of
// the request, or when nobody waits for the answer.
func (s *State) catches(node int, err error, now clock.Time) bool {
	return s.err == nil && s.graph.Nodes[node].Lenient() && !s.requires(node) &&
		!s.deadline.Passed(now) && !errors.Is(err, ErrShuttingDown) && !errors.Is(err, ErrRequestDeadline) && !errors.Is(err, ErrAbandoned) && !errors.Is(err, task.ErrGoexit)
}

// substitute makes the stand-in of a failed node, or starts its fallback.
func (s *State) substitute(node int, err error) (instead plan.OnError, rows int) {
	n := s.graph.Nodes[node]
	if n.OnError == plan.OnErrorFallback {
		s.incomplete = append(s.incomplete, Completeness{Node: n, Status: outcome.NodeFallback, Err: err})
		s.demand(n.Fallback.Index)
		return plan.OnErrorFallback, 0
	}
	status := outcome.NodeFailed
	if errors.Is(err, ErrGivenUp) {
		status = outcome.NodeLate
	}
	s.incomplete = append(s.incomplete, Completeness{Node: n, Status: status, Err: err})
	if n.OnError == plan.OnErrorSkip {
		input := s.nodes[n.Inputs[0]].result
		s.stand(node, input)
		return plan.OnErrorSkip, input.N
	}
	if n.OnError == plan.OnErrorNull {
		value := tasks.Nulls(n, s.graph.Registry, s.nodes[n.Inputs[0]].result)
		s.stand(node, value)
		return plan.OnErrorNull, value.N
	}
	s.stand(node, tasks.Nothing(n, s.graph.Registry, s.results(n.Inputs), s.results(n.Refs)))
	return plan.OnErrorEmpty, 0
}

// stand gives the readers of a failed node its stand-in.
func (s *State) stand(node int, value rowset.RowSet) {
	n := s.graph.Nodes[node]
	if s.notes != nil {
		if n == s.notes.node {
			s.notes.stoodIn = value
		}
		s.notes.standIn(n, s.results(n.Inputs), s.results(n.Refs), value)
	}
	s.letGo(n)
	s.keep(node, value)
	s.readyDependents(n)
	s.standFor(n, value)
}

// results returns the results of nodes, which must be held.
func (s *State) results(nodes []int) []rowset.RowSet {
	all := make([]rowset.RowSet, len(nodes))
	for i, node := range nodes {
		all[i] = s.nodes[node].result
	}
	return all
}

// demand makes a node on demand run, and the nodes that it reads.
func (s *State) demand(node int) {
	s.move(node, onDemand, waiting)
	s.due++
	n := s.graph.Nodes[node]
	for _, deps := range [...][]int{n.Inputs, n.Refs} {
		for _, dep := range deps {
			if s.nodes[dep].status == onDemand {
				s.demand(dep)
			}
		}
	}
	if s.nodes[node].waits--; s.nodes[node].waits == 0 {
		s.markReady(node)
	}
}

// ReportShortfall notes the shortfall that a running node's body has reported. The engine calls it before Succeed.
func (s *State) ReportShortfall(node int, f task.Shortfall) {
	status := outcome.NodeFailed
	switch {
	case f.Dropped > 0:
		status = outcome.NodePartial
	case f.Err == nil:
		status = outcome.NodeOK
	}
	s.incomplete = append(s.incomplete, Completeness{
		Node: s.graph.Nodes[node], Status: status, Dropped: f.Dropped, Err: f.Err, Malformed: f.Malformed,
	})
}
