package placement

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
)

// Open opens an engine that has the plans of the scenario of that name. User n asks for the n-th plan
// of the scenario's order.
func Open(o rankd.Options, name string) (load.Target, error) {
	for _, s := range Scenarios() {
		if s.Name == name {
			o.Plans, o.AllowRequestScheduling = s.Folder(), s.Ask != ""
			o.Tasks = append(o.Tasks, burnTask(burn))
			e, err := rankd.Open(o)
			if err != nil {
				return nil, err
			}
			return &target{engine: e, order: s.Order, ask: s.Ask, cheap: load.NewHistogram()}, nil
		}
	}
	return nil, fmt.Errorf("no scenario %q", name)
}

// figures are what an engine tells of a round, beside its throughput and latency. The engine counts
// from its opening on, the warm-up included. Times are in µs.
type figures struct {
	CheapP99      float64 `json:"cheap_p99_us"` // 0 without a plan "cheap"
	InlineRate    float64 `json:"inline_rate"`
	OffloadRate   float64 `json:"offload_rate"`
	FusedRate     float64 `json:"fused_rate"`
	QueueDelay    float64 `json:"queue_delay_p50_us"`
	StartMean     float64 `json:"start_delay_mean_us"` // of all nodes
	StartP99      float64 `json:"start_delay_p99_us"`
	RoundTrip     float64 `json:"offload_round_trip_p50_us"`
	CallbackP50   float64 `json:"loop_callback_p50_us"`
	CallbackP99   float64 `json:"loop_callback_p99_us"`
	CallbackMax   float64 `json:"loop_callback_max_us"`
	CallbackP999  float64 `json:"loop_callback_p999_us"`
	CallbackCPU99 float64 `json:"loop_callback_cpu_p99_us"`  // 0 where the system does not tell
	CallbackCPU   float64 `json:"loop_callback_cpu_p999_us"` // likewise
}

// target sends user n's requests to the n-th plan of the order. Any goroutine.
type target struct {
	engine *rankd.Engine
	order  []string
	ask    rankd.SchedulingMode // of requests for the plan large

	mu    sync.Mutex
	cheap *hdrhistogram.Histogram // latencies of the plan cheap, ns
}

// NewClient implements load.Target.
func (t *target) NewClient(answered func(err error)) load.Client {
	c := &client{target: t, answered: answered}
	c.done = c.finished
	return c
}

// Close implements load.Target.
func (t *target) Close() { _ = t.engine.Close() } // fails only inside a callback

// BeginFigures implements load.Reporting.
func (t *target) BeginFigures() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cheap.Reset()
}

// Figures implements load.Reporting.
func (t *target) Figures() any {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.engine.Metrics()
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	wall, cpu := m.Loop.CallbackTime, m.Loop.CallbackCPU
	return figures{
		CheapP99:   us(time.Duration(t.cheap.ValueAtPercentile(99))),
		InlineRate: m.Placement.InlineRate(), OffloadRate: m.Placement.OffloadRate(), FusedRate: m.Placement.FusedRate(),
		StartMean: startMean(&m.Placement), StartP99: us(m.Placement.StartDelay.P99),
		QueueDelay: us(m.Placement.QueueDelay.P50), RoundTrip: us(m.Placement.OffloadRoundTrip.P50),
		CallbackP50: us(wall.P50), CallbackP99: us(wall.P99), CallbackP999: us(wall.P999), CallbackMax: us(wall.Max),
		CallbackCPU99: us(cpu.P99), CallbackCPU: us(cpu.P999),
	}
}

var _ load.Reporting = (*target)(nil)

// client keeps the callback, so that sending allocates nothing of its own.
type client struct {
	target   *target
	answered func(err error)
	done     func(*rankd.Answer, error)
}

// Send implements load.Client.
func (c *client) Send(user int64) {
	r := rankd.Request{UserID: user, Plan: c.target.order[user-1]}
	if r.Plan == large {
		r.Scheduling = c.target.ask
	}
	c.target.engine.Submit(context.Background(), r, c.done)
}

func (c *client) finished(a *rankd.Answer, err error) {
	if err == nil && a.Plan == cheap {
		c.target.mu.Lock()
		_ = c.target.cheap.RecordValue(int64(a.Elapsed)) // fails only out of range: minutes
		c.target.mu.Unlock()
	}
	c.answered(err)
}
