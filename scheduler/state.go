package scheduler

import (
	"slices"

	"fmt"
	"time"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
)

// nodeStatus is the state of a node. Each transition has one function below.
type nodeStatus uint8

const (
	waiting  nodeStatus = iota // some dependency is not done
	ready                      // in the ready queue
	running                    // handed out by Next, not settled
	done                       // settled with a result
	failed                     // settled with an error
	skipped                    // handed out and not run
	onDemand                   // runs only if a fallback needs it: see lenient.go
)

// State is the DAG state machine of one request. It is pure: it does no I/O, reads no clock and
// starts no goroutine. An engine asks Next which node to start, runs the node at a place of its
// choice, and reports the outcome to Succeed or Fail.
//
//	waiting ── last dependency done ─▶ ready ── Next ─▶ running ─┬─ Succeed ─▶ done
//	                                                             ├─ Fail ────▶ failed
//	                                                             └─ Skip ────▶ skipped
//
// Fail-fast: after the first error Next hands out nothing more, and the request is finished once
// no node is in flight.
//
// One goroutine at a time: the loop in the Async engine. The bounds stay from Begin to Release.
type State struct {
	bounds
	graph *plan.Graph
	notes *notes // what the request wants to know of its nodes; nil: nothing
	nodes []nodeState
	now   clock.Time // the latest instant reported to s: see Tell

	// readyQueue is FIFO. Invariant: readyQueue[head:] are the nodes that are ready.
	readyQueue []int32
	head       int

	inflight int   // running nodes
	settled  int   // done, failed and skipped nodes
	due      int   // nodes that have to settle: all but those on demand
	errNode  int   // the node of err
	err      error // the first error; never changes once set

	optional   int               // optional nodes among those that run
	ids        *rowset.IDDict    // the ids that are texts; nil: none are
	incomplete []Completeness    // what is missing in the answer so far
	cached     []rowcache.Use    // by node, what it has taken from memory; empty: no node has
	services   map[string]string // see Result.Services
}

type nodeState struct {
	status nodeStatus
	waits  int32 // deps_remaining: dependencies not done, one per edge, and the demand for a node on demand
	// readers is the number of reads of the result that are still to come: see plan.Node.Readers.
	readers int32
	ready   clock.Time // when it became ready; for the first nodes, when the request was admitted
	result  rowset.RowSet
}

// Begin prepares s for a request, reusing its memory. nodeTimeout bounds each node; zero means no bound. The notes are made of n, which is
// the request's while bodies run for it.
func (s *State) Begin(x *Execution, nodeTimeout time.Duration, n *notes) {
	s.Reset(x.Graph, x.arrived, x.Deadline)
	s.nodeTimeout, s.required, s.notes = nodeTimeout, x.Required, notesFor(n, x)
	s.ids, s.endless = x.Params.IDs(), x.Capture != nil && x.Capture.Play != nil
	x.apportion(&s.bounds)
	if x.delay > 0 || x.resumed > 0 { // The first nodes are not ready before the request is admitted.
		s.Tell(max(x.arrived.Add(x.delay), x.resumed))
		for _, i := range x.Graph.Sources {
			s.nodes[i].ready = s.now
		}
	}
}

// Reset prepares s for a new run of g, reusing its memory. The request arrived
// at that time and has until deadline (zero: no limit).
func (s *State) Reset(g *plan.Graph, arrived, deadline clock.Time) {
	n := len(g.Nodes)
	if cap(s.nodes) < n {
		s.nodes = make([]nodeState, n)
		s.readyQueue = make([]int32, 0, n)
	}
	*s = State{
		bounds: bounds{arrived: arrived, deadline: deadline, answerBy: shareOf(g.AnswerBy, arrived, deadline)}, graph: g, now: arrived, due: g.Due,
		nodes: s.nodes[:n], readyQueue: s.readyQueue[:0], cached: s.cached[:0],
	}
	for i, node := range g.Nodes {
		s.nodes[i] = nodeState{waits: int32(node.Waits), readers: int32(node.Readers)}
		if node.OnDemand {
			s.nodes[i].status = onDemand
		}
	}
	for _, i := range g.Sources {
		s.markReady(i)
	}
}

