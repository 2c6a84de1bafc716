package blocking

import (
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// Sequential is the simplest engine: each request on a goroutine of its own, one node at a time,
// in the order in which nodes become ready. The goroutine blocks where the body waits. Requests
// share the endpoint's connections (one, unless its policy says otherwise). Any goroutine.
type Sequential struct{ engine }

// OpenSequential starts a sequential engine. Close ends it.
func OpenSequential(cfg scheduler.Config) *Sequential {
	cfg = cfg.WithDefaults()
	e := new(Sequential)
	e.init(&cfg)
	e.execute, e.model = e.oneByOne, trace.Sequential
	return e
}

func (e *Sequential) oneByOne(exec *scheduler.Execution, arrived clock.Time, recorder *trace.Recorder, result *scheduler.Result) {
	var s scheduler.State
	s.Begin(exec, arrived)
	running := -1 // the node whose body has not returned
	defer func() {
		if running >= 0 {
			if recorder != nil {
				recorder.End(running, 0, outcome(0, task.ErrGoexit))
			}
			s.Fail(running, task.ErrGoexit)
		}
		*result = *s.Result()
		if recorder != nil {
			result.Recording = recorder.Finish(result.Err)
		}
	}()
	rows := task.NewRowBudget(e.maxRows)
	w := e.takeWaiter()
	defer e.freeWaiter(w)
	now := e.clock.Now()
	for i, ok := s.Next(now); ok; i, ok = s.Next(now) {
		node := exec.Graph.Nodes[i]
		if recorder != nil {
			recorder.Spawn(i, trace.OnGoroutine, s.Rows(i))
			recorder.Start(i)
			w.record(recorder, i)
		}
		inputs, refs := s.Gather(i, nil, nil)
		running = i
		out, err := e.run(&s, exec, node, now, w, rows, inputs, refs)
		running = -1
		if recorder != nil {
			recorder.End(i, 0, outcome(out.N, err))
		}
		if err != nil {
			s.Fail(i, err)
			break
		}
		s.Note(i, inputs, refs, out)
		s.Succeed(i, out)
		now = e.clock.Now()
	}
}
