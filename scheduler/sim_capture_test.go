package scheduler

import (
	"slices"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/task"
)

// playAgain runs each node of a captured request once more, with its inputs and what its tape has. The node must make the same
// rows, or fail for the same reason.
func (w *simWorld) playAgain(q *simRequest) {
	if q.capture == nil {
		return
	}
	w.lab.inReference = true
	retries, givenUp := w.retries, w.givenUp
	defer func() { w.lab.inReference, w.retries, w.givenUp = false, retries, givenUp }()
	for i := range q.capture.Runs {
		run := &q.capture.Runs[i]
		tapes := run.Play()
		for k, node := range run.Graph.Nodes {
			was := &run.Nodes[k]
			if was.Err == nil && !was.Ran || was.Err != nil && was.Stopped() || run.Tapes[k].Outside {
				continue
			}
			inputs, refs := was.Inputs, was.Refs
			if was.Err != nil {
				if was.StoodIn || len(node.Inputs)+len(node.Refs) > 0 { // Nobody has kept what it read.
					continue
				}
			}
			c := task.Ctx{Node: node, UserID: q.user, Params: &q.params, Registry: w.lab.reg, Inputs: slices.Clone(inputs), Refs: slices.Clone(refs)}
			if !q.capture.AllRows {
				c.Limit = tasks.Limit(run.Graph, node)
			}
			tasks.Env(&c).Request = &taskrun.Request{Rows: tasks.NewRowBudget(w.cfg.maxRows), Required: q.required, Tapes: tapes}
			out, err := tasks.Invoke(tasks.SpecOf(node), &c)
			if was.Err != nil {
				w.check(err != nil && err.Error() == was.Err.Error(), "node %s of request %d fails with %v when it is played, and had failed with %v", node.ID, q.user, err, was.Err)
				continue
			}
			w.check(err == nil, "node %s of request %d fails when it is played: %v", node.ID, q.user, err)
			w.check(err != nil || rowsettest.Equal(out, was.Out), "node %s of request %d makes other rows when it is played", node.ID, q.user)
			w.check(tapes[k].Asked() == run.Tapes[k].Asked(), "node %s of request %d asks for something else when it is played", node.ID, q.user)
			w.played++
			if len(run.Tapes[k].Values) > 1 {
				w.playedReads++
			}
		}
	}
}
