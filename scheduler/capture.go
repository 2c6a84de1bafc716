package scheduler

import (
	"errors"
	"slices"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// Capture is what a request leaves for a record of it, or what it is played from. Its owner makes it, and the engine fills in Runs
// before it calls done. Nothing of it is used again by the engine, whose orphans may still write to tapes and rows of nodes that
// it has ended. One goroutine at a time.
type Capture struct {
	// Play has a tape for each node of each run, which play. No node then has a deadline, and optional nodes are waited for. Nil: the
	// runs are recorded.
	Play [][]taskrun.Tape
	// AllRows: no node stops at a task.Ctx.Limit. The engine fills it in, unless Play is set: then it does as AllRows says.
	AllRows bool
	Runs    []CapturedRun // of the plan, and of its fallback if that ran
}

// CapturedRun is a run of one plan. Immutable once done is called, but for tapes of nodes that the engine has ended.
type CapturedRun struct {
	Graph  *plan.Graph
	Tapes  []taskrun.Tape // by node
	Nodes  []CapturedNode // by node
	Texts  *rowset.IDTexts
	Result *Result
}

// CapturedNode is how a node ended, and its rows. Immutable; any goroutine.
type CapturedNode struct {
	NodeRows       // of the node, or those that stand in for it
	Err      error // why it failed; nil: it has succeeded, or has not run
}

// Stopped reports whether the engine has ended the node: by time, for want of room, since nobody waited any more, or because of
// what other nodes did. Its body may still run, and write to its tape.
func (n *CapturedNode) Stopped() bool {
	if _, late := errors.AsType[*TimeoutError](n.Err); late {
		return true
	}
	return slices.ContainsFunc(stops[:], func(err error) bool { return errors.Is(n.Err, err) })
}

// stops are the errors with which the engine ends nodes, besides timeouts. Immutable.
var stops = [...]error{
	ErrGivenUp, ErrAbandoned, ErrShuttingDown, ErrFault, task.ErrCancelled, loop.ErrCancelled, task.ErrGoexit, task.ErrTooManyAwaits, task.ErrTooManyRows,
	rowset.ErrTooManyIDs, cpupool.ErrQueueFull, cpupool.ErrClosed,
}

// Play returns tapes that play the run: a node that the engine had ended fails as it did, and so does one that had not run when the run failed.
func (c *CapturedRun) Play() []taskrun.Tape {
	tapes := make([]taskrun.Tape, len(c.Nodes))
	for i := range tapes {
		switch n := &c.Nodes[i]; {
		case n.Err != nil && n.Stopped():
			tapes[i] = taskrun.Tape{Plays: true, Stop: n.Err}
		case n.Err == nil && !n.Ran && c.Result.Err != nil: // Nobody knows what it would have got.
			tapes[i] = taskrun.Tape{Plays: true, Stop: c.Result.Err}
		default:
			tapes[i] = c.Tapes[i].Rewind()
		}
	}
	return tapes
}

// begin returns the tapes for the next run.
func (c *Capture) begin(g *plan.Graph) []taskrun.Tape {
	n := len(c.Runs)
	if n < len(c.Play) && len(c.Play[n]) == len(g.Nodes) {
		return c.Play[n]
	}
	tapes := make([]taskrun.Tape, len(g.Nodes))
	for i := range tapes {
		if c.Play != nil { // The record has no such run.
			tapes[i].Plays, tapes[i].Stop = true, taskrun.ErrOtherTape
		}
	}
	return tapes
}

// captured fills in what the run leaves.
func (r *Run) captured(result *Result) {
	s := &r.State
	run := CapturedRun{Graph: s.graph, Tapes: r.Shared.Given.Tapes, Nodes: make([]CapturedNode, len(s.nodes)), Result: result}
	for i := range run.Nodes {
		switch n := &run.Nodes[i]; s.nodes[i].status {
		case done:
			n.NodeRows = s.notes.rows[i]
		case failed:
			*n = s.notes.failed[i]
		}
	}
	if s.ids != nil {
		run.Texts = s.ids.Texts()
	}
	r.Req.Capture.Runs = append(r.Req.Capture.Runs, run)
}