// noteCached notes what a node has taken from memory.
func (s *State) noteCached(node int, use rowcache.Use) {
	if len(s.cached) == 0 {
		s.cached = slices.Grow(s.cached, len(s.nodes))[:len(s.nodes)]
		clear(s.cached)
	}
	s.cached[node] = use
}

// noteService notes the version of the service that a node has asked.
func (s *State) noteService(n *plan.Node, version string) {
	if s.services == nil {
		s.services = make(map[string]string)
	}
	s.services[n.ID] = version
}

// Tell reports the time. Nodes become ready at the latest instant that s knows, from this method or from the argument
// of another one.
func (s *State) Tell(now clock.Time) { s.now = max(s.now, now) }

// ReadyAt returns when a node that was handed out had become ready.
func (s *State) ReadyAt(node int) clock.Time { return s.nodes[node].ready }

// Release drops all results, so that a State kept for reuse holds no rows.
func (s *State) Release() {
	clear(s.nodes)
	*s = State{nodes: s.nodes, readyQueue: s.readyQueue, cached: s.cached}
}

// Ready reports whether some node is ready.
func (s *State) Ready() bool { return s.head < len(s.readyQueue) }

// Next hands out the next node to start and counts it as in flight. It returns false if none is
// ready or the request has failed.
func (s *State) Next() (node int, ok bool) {
	if s.err != nil || s.head == len(s.readyQueue) {
		return 0, false
	}
	node = int(s.readyQueue[s.head])
	s.head++
	s.markRunning(node)
	return node, true
}

// Rows returns how many active rows a node will read. An engine calls it before Gather.
func (s *State) Rows(node int) (rows int) {
	n := s.graph.Nodes[node]
	for _, i := range n.Inputs {
		rows += s.nodes[i].result.N
	}
	for _, i := range n.Refs {
		rows += s.nodes[i].result.N
	}
	return rows
}

// Gather appends the results of a node's inputs to inputs, and the results of its node references
// to refs. An engine calls it once per run of a node, right after Next: State drops a result when
// its last reader has gathered it.
func (s *State) Gather(node int, inputs, refs []rowset.RowSet) (in, ref []rowset.RowSet) {
	n := s.graph.Nodes[node]
	for _, i := range n.Inputs {
		inputs = append(inputs, s.read(i))
	}
	if len(n.Refs) > 0 {
		for _, i := range n.Refs {
			refs = append(refs, s.read(i))
		}
	}
	return inputs, refs
}

func (s *State) read(node int) rowset.RowSet {
	n := &s.nodes[node]
	result := n.result
	if n.readers--; n.readers == 0 {
		n.result = rowset.RowSet{}
	}
	return result
}

// Succeed settles a running node with its result and readies the dependents that waited only for
// this node.
func (s *State) Succeed(node int, result rowset.RowSet) {
	n := s.graph.Nodes[node]
	s.markDone(n)
	s.keep(node, result)
	s.readyDependents(n)
	s.standFor(n, result)
}

// readyDependents readies the dependents that waited only for a node, which has its result now, or a stand-in.
func (s *State) readyDependents(n *plan.Node) {
	for _, succ := range n.Succs {
		if s.nodes[succ].waits--; s.nodes[succ].waits == 0 {
			s.markReady(succ)
		}
	}
}

// Follower returns the dependent of a running node that waits for it alone, if it has no other dependent.
func (s *State) Follower(node int) (next int, ok bool) {
	succs := s.graph.Nodes[node].Succs
	if len(succs) != 1 || s.nodes[succs[0]].waits != 1 || s.err != nil {
		return 0, false
	}
	return succs[0], true
}

