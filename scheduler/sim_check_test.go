package scheduler

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// answerKinds are the kinds of answers, for the tally; the first that matches counts.
var answerKinds = []struct {
	name string
	err  error
}{
	{"rows", nil},
	{"overloaded", ErrOverloaded},
	{"not admitted", ErrNotAdmitted},
	{"abandoned", ErrAbandoned},
	{"request deadline", ErrRequestDeadline},
	{"deadline before start", ErrDeadlineBeforeStart},
	{"node timeout", ErrNodeTimeout},
	{"shutting down", ErrShuttingDown},
	{"queue full", cpupool.ErrQueueFull},
	{"redis timeout", resp.ErrTimeout},
	{"cannot connect", resp.ErrConnect},
	{"protocol error", resp.ErrProtocol},
	{"connection lost", resp.ErrConnectionLost},
	{"too many waiting calls", resp.ErrQueueFull},
	{"replies too large", resp.ErrTooLarge},
	{"redis error", task.ErrRedis},
	{"service timeout", remote.ErrTimeout},
	{"too many calls to a service", remote.ErrQueueFull},
	{"service error", task.ErrRemote},
	{"task panic", task.ErrPanic},
	{"contract violation", task.ErrContract},
	{"injected failure", builtin.ErrInjected},
	{"too many rows", task.ErrTooManyRows},
	{"invalid node", task.ErrInvalid},
}

func kindOf(err error) string {
	for _, kind := range answerKinds {
		if errors.Is(err, kind.err) {
			return kind.name
		}
	}
	return "other"
}

// judge compares an answer with what the request may get. That is the rows of the reference, an
// error that some node of the reference has, or an error that the world may cause.
func (w *simWorld) judge(q *simRequest, r *Result) {
	w.answers[kindOf(r.Err)]++
	if q.refused {
		w.check(r.Err == ErrShuttingDown, "request %d came after Close and got %v", q.user, r.Err)
		return
	}
	w.playAgain(q)
	if q.then != nil {
		q = w.judgeFall(q, r)
	}
	want := w.lab.reference(q, r.Completeness())
	w.checkCompleteness(q, r, want)
	if w.checkEnough(q, r, want) {
		return
	}
	if r.Err == nil {
		w.check(want.rows <= w.rowsMax(), "request %d succeeded with %d rows of %d", q.user, want.rows, w.rowsMax())
		w.check(len(want.failures) == 0, "request %d succeeded, should fail with %q", q.user, want.failures)
		w.check(len(r.Outputs) == len(want.outputs), "request %d has %d outputs", q.user, len(r.Outputs))
		w.check((r.Deltas() != nil) == q.req.Deltas && (r.Deltas() == nil || len(r.Deltas()) == len(q.graph.Nodes)-want.idle()), "request %d has %d deltas",
			q.user, len(r.Deltas()))
		for i := range r.Outputs {
			w.check(rowsettest.Equal(r.Outputs[i], want.outputs[i]), "output %d of request %d differs from the sequential engine's",
				i, q.user)
		}
		return
	}
	w.check(r.Outputs == nil && r.Deltas() == nil, "request %d has an error and outputs", q.user)
	text := r.Err.Error()
	w.checkNamed(q, r.Err)
	for _, failure := range want.failures {
		if text == failure {
			return
		}
	}
	var tooMany *task.RowsError
	if errors.As(r.Err, &tooMany) {
		// A node that fails at a part of its replies may have made more rows before than the
		// reference, which sees all replies at once.
		w.check(tooMany.Limit == w.rowsMax() && (want.rows > w.rowsMax() || q.graph.Lenient || want.failsAt(q.graph, r.Err)), "request %d makes %d rows of %d and got %q",
			q.user, want.rows, w.rowsMax(), text)
		return
	}
	w.check(w.mayFail(q, r.Err), "request %d got %q, should get %q or rows", q.user, text, want.failures)
}

// checkNamed checks that an error names a node that could fail: all nodes that it reads have
// begun, and none of its readers has.
func (w *simWorld) checkNamed(q *simRequest, err error) {
	var failed *NodeError
	if !errors.As(err, &failed) {
		return
	}
	node := nodeOf(q.graph, failed.Node)
	for _, deps := range [][]int{node.Inputs, node.Refs} {
		for _, i := range deps {
			w.check(q.begun[i] || q.graph.Nodes[i].Lenient(), "request %d got %q, but node %s has not begun", q.user, err, q.graph.Nodes[i].ID)
		}
	}
	for _, i := range node.Succs {
		w.check(!q.begun[i], "request %d got %q, but node %s has begun", q.user, err, q.graph.Nodes[i].ID)
	}
}

