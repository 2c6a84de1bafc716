package placement

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Simulated is what a scenario did on virtual cores. Immutable.
type Simulated struct {
	Variant        string
	Cores, Workers int
	// Figures are requests_per_second, p50_us, p99_us and cpu_us of requests; queue_delay_p50_us of jobs, start_delay_mean_us and
	// start_delay_p99_us from ready to start, of all nodes, which count the warm-up, too; idle, the share of the cores' time that nobody
	// used; and loop_busy, the share of the time in which the loop computed or waited for a core. Times are virtual.
	Figures map[string]float64
}

// Simulate runs a scenario in virtual time for each of the numbers of cores, with each mode: a closed loop that warms up for
// a fifth of the duration. Two calls return the same. Only for scenarios with Costed.
func Simulate(s *Scenario, cores []int, duration time.Duration) (results []Simulated, err error) {
	for _, cores := range cores {
		for _, v := range []Variant{Variants("")[OffloadAll], Variants("")[Adaptive], Variants("")[inlineAll]} {
			r, err := simulate(s, v, cores, duration)
			if err != nil {
				return nil, fmt.Errorf("%s, %s on %d virtual cores: %w", s.Name, v.Name, cores, err)
			}
			results = append(results, r)
		}
	}
	return results, nil
}

func simulate(s *Scenario, v Variant, cores int, duration time.Duration) (r Simulated, err error) {
	m := newMachine(cores, measuredCosts)
	reg, err := registry.Default("test")
	if err != nil {
		return r, err
	}
	graphs, err := s.load(m, reg)
	if err != nil {
		return r, err
	}
	o := v.Engine.Options(rankd.Options{})
	r = Simulated{Variant: v.Name, Cores: cores, Workers: scheduler.DefaultCPUThreads(cores)}
	pool := m.pool(r.Workers)
	e := scheduler.NewAsync(scheduler.AsyncConfig{
		Loop: m.sim.Loop, CPU: pool, Clients: make([]scheduler.Caller, len(reg.Endpoints())),
		Config: scheduler.Config{Registry: reg, Placement: scheduler.Placement{Mode: o.Scheduling.Mode}, MaxInflight: s.Concurrency},
	})

	warm := m.sim.Now().Add(duration / 5)
	end, inFlight, latencies := warm.Add(duration), 0, load.NewHistogram()
	random := rand.New(rand.NewPCG(2, 2)) // Plans that take turns would fall into step.
	var submit func()
	submit = func() {
		began := m.sim.Now()
		inFlight++
		x := &scheduler.Execution{Graph: graphs[random.IntN(len(graphs))], UserID: 1, Arrived: began}
		refused := e.Submit(x, func(a *scheduler.Result) {
			now := m.sim.Now()
			inFlight--
			if now > warm && now <= end {
				latencies.Record(now.Sub(began))
			}
			if a.Err != nil {
				err = a.Err
			} else if now < end {
				m.sim.At(now, submit)
			}
		})
		if refused != nil {
			err = refused
		}
	}
	for range s.Concurrency {
		m.sim.At(m.sim.Now(), submit)
	}
	if err := m.runUntil(warm); err != nil {
		return r, err
	}
	used, loopTime := m.used, m.loopTime
	if err := m.runUntil(end); err != nil {
		return r, err
	}
	used, loopTime = m.used-used, m.loopTime-loopTime

	for inFlight > 0 && err == nil { // Close comes at no instant of virtual time, so it must not meet a request.
		if err := m.runUntil(m.sim.Now().Add(time.Millisecond)); err != nil {
			return r, err
		}
	}
	ended := make(chan struct{})
	go func() { // Close waits for what the loop does.
		e.Close(scheduler.Forever)
		pool.Close()
		close(ended)
	}()
	for open := true; open; {
		select {
		case <-ended:
			open = false
		default:
			if err := m.runUntil(m.sim.Now().Add(time.Millisecond)); err != nil {
				return r, err
			}
		}
	}
	if stopped := m.sim.Stop(); stopped != nil || err != nil {
		return r, errors.Join(err, stopped)
	}
	figures, n := e.Metrics().Placement, float64(latencies.TotalCount())
	r.Figures = map[string]float64{
		"requests_per_second": n / duration.Seconds(), "cpu_us": harness.InMicros(used) / n,
		"p50_us": latencies.Micros(50), "p99_us": latencies.Micros(99),
		"queue_delay_p50_us": harness.InMicros(figures.QueueDelay.P50), "start_delay_mean_us": startMean(&figures),
		"start_delay_p99_us": harness.InMicros(figures.StartDelay.P99),
		"idle":               max(0, 1-float64(used)/float64(duration)/float64(cores)), "loop_busy": float64(loopTime) / float64(duration),
	}
	return r, nil
}

// startMean returns the mean time from ready to start, in µs.
func startMean(s *scheduler.PlacementStats) float64 {
	return float64(s.StartBuckets.Sum) / float64(max(1, s.StartBuckets.Count)) / float64(time.Microsecond)
}

// load returns the plans in the order of the requests. Their tasks take virtual time: each run of a node that is not heavy costs the same.
func (s *Scenario) load(m *machine, reg *registry.Registry) (graphs []*plan.Graph, err error) {
	engine, specs := task.Engine(taskrun.Key{}), builtin.Specs()
	for i := range specs {
		run := engine.Body(specs[i])
		specs[i] = engine.WithBody(specs[i], func(c *task.Ctx) (rowset.RowSet, error) {
			m.payForNode()
			return run(c)
		})
	}
	tasks, err := engine.NewTrustingCatalog(append(specs, burnTask(func(d time.Duration) {
		m.payForNode()
		m.compute(d)
	})))
	if err != nil {
		return nil, err
	}
	folder := s.Folder()
	for _, name := range s.Order {
		text, err := folder.ReadFile(name + ".plan.json")
		if err != nil {
			return nil, err
		}
		g, err := plan.Load(name, text, tasks, reg)
		if err != nil {
			return nil, err
		}
		graphs = append(graphs, g)
	}
	return graphs, nil
}

// payForNode computes for as long as a cheap node takes. A worker also pays for taking the job.
func (m *machine) payForNode() {
	work := m.costs.cheap
	if m.current != &m.loop {
		work += m.costs.take
	}
	m.compute(work)
}
