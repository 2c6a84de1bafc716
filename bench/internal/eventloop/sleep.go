package eventloop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/bench/load"
)

// SleepResult compares tasks that wait on the loop with tasks that wait on workers. Immutable.
type SleepResult struct {
	Tasks   int     `json:"tasks"`
	SleepMS float64 `json:"sleep_ms"` // of each task
	Workers int     `json:"workers"`  // of the pool

	// Suspended coroutines, one goroutine for all of them.
	CoroWallMS  float64 `json:"coro_wall_ms"`
	CoroLatency Latency `json:"coro_latency"`
	// Blocked workers.
	PoolWallMS  float64 `json:"pool_wall_ms"`
	PoolLatency Latency `json:"pool_latency"`

	Speedup float64 `json:"speedup_ratio"` // the pool's wall time divided by the loop's
	Memory
}

// SleepVsPool starts a number of sleeping tasks together: first on the reactor engine, then on
// the pool engine, whose workers sleep with them.
func SleepVsPool(tasks int, sleep time.Duration, workers int) (*SleepResult, error) {
	r := &SleepResult{Tasks: tasks, SleepMS: millis(sleep), Workers: workers}
	r.StartKB = residentKB()
	coro, err := sleepOn(rankd.Reactor, tasks, sleep, workers)
	if err != nil {
		return nil, err
	}
	pool, err := sleepOn(rankd.Pool, tasks, sleep, workers)
	if err != nil {
		return nil, err
	}
	r.CoroWallMS, r.CoroLatency = millis(coro.Elapsed), summarize(coro.Latency)
	r.PoolWallMS, r.PoolLatency = millis(pool.Elapsed), summarize(pool.Latency)
	if coro.Elapsed > 0 {
		r.Speedup = float64(pool.Elapsed) / float64(coro.Elapsed)
	}
	r.EndKB = residentKB()
	return r, nil
}

// sleepPlan is a source and a sleep.
const sleepPlan = `{"schema_version": 1, "plan_name": "sleep", "nodes": [
	{"node_id": "source", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},
	{"node_id": "sleep", "op": "test::sleep", "inputs": ["source"], "params": {"duration_ms": %d}}], "outputs": ["sleep"]}`

func sleepOn(model rankd.Model, tasks int, sleep time.Duration, workers int) (*load.Result, error) {
	target, err := engines.Open(rankd.Options{
		Env: "test", PlanText: fmt.Appendf(nil, sleepPlan, sleep.Milliseconds()), Model: model, CPUThreads: workers,
	})
	if err != nil {
		return nil, err
	}
	defer target.Close()
	all := load.Load{Users: []int64{1}, Concurrency: tasks, Requests: int64(tasks)}
	result, err := load.Driver{}.Run(context.Background(), target, all)
	if err == nil && result.Errors > 0 {
		err = errors.New(result.FirstError)
	}
	return result, err
}