// rowsMax returns how many rows the nodes of a request may make together.
func (w *simWorld) rowsMax() int64 { return tasks.NewRowBudget(w.cfg.maxRows).Left() }

// mayFail reports whether the world explains an error that the plan does not.
func (w *simWorld) mayFail(q *simRequest, err error) bool {
	c := &w.cfg
	var late *TimeoutError
	var node *NodeError
	isNode := errors.As(err, &node)
	switch {
	case errors.Is(err, ErrShuttingDown):
		return w.closing
	case errors.Is(err, ErrOverloaded):
		return q.overloaded
	case errors.Is(err, ErrAbandoned):
		return q.req.Context != nil && q.req.Context.Err() != nil
	case errors.Is(err, ErrNotAdmitted) && len(q.begun) > 0:
		return false
	case errors.As(err, &late):
		if late.Elapsed < late.Limit {
			return false
		}
		passed := q.deadline.Passed(w.sim.Now())
		if late.OfRequest() && isNode && !w.stalled {
			n := nodeOf(q.graph, node.Node)
			w.check(n.AnswerBy == 0 || slices.Contains(q.required, n.Index), "request %d waited for node %s until its deadline, and should have answered by %s of it", q.user, n.ID, n.AnswerBy)
		}
		switch late.Kind {
		case ErrRequestDeadline:
			return passed && !isNode
		case ErrDeadlineBeforeStart: // between two readings of the clock
			return passed && isNode && w.stalled
		case ErrNodeTimeout:
			return isNode && (passed || w.limited(q, nodeOf(q.graph, node.Node)))
		}
		return false
	case errors.Is(err, cpupool.ErrQueueFull):
		return w.queueFull > 0
	case errors.Is(err, resp.ErrTooLarge):
		return w.tooLarge > 0
	case errors.Is(err, resp.ErrTimeout), errors.Is(err, resp.ErrConnect), errors.Is(err, resp.ErrConnectionLost),
		errors.Is(err, resp.ErrProtocol), errors.Is(err, resp.ErrQueueFull):
		return c.redisTrouble()
	case errors.Is(err, task.ErrRemote):
		return c.service.fault > 0 || c.service.tight
	}
	if c.redis.fault == 0 && c.redis.refuse == 0 && w.cluster.deaths == 0 {
		return false
	}
	// "... HGETALL user:7: ERR injected by user:7": both name the same key.
	if before, key, injected := strings.Cut(err.Error(), " injected by "); injected {
		key, _, _ = strings.Cut(key, " ") // The meaning of the error may follow.
		return strings.Contains(before, " "+key+": ")
	}
	return strings.HasSuffix(err.Error(), ": reply is bulk string, want array")
}

func nodeOf(g *plan.Graph, id string) *plan.Node {
	for _, n := range g.Nodes {
		if n.ID == id {
			return n
		}
	}
	panic("no node " + id)
}

// digestOf returns a number that depends on the ids and values of all active rows.
func digestOf(sets ...rowset.RowSet) uint64 {
	const prime = 1099511628211 // of the 64-bit FNV hash
	sum := uint64(len(sets))
	for _, rs := range sets {
		for i := range rs.N {
			row := int(rs.Row(i))
			sum = (sum ^ uint64(rs.Batch.IDs[row])) * prime
			for _, column := range rs.Batch.Columns() {
				switch c := column.(type) {
				case *rowset.FloatColumn:
					if c.Valid.Get(row) {
						sum = (sum ^ math.Float64bits(c.Values[row])) * prime
					}
				case *rowset.StringColumn:
					sum = (sum ^ uint64(c.Places[row])) * prime
				case *rowset.IntColumn:
					if c.Valid.Get(row) {
						sum = (sum ^ uint64(c.Values[row])) * prime
					}
				case *rowset.BoolColumn:
					if c.Valid.Get(row) && c.Values.Get(row) {
						sum = (sum ^ 1) * prime
					}
				case *rowset.SetColumn:
					sum = (sum ^ uint64(c.Codes[row])) * prime
				}
			}
		}
	}
	return sum
}

