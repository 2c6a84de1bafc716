package blocking

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/remote"
	"github.com/rankd/rankd/resp"
	respblocking "github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// tasks is the view that engines have of package task.
var tasks = task.Engine(taskrun.Key{})

// engine has all that both engines share: intake, drain, and a node's run on a goroutine that
// blocks where the body waits. Any goroutine.
//
// Deadlines hold as far as blocking calls allow. The engine checks them before it spawns a node,
// at the node's start and at its end. Sleeps and Redis calls end at them, and CPU work is asked to
// stop. A body that neither waits nor looks runs on, and the answer waits for it.
type engine struct {
	reg         *registry.Registry
	clients     []*respblocking.Client // by endpoint index; nil where the endpoint is not a Redis
	remotes     []*remote.Blocking     // by endpoint index; nil where the endpoint is of another kind than http
	clock       clock.Clock            // at the pace of real time
	nodeTimeout time.Duration
	maxRows     int // of a request
	outside     task.Outside
	awaits      scheduler.Awaits
	mode        scheduler.Mode

	// execute runs a request, blocks, and fills in result, even if a body ends the goroutine by
	// runtime.Goexit.
	// recorder may be nil.
	execute func(exec *scheduler.Execution, arrived clock.Time, recorder *trace.Recorder, result *scheduler.Result)
	model   string // its name in a trace

	mu        sync.Mutex
	admission scheduler.Admission[*time.Timer] // guarded by mu, where it says so
	closing   bool                             // guarded by mu
	live      sync.WaitGroup                   // requests that run or wait; Add only under mu while not closing
	// degraded counts the answers in which something is missing, by name of the plan; guarded by mu.
	degraded map[string]uint64

	events    *trace.Budget
	recorders sync.Pool // of *trace.Recorder

	waiters sync.Pool       // of *waiter that no body has: only their buffers are kept
	stopped context.Context // done when the grace is over
	giveUp  context.CancelFunc
}

// init fills in the fields that both engines have.
func (e *engine) init(cfg *scheduler.Config) {
	e.reg, e.clock, e.nodeTimeout, e.maxRows = cfg.Registry, cfg.Clock, cfg.NodeTimeout, cfg.MaxRows
	e.mode, e.events = cfg.Placement.Mode, trace.NewBudget(0)
	e.admission.Bound(cfg.MaxInflight, cfg.MaxQueue)
	e.degraded = make(map[string]uint64)
	e.recorders.New = func() any { return trace.NewRecorder(e.clock, e.events) }
	e.stopped, e.giveUp = context.WithCancel(context.Background())
	e.clients = make([]*respblocking.Client, len(cfg.Registry.Endpoints()))
	e.remotes = make([]*remote.Blocking, len(cfg.Registry.Endpoints()))
	for i, ep := range cfg.Registry.Endpoints() {
		switch ep.Kind {
		case registry.Redis:
			e.clients[i] = respblocking.NewClient(cfg.Clock, cfg.RedisOptions(ep))
		case registry.HTTP:
			e.remotes[i] = remote.NewBlocking(cfg.Clock, scheduler.RemoteOptions(ep))
		}
	}
}

// Clock returns the clock on which deadlines are instants.
func (e *engine) Clock() clock.Clock { return e.clock }

// Submit implements scheduler.Engine. Each request that runs has a goroutine.
func (e *engine) Submit(exec *scheduler.Execution, done func(*scheduler.Result)) error {
	if err := exec.Check(e.reg); err != nil {
		return err
	}
	arrived := exec.Arrived
	if arrived == 0 {
		arrived = e.clock.Now()
	}
	entry, ok := e.admission.Enter(exec.Flow)
	if !ok {
		return scheduler.ErrOverloaded
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		e.admission.Retract(entry)
		return scheduler.ErrShuttingDown
	}
	verdict := e.admission.TakeUp(entry)
	if entry.Contends() {
		for w := e.admission.Displaced(); w != nil; w = e.admission.Displaced() {
			e.refuse(w, scheduler.ErrOverloaded)
		}
	}
	switch verdict {
	case scheduler.Runs:
		e.live.Add(1)
		go e.run(exec, arrived, 0, done)
	case scheduler.Waits:
		e.live.Add(1)
		e.wait(exec, entry, arrived, done)
	default:
		return scheduler.ErrOverloaded
	}
	return nil
}

// run runs a request that was let in after it had waited for delay, on its goroutine.
func (e *engine) run(exec *scheduler.Execution, arrived clock.Time, delay time.Duration, done func(*scheduler.Result)) {
	defer e.live.Done()
	result := new(scheduler.Result)
	recorder := e.record(exec, arrived, delay)
	defer func() {
		if result.Err == nil && result.Degraded() {
			e.countDegraded(exec.Graph.Name)
		}
		result.QueueDelay = delay
		e.letIn()
		done(result)
		e.freeRecorder(recorder)
	}()
	e.execute(exec, arrived, recorder, result)
}

func (e *engine) countDegraded(plan string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.degraded[plan]++
}

// Close implements scheduler.Engine. When the grace is over, sleeps and Redis calls fail, CPU work
// is asked to stop and no node starts any more, and so the requests end.
func (e *engine) Close(grace time.Duration) {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	if grace < scheduler.Forever {
		defer time.AfterFunc(grace, e.endAll).Stop()
	}
	e.live.Wait()
	e.awaits.Wait()
	e.endAll()
}

