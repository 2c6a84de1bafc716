// Command loopback measures the reactor against a redis-server on this machine,
// with redis-benchmark beside it as the yardstick, in interleaved rounds of one run:
//
//	go run ./bench/loopback
//
// It starts a redis-server of its own on a free port, fills it with the demo
// data set, and prints, as medians over the rounds:
//
//   - commands per second: concat_plan at 64 requests in flight, against
//     redis-benchmark -P 64 -c 4 HGETALL;
//   - latency: concat_plan at one request in flight, against three plain round trips
//     of a blocking client, taking turns (the plan needs three, one after the other);
//   - round trips per request of the plan at fan-out 4 and at fan-out 100;
//   - allocations and bytes allocated per request.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/bench/backend"
	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

type options struct {
	server, benchmark string
	rounds            int
	requests          int
	cpuThreads        int
	planName          string
	cpuProfile        string
	memProfile        string
}

func main() {
	var o options
	flag.StringVar(&o.server, "redis-server", "redis-server", "the redis-server to start")
	flag.StringVar(&o.benchmark, "redis-benchmark", "redis-benchmark", "the redis-benchmark to compare with")
	flag.IntVar(&o.rounds, "rounds", 5, "interleaved rounds; medians are printed")
	flag.IntVar(&o.requests, "requests", 60_000, "requests per round at 64 in flight")
	flag.IntVar(&o.cpuThreads, "cpu-threads", min(runtime.NumCPU(), 8), "CPU workers")
	flag.StringVar(&o.planName, "plan", "concat_plan", "plan to run")
	flag.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile of the loads at 64 in flight to this file")
	flag.StringVar(&o.memProfile, "memprofile", "", "write an allocation profile to this file")
	flag.Parse()
	if o.memProfile != "" {
		runtime.MemProfileRate = 512
	}
	rankd.TuneRuntime(o.cpuThreads) // as cmd/rankd does
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "loopback:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctx := context.Background()
	redis, err := backend.Start(ctx, backend.Options{Server: o.server})
	if err != nil {
		return err
	}
	defer redis.Close()
	addr := redis.Addr(0)
	narrow, err := openPlan(o, addr, 0)
	if err != nil {
		return err
	}
	defer narrow.Close()
	wide, err := openPlan(o, addr, 100)
	if err != nil {
		return err
	}
	defer wide.Close()

	fmt.Printf("%s on %d cores, %s, %d CPU workers, GOMAXPROCS %d, %d rounds, plan %s for user 1, equal reads not shared\n\n",
		runtime.Version(), runtime.NumCPU(), redis.Version, o.cpuThreads, runtime.GOMAXPROCS(0), o.rounds, o.planName)

	closedLoop := func(e *rankd.Engine, concurrency, requests int) (*measured, error) {
		return measure(ctx, engines.NewTarget(e), concurrency, requests)
	}
	if _, err := closedLoop(narrow, 64, o.requests/4); err != nil { // warm-up
		return err
	}
	if o.cpuProfile != "" || o.memProfile != "" {
		return profile(o, func() error {
			_, err := closedLoop(narrow, 64, o.requests*o.rounds)
			return err
		})
	}

	var busy, yardstick, p50, p50Plain, allocs, bytes []float64
	for round := range o.rounds {
		busy64, err := closedLoop(narrow, 64, o.requests)
		if err != nil {
			return err
		}
		commands := float64(busy64.traffic.Commands) / busy64.Elapsed.Seconds()
		rb, err := backend.RedisBenchmark(ctx, o.benchmark, addr)
		if err != nil {
			return err
		}
		alone, plain, err := latencies(narrow, addr, o.requests/20)
		if err != nil {
			return err
		}
		busy, yardstick = append(busy, commands), append(yardstick, rb)
		p50, p50Plain = append(p50, micros(alone)), append(p50Plain, micros(plain))
		allocs = append(allocs, float64(busy64.usage.Allocs)/float64(o.requests))
		bytes = append(bytes, float64(busy64.usage.AllocBytes)/float64(o.requests))
		fmt.Printf("round %d: 64 in flight %8.0f requests/s %9.0f commands/s p50 %.0f us p99 %.0f us; redis-benchmark %9.0f/s;"+
			" 1 in flight p50 %.0f us; three plain round trips p50 %.0f us\n", round+1,
			busy64.PerSecond(), commands, busy64.quantile(50), busy64.quantile(99), rb,
			micros(alone), micros(plain))
	}

	fmt.Println()
	fmt.Printf("commands per second, 64 in flight       %9.0f\n", median(busy))
	fmt.Printf("redis-benchmark -P 64 -c 4 HGETALL      %9.0f\n", median(yardstick))
	fmt.Printf("  ratio (median of the rounds' ratios)  %9.2f\n", medianRatio(busy, yardstick))
	fmt.Printf("p50 of a request, 1 in flight           %9.1f us\n", median(p50))
	fmt.Printf("three plain round trips, p50            %9.1f us\n", median(p50Plain))
	fmt.Printf("  ratio                                 %9.2f\n", medianRatio(p50, p50Plain))
	fmt.Printf("allocations per request, 64 in flight   %9.1f (%.0f bytes)\n", median(allocs), median(bytes))

	for _, c := range []struct {
		name   string
		engine *rankd.Engine
	}{{"fan-out as in the plan", narrow}, {"fan-out 100", wide}} {
		const n = 200
		m, err := closedLoop(c.engine, 1, n)
		if err != nil {
			return err
		}
		fmt.Printf("%-24s %5.1f round trips, %6.1f commands per request\n",
			c.name+":", float64(m.traffic.RoundTrips)/n, float64(m.traffic.Commands)/n)
	}
	return nil
}