// checkSettled checks what holds whenever the loop has nothing left to do at an instant.
func (w *simWorld) checkSettled() {
	if w.sim.Ended() {
		return
	}
	e, now := w.engine, w.sim.Now()
	for r := e.runs.First(); r != nil; r = r.link.Next() {
		w.check(!r.Req.Deadline.Passed(now), "request %d is unanswered past its deadline", r.Req.UserID)
		w.checkFell(r, now)
		w.checkState(r, r.active.Len())
	}
	nodes := e.nodes()
	w.checkAdmission()
	w.checkLongestPaths()
	if w.graceEnd.Passed(now) {
		w.check(!e.pending(), "%d requests run past the grace, or others wait", e.runs.Len())
	}
	w.check(!e.closing || e.pending() || len(nodes) > 0 || w.drained(), "nothing is left and Close does not end")
	if w.drained() {
		w.check(!e.pending() && len(nodes) == 0 && w.bodies == 0,
			"drained with %d requests, %d nodes and %d bodies", e.runs.Len(), len(nodes), w.bodies)
	}
	for i, n := range nodes {
		onLoop := n.there == onLoop
		w.check(n.settled == (i >= len(nodes)-e.orphans.Len()), "node %s is settled: %v, among the wrong ones", n.node.ID, n.settled)
		if n.settled {
			w.check(n.run == nil, "an orphan of node %s belongs to a request", n.node.ID)
			w.check(!onLoop, "an orphan of node %s waits on the loop", n.node.ID)
		} else if n.deadline.Passed(now) {
			w.violate("node %s of request %d runs past its deadline", n.node.ID, n.Ctx.UserID)
		}
		if s, ok := tasks.Env(&n.Ctx).Waiter.(*simWaiter); ok && onLoop && s.inRedis {
			w.check(!n.deadline.Passed(now), "a Redis call of node %s of request %d waits past the deadline",
				n.node.ID, s.given.user)
		}
	}
	w.check(w.bodies <= len(nodes), "%d bodies run, %d nodes are active", w.bodies, len(nodes))
	for i, c := range w.clients {
		err := c.(interface{ CheckInvariants() error }).CheckInvariants()
		w.check(err == nil, "client %d: %v", i, err)
	}
}

// checkState checks a request in flight, of which that many nodes are active, between two callbacks.
func (w *simWorld) checkState(r *run, active int) {
	s, user := &r.State, r.Req.UserID
	for j := r.active.First(); j != nil && s.deadline != 0; j = j.link.Next() {
		w.checkPunctual(user, j, s)
	}
	inflight := 0
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.status == running {
			inflight++
		}
		readers, perhaps := 0, 0
		for _, succ := range s.graph.Nodes[i].Succs {
			st := s.nodes[succ].status
			if st == waiting || st == ready || st == onDemand || st == running && s.graph.Nodes[succ].Lenient() {
				readers++
			} else if st == skipped || st == failed { // before or after it has gathered, or something stands in for it
				perhaps++
			}
		}
		if s.graph.Nodes[i].IsOutput {
			readers++
		}
		if s.graph.Nodes[i].Counted {
			readers++
		}
		switch held := n.result.Batch != nil; { // not w.check: for a crowd, its arguments would cost more than everything else
		case n.status == done && held != (readers > 0) && (!held || perhaps == 0):
			w.violate("request %d: the result of node %s has %d readers, held: %v", user, s.graph.Nodes[i].ID, readers, held)
		case n.status != done && (n.status != failed || !s.graph.Nodes[i].Lenient()) && held:
			w.violate("request %d: node %s has a result and is not done", user, s.graph.Nodes[i].ID)
		}
	}
	w.check(inflight == s.inflight && inflight == active+len(r.kept.nodes)-r.kept.head, "request %d: %d nodes run, counted %d, active %d",
		user, inflight, s.inflight, active)
	w.check(inflight > 0, "request %d is not answered and nothing of it runs", user)
	w.check(!r.kept.empty() || w.waitsForRequired(r), "request %d waits for optional nodes alone", user)
	w.check(s.err != nil || s.head == len(s.readyQueue), "request %d: a ready node was not started", user)
}