// endAll ends all sleeps and Redis calls and closes the clients. A second call does nothing.
func (e *engine) endAll() {
	e.giveUp()
	for _, c := range e.clients {
		if c != nil {
			c.Close()
		}
	}
	for _, c := range e.remotes {
		if c != nil {
			c.Close()
		}
	}
}

// Metrics implements scheduler.Engine: the counters of the clients, of the admission and of degraded answers; the rest
// is zero.
func (e *engine) Metrics() scheduler.Metrics {
	stats := make([]resp.Stats, len(e.clients))
	for i, c := range e.clients {
		if c != nil {
			stats[i] = c.Stats()
		}
	}
	remotes := make([]remote.Stats, len(e.remotes))
	for i, c := range e.remotes {
		if c != nil {
			remotes[i] = c.Stats()
		}
	}
	m := scheduler.Metrics{Redis: stats, Remote: remotes, Malformed: uint64(e.outside.Malformed()), Values: e.outside.ByKey(), Awaits: e.awaits.Stats()}
	e.mu.Lock()
	defer e.mu.Unlock()
	m.Live, m.Admission = e.admission.Running(), e.admission.Stats()
	for name, n := range e.degraded {
		if m.Plans == nil {
			m.Plans = make(map[string]scheduler.PlacementStats)
		}
		m.Placement.Degraded += n
		m.Plans[name] = scheduler.PlacementStats{Degraded: n}
	}
	return m
}

// nodeRun is one run of a node, on a goroutine that blocks where the body waits. One goroutine at a time, except that any
// goroutine may cancel it.
type nodeRun struct {
	node         *plan.Node
	start        clock.Time // when it was spawned
	inputs, refs []rowset.RowSet
	rows         *taskrun.RowBudget // of the request
	cancel       taskrun.Cancellation
	settled      bool // guarded by the request's lock, if it has one

	out  rowset.RowSet
	lack task.Lack // of out
	err  error

	instead     plan.OnError // what the readers of a failed node see
	insteadRows int
}

// runNode runs one node on this goroutine, and fills in how it ended.
func (e *engine) runNode(s *scheduler.State, exec *scheduler.Execution, n *nodeRun, w *waiter) {
	n.out, n.lack, n.err = e.invoke(s, exec, n, w)
}

func (e *engine) invoke(s *scheduler.State, exec *scheduler.Execution, n *nodeRun, w *waiter) (rowset.RowSet, task.Lack, error) {
	fails := func(err error) (rowset.RowSet, task.Lack, error) { return rowset.RowSet{}, task.Lack{}, err }
	deadline := s.NodeDeadline(n.node, n.start, e.nodeTimeout) // The timer below may outlive the use of w.
	w.deadline, w.cancel = deadline, &n.cancel
	if deadline != 0 {
		now := e.clock.Now()
		if err := s.CheckNodeStart(n.node, deadline, now); err != nil {
			return fails(err)
		}
		defer time.AfterFunc(deadline.Sub(now), func() { n.cancel.Cancel(e.late(s, n, deadline)) }).Stop()
	}
	if e.stopped.Err() != nil {
		return fails(scheduler.ErrShuttingDown)
	}
	defer context.AfterFunc(e.stopped, func() { n.cancel.Cancel(scheduler.ErrShuttingDown) })()
	mode, limit := e.mode, 0
	if exec.Mode != nil {
		mode = *exec.Mode
	}
	if mode.TopK() && !exec.KeepRows {
		limit = tasks.Limit(exec.Graph, n.node)
	}
	c := task.Ctx{
		Limit: limit,
		Node:  n.node, Inputs: n.inputs, Refs: n.refs, UserID: exec.UserID, RequestID: exec.RequestID, Params: &exec.Params,
		Registry: e.reg,
	}
	env := tasks.Env(&c)
	env.Waiter, env.Rows, env.Cancellation, env.Outside = w, n.rows, &n.cancel, &e.outside
	env.Required, env.Caller, env.Deadline, env.Clock = exec.Required, exec.Context, deadline, e.clock
	out, err := tasks.Invoke(tasks.SpecOf(n.node), &c)
	if deadline != 0 && deadline.Passed(e.clock.Now()) {
		return fails(e.late(s, n, deadline))
	}
	if errors.Is(err, resp.ErrClosed) || errors.Is(err, remote.ErrClosed) ||
		(errors.Is(err, task.ErrCancelled) || errors.Is(err, loop.ErrCancelled)) && e.stopped.Err() != nil {
		err = scheduler.ErrShuttingDown
	}
	return out, c.Lack(), err
}

// late returns the error of a node whose deadline has passed.
func (e *engine) late(s *scheduler.State, n *nodeRun, deadline clock.Time) error {
	return s.NodeLate(scheduler.ErrNodeTimeout, n.node, n.start, deadline, e.clock.Now())
}

// settle settles a node that has ended.
func (e *engine) settle(s *scheduler.State, exec *scheduler.Execution, n *nodeRun) {
	if n.err != nil {
		n.instead, n.insteadRows = exec.Fail(s, n.node.Index, n.err, e.clock.Now())
		return
	}
	if n.lack.Err != nil {
		s.ReportLack(n.node.Index, n.lack)
	}
	s.Note(n.node.Index, n.inputs, n.refs, n.out)
	s.Succeed(n.node.Index, n.out)
}
