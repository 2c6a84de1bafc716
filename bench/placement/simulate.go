package placement

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"text/tabwriter"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Simulated is what a scenario did on virtual cores. Times are in µs, of virtual time. Immutable.
type Simulated struct {
	Scenario  string  `json:"scenario"`
	Variant   string  `json:"variant"`
	Cores     int     `json:"virtual_cores"`
	Workers   int     `json:"workers"`
	PerSecond float64 `json:"requests_per_second"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	// QueueDelay is of jobs, StartMean and StartP99 are from ready to start, of all nodes. They count the warm-up, too.
	QueueDelay float64 `json:"queue_delay_p50_us"`
	StartMean  float64 `json:"start_delay_mean_us"`
	StartP99   float64 `json:"start_delay_p99_us"`
	CPU        float64 `json:"cpu_us"`    // processor time per request
	Idle       float64 `json:"idle"`      // share of the cores' time that nobody used
	LoopBusy   float64 `json:"loop_busy"` // share of the time in which the loop computed or waited for a core
}

// Simulate runs a scenario in virtual time for each of the numbers of cores, with each mode: a closed loop that warms up for
// a fifth of the duration. Two calls return the same. Only for scenarios with Costed.
func Simulate(s *Scenario, cores []int, duration time.Duration) (results []Simulated, err error) {
	for _, cores := range cores {
		for _, v := range []Variant{Variants("")[offloadAll], Variants("")[adaptive], Variants("")[inlineAll]} {
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
	r = Simulated{Scenario: s.Name, Variant: v.Name, Cores: cores, Workers: scheduler.DefaultCPUThreads(cores)}
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
				_ = latencies.RecordValue(int64(now.Sub(began))) // fails only out of range: minutes
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
	figures := e.Metrics().Placement
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	r.PerSecond = float64(latencies.TotalCount()) / duration.Seconds()
	r.P50, r.P99 = us(time.Duration(latencies.ValueAtPercentile(50))), us(time.Duration(latencies.ValueAtPercentile(99)))
	r.QueueDelay, r.StartP99 = us(figures.QueueDelay.P50), us(figures.StartDelay.P99)
	r.StartMean = startMean(&figures)
	r.CPU = us(used) / float64(latencies.TotalCount())
	r.Idle = max(0, 1-float64(used)/float64(duration)/float64(cores))
	r.LoopBusy = float64(loopTime) / float64(duration)
	return r, nil
}

// startMean returns the mean time from ready to start, in µs.
func startMean(s *scheduler.PlacementStats) float64 {
	return float64(s.StartBuckets.Sum) / float64(max(1, s.StartBuckets.Count)) / float64(time.Microsecond)
}

// load returns the plans in the order of the requests. Their tasks take virtual time: each run of a node that is not heavy costs the same.
func (s *Scenario) load(m *machine, reg *registry.Registry) (graphs []*plan.Graph, err error) {
	specs := builtin.Specs()
	for i := range specs {
		run := specs[i].Run
		specs[i].Run = func(c *task.Ctx) (rowset.RowSet, error) {
			m.payForNode()
			return run(c)
		}
	}
	tasks, err := task.Engine(taskrun.Key{}).NewTrustingCatalog(append(specs, burnTask(func(d time.Duration) {
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

// WriteSimulated writes a table.
func WriteSimulated(w io.Writer, results []Simulated) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scenario\tvariant\tcores\tworkers\trequests/s\tp50 ms\tp99 ms\tqueue p50 ms\tstart mean ms\tp99 ms\tCPU µs\tidle\tloop busy\t")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.0f\t%.1f\t%.1f\t%.2f\t%.3f\t%.1f\t%.0f\t%.0f %%\t%.0f %%\t\n", r.Scenario, r.Variant, r.Cores, r.Workers,
			r.PerSecond, r.P50/1e3, r.P99/1e3, r.QueueDelay/1e3, r.StartMean/1e3, r.StartP99/1e3, r.CPU, 100*r.Idle, 100*r.LoopBusy)
	}
	return t.Flush()
}

// WriteSimulatedJSON writes a line for each result.
func WriteSimulatedJSON(w io.Writer, results []Simulated) (err error) {
	lines := json.NewEncoder(w)
	for _, r := range results {
		err = errors.Join(err, lines.Encode(r))
	}
	return err
}
