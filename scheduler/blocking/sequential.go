package blocking

import (
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// Sequential is the simplest engine: each request on a goroutine of its own, one node at a time,
// in the order in which nodes become ready. The goroutine blocks where the body waits. Requests
// share the endpoint's connections (one, unless its policy says otherwise). A node that runs runs alone, so the engine
// waits for optional nodes, too. Any goroutine.
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
	var running *nodeRun // whose body has not returned
	defer func() {
		if running != nil {
			running.err = task.ErrGoexit
			e.settle(&s, exec, running)
			if recorder != nil {
				recorder.End(running.node.Index, 0, outcome(running))
			}
		}
		*result = *s.Result()
		if recorder != nil {
			result.Recording = recorder.Finish(result.Err)
		}
	}()
	rows := tasks.NewRowBudget(e.maxRows)
	w := e.takeWaiter()
	defer e.freeWaiter(w)
	now := e.clock.Now()
	for i, ok := exec.Next(&s, now); ok; i, ok = exec.Next(&s, now) {
		n := &nodeRun{node: exec.Graph.Nodes[i], start: now, rows: rows}
		if recorder != nil {
			recorder.Spawn(i, trace.OnGoroutine, s.Rows(i))
			recorder.Start(i)
			w.record(recorder, i)
		}
		n.inputs, n.refs = s.Gather(i, nil, nil)
		running = n
		e.runNode(&s, exec, n, w)
		running = nil
		e.settle(&s, exec, n)
		if recorder != nil {
			recorder.End(i, 0, outcome(n))
		}
		now = e.clock.Now()
	}
}
