package scheduler

import (
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// Sequential is the engine to compare with: each request on a goroutine of its
// own, one node at a time, in the order in which nodes become ready, blocking
// where it waits. Requests share the endpoint's connections (one, unless its policy says
// otherwise). Any goroutine.
type Sequential struct{ blocking }

// OpenSequential starts a sequential engine. Close ends it.
func OpenSequential(cfg Config) *Sequential {
	cfg = cfg.withDefaults()
	e := new(Sequential)
	e.init(&cfg)
	e.execute = e.oneByOne
	return e
}

func (e *Sequential) oneByOne(req *Execution, arrived clock.Time) *Result {
	var s State
	rows := task.NewRowBudget(e.maxRows)
	deltas := newDeltas(req)
	s.Reset(req.Graph, arrived, req.Deadline)
	s.abandoned = req.Abandoned
	w := e.takeWaiter()
	defer e.freeWaiter(w)
	now := e.clock.Now()
	for i, ok := s.Next(now); ok; i, ok = s.Next(now) {
		node := req.Graph.Nodes[i]
		inputs, refs := s.Gather(i, nil, nil)
		out, err := e.run(&s, req, node, now, w, rows, inputs, refs)
		if err != nil {
			s.Fail(i, err)
			break
		}
		if deltas != nil {
			deltas[i] = rowset.NewSchemaDelta(node.ID, inputs, refs, out)
		}
		s.Succeed(i, out)
		now = e.clock.Now()
	}
	return s.result(deltas)
}
