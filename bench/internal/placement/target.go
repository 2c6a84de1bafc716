package placement

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/harness"
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

// target sends user n's requests to the n-th plan of the order. Any goroutine.
type target struct {
	engine *rankd.Engine
	order  []string
	ask    rankd.SchedulingMode // of requests for the plan large

	mu    sync.Mutex
	cheap load.Histogram // latencies of the plan cheap
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

// Figures implements load.Reporting. The engine counts from its opening on, the warm-up included.
func (t *target) Figures() any {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.engine.Metrics()
	us := harness.InMicros[time.Duration]
	wall, cpu, placed := m.Loop.CallbackTime, m.Loop.CallbackCPU, &m.Placement
	return map[string]float64{
		"cheap_p99_us": t.cheap.Micros(99),
		"inline_rate":  placed.InlineRate(), "offload_rate": placed.OffloadRate(), "fused_rate": placed.FusedRate(),
		"start_delay_mean_us": startMean(placed), "start_delay_p99_us": us(placed.StartDelay.P99),
		"queue_delay_p50_us": us(placed.QueueDelay.P50), "offload_round_trip_p50_us": us(placed.OffloadRoundTrip.P50),
		"loop_callback_p50_us": us(wall.P50), "loop_callback_p99_us": us(wall.P99), "loop_callback_p999_us": us(wall.P999), "loop_callback_max_us": us(wall.Max),
		"loop_callback_cpu_p99_us": us(cpu.P99), "loop_callback_cpu_p999_us": us(cpu.P999), // 0 where the system does not tell
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
		c.target.cheap.Record(a.Elapsed)
		c.target.mu.Unlock()
	}
	c.answered(err)
}