// Continue is Succeed for a node with a Follower, and then Next for the follower, which bypasses the ready queue.
func (s *State) Continue(node int, result rowset.RowSet) (next int) {
	s.keep(node, result)
	return s.passOn(node)
}

// Advance settles a node of a chain whose only dependent has begun meanwhile, and returns the
// dependent. The result has gone to it directly.
func (s *State) Advance(node int) (next int) {
	s.nodes[node].readers--
	return s.passOn(node)
}

// passOn settles a node with its result and hands out its only dependent, which waits for nothing else.
func (s *State) passOn(node int) (next int) {
	n := s.graph.Nodes[node]
	next = n.Succs[0]
	s.markDone(n)
	s.nodes[next].waits--
	s.nodes[next].ready = s.now
	s.move(next, waiting, ready)
	s.markRunning(next)
	return next
}

// Skip settles a node that Next has handed out but the engine has not started, because the request has failed
// meanwhile.
func (s *State) Skip(node int) {
	s.move(node, running, skipped)
	s.leave(s.graph.Nodes[node])
}

// Fail settles a running node with an error, now. If the plan goes on without the node, Fail returns the kind of its
// stand-in and its row count; the count is 0 while a fallback has yet to run. Otherwise it returns plan.OnErrorFail,
// and the request fails; the first error of a request counts.
func (s *State) Fail(node int, err error, now clock.Time) (instead plan.OnError, rows int) {
	s.Tell(now)
	s.markFailed(node)
	if s.catches(node, err, now) {
		return s.substitute(node, err)
	}
	s.Abort(node, err)
	return plan.OnErrorFail, 0
}

// Abort ends the request with an error that no running node reports. node is -1 if the error is
// about no node.
func (s *State) Abort(node int, err error) {
	if s.err == nil {
		s.err, s.errNode = err, node
	}
}

// Finished reports whether nothing is in flight and nothing more will start.
func (s *State) Finished() bool {
	return s.inflight == 0 && (s.err != nil || s.settled == s.due)
}

// Inflight returns the number of nodes handed out and not settled.
func (s *State) Inflight() int { return s.inflight }

// Err returns the first error, or nil, and the index of its node (-1 if it is about no node).
func (s *State) Err() (node int, err error) { return s.errNode, s.err }

// Output returns the result of the i-th output of the plan. The state must be finished, without
// error.
func (s *State) Output(i int) rowset.RowSet { return s.nodes[s.graph.Outputs[i]].result }

func (s *State) markReady(node int) {
	s.move(node, waiting, ready)
	s.nodes[node].ready = s.now
	s.readyQueue = append(s.readyQueue, int32(node))
}

func (s *State) markRunning(node int) {
	s.move(node, ready, running)
	s.inflight++
	s.countOptional(s.graph.Nodes[node], 1)
}

func (s *State) markDone(n *plan.Node) {
	s.move(n.Index, running, done)
	s.leave(n)
	s.letGo(n)
}

func (s *State) markFailed(node int) {
	s.move(node, running, failed)
	s.leave(s.graph.Nodes[node])
}

// leave counts a running node as settled.
func (s *State) leave(n *plan.Node) {
	s.inflight--
	s.settled++
	s.countOptional(n, -1)
}

// keep holds the result of a node for those that read it.
func (s *State) keep(node int, result rowset.RowSet) {
	if s.nodes[node].readers > 0 {
		s.nodes[node].result = result
	}
}

// move is the one place where a node changes its state. It panics on a transition that the diagram
// does not have: a node settled twice is a fault of the engine, not of a plan.
func (s *State) move(node int, from, to nodeStatus) {
	n := &s.nodes[node]
	if n.status != from {
		s.misplaced(node, from)
	}
	n.status = to
}

//go:noinline
func (s *State) misplaced(node int, due nodeStatus) {
	panic(fmt.Sprintf("scheduler: node %s: status %d where %d is due", s.graph.Nodes[node].ID, s.nodes[node].status, due))
}