// checkQuiet checks an engine to which nothing more happens by itself.
func (w *simWorld) checkQuiet() {
	for _, q := range w.requests {
		w.check(q.answers == 1, "request %d has %d answers", q.user, q.answers)
		w.check(q.digest == digestOf(q.outputs...), "the answer to request %d has changed", q.user)
	}
	e := w.engine
	w.check(e.runs.Len() == 0, "%d requests are in flight after the last answer", e.runs.Len())
	w.check(len(e.nodes()) == 0 && w.bodies == 0, "%d nodes are active, %d bodies run after all has ended",
		len(e.nodes()), w.bodies)
	counts := e.counted()
	w.check(counts.LateCompletions+counts.Cancelled <= counts.NodeTimeouts+counts.GivenUp || w.closing,
		"%d late and %d cancelled bodies of %d timed out and %d given up", counts.LateCompletions, counts.Cancelled, counts.NodeTimeouts, counts.GivenUp)
	w.check(counts.LateCompletions >= w.late && counts.Cancelled >= w.stopped,
		"counted %d late and %d cancelled bodies, of which on the loop there were %d and %d", counts.LateCompletions,
		counts.Cancelled, w.late, w.stopped)
	w.checkBegun()
	// A worker that was started for a job may still be on its way, although the job has been
	// cancelled since.
	w.check(w.pool.Stats().Queued == 0 && len(w.exec.idle) == w.cfg.workers, "the CPU pool is not idle")
	for i, c := range w.clients {
		s := c.Stats()
		w.check(s.Inflight == 0 && s.Waiting == 0, "client %d: %d commands in flight, %d calls waiting", i, s.Inflight, s.Waiting)
	}
	w.checkFree()
	w.checkSwapped()
	w.checkLoopShared()
}

// checkFree checks that memory that waits to be used again holds nothing and is referred to
// from nowhere else.
func (w *simWorld) checkFree() {
	e := w.engine
	nodes := map[*asyncJob]bool{}
	for _, n := range slices.Concat(e.freeJobs[onLoop].items, e.freeJobs[onPool].items) {
		w.check(!nodes[n], "a node was freed twice")
		nodes[n] = true
		w.check(n.run == nil && n.node == nil && !n.settled && n.Err == nil && n.Out.Batch == nil && (n.offload == nil || n.offload.shared == nil && n.offload.notes == nil),
			"a free node is not reset")
		w.check(!n.cancel.Cancelled(), "a free node is cancelled")
		w.check(n.expiry == nil || !n.expiry.Active(), "the deadline of a free node is armed")
		for _, held := range [][]rowset.RowSet{n.Ctx.Inputs, n.Ctx.Refs} {
			for _, rows := range held[:cap(held)] {
				w.check(rows.Batch == nil, "a free node holds rows")
			}
		}
	}
	for _, wait := range e.freeWaits.items {
		w.check(wait.x == nil && !wait.timer.Active(), "the timer of a free place in the queue is not reset")
	}
	runs := map[*run]bool{}
	for _, r := range e.freeRuns.items {
		w.check(!runs[r], "a run was freed twice")
		runs[r] = true
		w.check(r.kept.empty() && !r.kept.parked, "a free run has kept nodes")
		for i := range r.State.nodes {
			w.check(r.State.nodes[i].result.Batch == nil, "a free run holds the result of a node")
		}
	}
	for _, j := range e.freeJobs[onLoop].items {
		b := j.body
		w.check(b.job == j && b.client == nil && b.journal == nil && !b.cancelled, "a free body on the loop is not reset")
		w.check(b.timer == nil || !b.timer.Active(), "a free body on the loop sleeps")
		c := b.call
		w.check(c == nil || c.Flow == nil && c.Watch == nil && c.Batch.Len() == 0, "the call of a free body on the loop is not reset")
	}
}

// checkClosed checks an engine that was closed and is drained.
func (w *simWorld) checkClosed() {
	w.check(w.drained(), "the engine was closed and is not drained: %d requests, %d nodes", w.engine.runs.Len(),
		len(w.engine.nodes()))
	w.checkQuiet()
	w.check(w.net.Open() == 0, "%d connections are open after Close", w.net.Open())
	w.sim.Unhold()
	w.check(!w.sim.Loop.Alive(), "something keeps the loop alive after Close")
}
