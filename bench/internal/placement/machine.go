package placement

import (
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/testing/loopsim"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// machine has virtual cores in virtual time. Its threads are a loop and the workers of a CPU pool. Threads that compute
// share the cores evenly, and each uses one core at most. The machine runs the real code of the loop, the pool and the
// scheduler; only the time that they take is made up. Everything runs on the caller's goroutine.
type machine struct {
	cores     int
	costs     costs
	sim       *loopsim.Sim
	loop      thread
	current   *thread // that runs
	computing []*thread
	waking    []waking // workers, the next one first

	used     time.Duration // processor time of all threads
	loopTime time.Duration // while the loop computed, or waited for a core
}

// thread is a thread of a machine: its loop, or a worker that runs one call of cpupool.Executor.Go.
type thread struct {
	left   time.Duration // processor time that it wants until it goes on
	resume func() (work time.Duration, goesOn bool)
	yield  func(work time.Duration) bool
}

// waking is a worker that is about to start.
type waking struct {
	at  clock.Time
	run func()
}

// costs are the times of what a machine does. All but wake are processor time.
type costs struct {
	cheap     time.Duration // a node on a few rows, with the scheduler's part in it
	iteration time.Duration // of the loop
	submit    time.Duration // the loop hands a job over
	take      time.Duration // a worker takes it
	giveBack  time.Duration // the loop takes it back
	wake      time.Duration // a worker wakes up
}

// measuredCosts are those of a Xeon of 2 cores: bench/figures/placement.md#from-which-size-a-job-pays has the hop of some
// 8 µs in all, and BenchmarkScenario the nodes.
var measuredCosts = costs{
	cheap: time.Microsecond, iteration: time.Microsecond,
	submit: time.Microsecond, take: 2 * time.Microsecond, giveBack: 2 * time.Microsecond, wake: 4 * time.Microsecond,
}

// newMachine returns a machine whose loop has started.
func newMachine(cores int, c costs) *machine {
	m := &machine{cores: cores, costs: c}
	m.current = &m.loop
	m.sim = loopsim.New(rand.New(rand.NewPCG(1, 1)), func(recovered any, stack []byte) { panic(string(stack)) })
	m.sim.OnFlush = func() { m.compute(m.costs.iteration) }
	return m
}

// compute has the current thread use processor time.
func (m *machine) compute(work time.Duration) {
	if m.current != &m.loop {
		m.current.yield(work)
		return
	}
	if m.loop.left = work; work > 0 {
		m.computing = append(m.computing, &m.loop)
	}
	for m.loop.left > 0 {
		m.step(clock.Never)
	}
}

// step lets time pass until a thread has computed what it wanted, until a worker wakes, or until the instant.
func (m *machine) step(until clock.Time) {
	now, threads, cores := m.sim.Now(), time.Duration(len(m.computing)), time.Duration(m.cores)
	if len(m.waking) > 0 {
		until = until.Earlier(m.waking[0].at)
	}
	for _, t := range m.computing {
		until = until.Earlier(now.Add(max(t.left, (t.left*threads+cores-1)/cores)))
	}
	passed := max(0, until.Sub(now))
	m.sim.MoveTo(until)
	var ended []*thread
	for _, t := range m.computing {
		work := min(t.left, passed, passed*cores/threads)
		m.used += work
		if t.left -= work; t.left == 0 {
			ended = append(ended, t)
		}
		if t == &m.loop {
			m.loopTime += passed
		}
	}
	m.computing = slices.DeleteFunc(m.computing, func(t *thread) bool { return t.left == 0 })
	for _, t := range ended {
		m.goOn(t)
	}
	for len(m.waking) > 0 && m.waking[0].at <= until {
		run := m.waking[0].run
		m.waking = m.waking[1:]
		t := new(thread)
		t.resume, _ = iter.Pull(func(yield func(time.Duration) bool) {
			t.yield = yield
			run()
		})
		m.goOn(t)
	}
}

// goOn runs a worker until it computes again, or ends. The loop goes on by itself: see compute.
func (m *machine) goOn(t *thread) {
	if t == &m.loop {
		return
	}
	before := m.current
	m.current = t
	if work, goesOn := t.resume(); goesOn {
		t.left = work
		m.computing = append(m.computing, t)
	}
	m.current = before
}

// runUntil runs the loop and the workers up to an instant. It returns an error if the loop stays busy at one instant.
func (m *machine) runUntil(end clock.Time) error {
	for m.sim.Now() < end {
		if err := m.sim.Settle(); err != nil {
			return err
		}
		next, ok := m.sim.Next()
		if !ok {
			next = end
		}
		m.step(next.Earlier(end))
	}
	return nil
}

// Go implements cpupool.Executor.
func (m *machine) Go(run func()) {
	m.waking = append(m.waking, waking{m.sim.Now().Add(m.costs.wake), run})
}

// Stop implements cpupool.Executor.
func (*machine) Stop() {}

// pool returns a pool on the machine.
func (m *machine) pool(workers int) virtualPool {
	return virtualPool{cpupool.New(virtualLoop{m.sim.Loop, m}, cpupool.Config{Workers: workers, Clock: m.sim.Clock, Executor: m}), m}
}

// virtualPool has the loop pay for the jobs that it hands over.
type virtualPool struct {
	*cpupool.Pool
	m *machine
}

// Submit implements scheduler.CPU.
func (p virtualPool) Submit(j *cpupool.Job) error {
	p.m.compute(p.m.costs.submit)
	return p.Pool.Submit(j)
}

// virtualLoop has the loop pay for the jobs that it takes back.
type virtualLoop struct {
	*loop.Loop
	m *machine
}

// Post implements cpupool.Loop.
func (l virtualLoop) Post(fn func()) bool {
	return l.Loop.Post(func() {
		l.m.compute(l.m.costs.giveBack)
		fn()
	})
}