// profile runs one long load under the profilers, without the yardsticks.
func profile(o options, load func() error) error {
	if o.cpuProfile != "" {
		f, err := os.Create(o.cpuProfile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if err := load(); err != nil || o.memProfile == "" {
		return err
	}
	f, err := os.Create(o.memProfile)
	if err != nil {
		return err
	}
	defer f.Close()
	return pprof.Lookup("allocs").WriteTo(f, 0)
}

// measured is one load with what it cost.
type measured struct {
	*load.Result
	traffic load.Traffic
	usage   load.Usage // of the whole process
}

// quantile returns a percentile of the latencies in microseconds.
func (m *measured) quantile(percent float64) float64 {
	return float64(m.Latency.ValueAtPercentile(percent)) / 1e3
}

func measure(ctx context.Context, target *engines.Target, concurrency, requests int) (*measured, error) {
	var m measured
	traffic, usage := target.Traffic(), load.Usage{}
	driver := load.Driver{
		Begin: func() { usage = load.ReadUsage() },
		End:   func() { m.usage = load.ReadUsage().Since(usage) },
	}
	var err error
	m.Result, err = driver.Run(ctx, target, load.Load{Users: []int64{1}, Concurrency: concurrency, Requests: int64(requests)})
	if err != nil {
		return nil, err
	}
	if m.Errors > 0 {
		return nil, fmt.Errorf("%d of %d requests failed, the first with: %w", m.Errors, requests, m.FirstError)
	}
	m.traffic = target.Traffic().Sub(traffic)
	return &m, nil
}

// openPlan opens an engine on the Redis at addr. Its plan is an example, with every fanout set
// to fanout unless that is 0.
func openPlan(o options, addr string, fanout int) (*rankd.Engine, error) {
	text, err := fs.ReadFile(artifacts.Plans(), o.planName+".plan.json")
	if err != nil {
		return nil, err
	}
	if fanout > 0 {
		if text, err = engines.WithFanout(text, fanout); err != nil {
			return nil, err
		}
	}
	return rankd.Open(rankd.Options{Redis: addr, PlanFile: o.planName, PlanText: text, CPUThreads: o.cpuThreads,
		NoCoalesceReads: true}) // All requests are for user 1, who makes all reads equal.
}

// latencies returns the medians of a request with nothing else in flight, and of three HGETALLs
// one after the other on a blocking connection. The two take turns, one by one: on a virtual machine
// a round trip takes 9 µs or 60 µs, depending on whether a core has had the time to fall
// asleep, and that lasts for seconds. Side by side, both meet the same machine.
func latencies(engine *rankd.Engine, addr string, n int) (request, plain time.Duration, err error) {
	c := blocking.NewClient(clock.NewReal(), resp.Options{Addr: addr})
	defer c.Close()
	var b resp.Batch
	b.Cmd("HGETALL", "user:1")
	requests, plains := make([]time.Duration, n), make([]time.Duration, n)
	answered := make(chan error, 1)
	for i := range n {
		start := time.Now()
		engine.Submit(context.Background(), rankd.Request{UserID: 1}, func(_ *rankd.Answer, err error) {
			requests[i] = time.Since(start)
			answered <- err
		})
		if err := <-answered; err != nil {
			return 0, 0, err
		}
		start = time.Now()
		for range 3 {
			if err := c.Do(&b, 0, func(resp.Replies) error { return nil }); err != nil {
				return 0, 0, err
			}
		}
		plains[i] = time.Since(start)
	}
	slices.Sort(requests)
	slices.Sort(plains)
	return requests[n/2], plains[n/2], nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// medianRatio returns the median of the ratios within each round. Noise that lasts longer than
// a round leaves these alone.
func medianRatio(a, b []float64) float64 {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return median(r)
}
