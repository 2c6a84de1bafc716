package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rankd/rankd/bench/backend"
	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/bench/fronts"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/internal/process"
	"github.com/rankd/rankd/plan"
)

// serveBench is a run of bench serve. One goroutine.
type serveBench struct {
	*serveOptions
	plan, artifact, redis string

	engine *worker.Process // asks itself
	client *worker.Process // asks served
	served *process.Replica
	folder string // of plans and of the files of foreign clients
	// rates are the requests per second that client has reached, by front and by number in flight.
	rates map[string]map[int]float64
}

// measureServe starts all processes and runs all rounds.
func (p *Program) measureServe(ctx context.Context, o *serveOptions, plan, artifact string) ([]fronts.Caller, []fronts.Result, compare.Facts, error) {
	b := &serveBench{serveOptions: o, plan: plan, artifact: artifact, rates: map[string]map[int]float64{}}
	facts, stop, err := p.startServe(ctx, b)
	defer stop()
	if err != nil {
		return nil, nil, facts, err
	}
	callers := []fronts.Caller{{Name: fronts.InProcess}, {Name: fronts.InProcess + ", JSON"}}
	runs := []func(ctx context.Context, inFlight int) (fronts.Sample, error){
		func(_ context.Context, inFlight int) (fronts.Sample, error) { return b.inProcess(inFlight, false) },
		func(_ context.Context, inFlight int) (fronts.Sample, error) { return b.inProcess(inFlight, true) },
	}
	for _, front := range o.fronts {
		b.rates[front] = map[int]float64{}
		callers = append(callers, frontBounds[front])
		runs = append(runs, func(_ context.Context, inFlight int) (fronts.Sample, error) { return b.own(front, inFlight) })
	}
	for _, f := range fronts.Foreigners() {
		if slices.Contains(o.clients, f.Program) && slices.Contains(o.fronts, f.Front) {
			callers = append(callers, fronts.Caller{Name: f.Name})
			runs = append(runs, func(ctx context.Context, inFlight int) (fronts.Sample, error) { return b.foreign(ctx, &f, inFlight) })
		}
	}
	results, err := fronts.Measure(ctx, callers, o.rounds,
		func(ctx context.Context, caller, inFlight int) (fronts.Sample, error) {
			return runs[caller](ctx, inFlight)
		},
		func(line string) { fmt.Fprintf(p.Stderr, "rankd: %s\n", line) })
	return callers, results, facts, err
}

// startServe starts Redis, the server and the two workers. stop ends them, also after an error.
func (p *Program) startServe(ctx context.Context, b *serveBench) (facts compare.Facts, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range slices.Backward(stops) {
			s()
		}
	}
	if b.folder, err = os.MkdirTemp("", "rankd-bench-"); err != nil {
		return facts, stop, err
	}
	stops = append(stops, func() { _ = os.RemoveAll(b.folder) })
	if err := writePlans(b.folder, map[string]string{b.plan: b.artifact}); err != nil {
		return facts, stop, err
	}
	redis, err := backend.Start(ctx, backend.Options{Server: b.redisServer})
	if err != nil {
		return facts, stop, err
	}
	stops = append(stops, redis.Close)
	b.redis = redis.Addr(0)
	p.warnOfEmbedded(redis)
	facts = compare.ReadFacts()
	facts.Redis = redis.Version
	own := engines.Spec{Kind: engines.Reactor}
	workers, stopWorkers, err := p.startWorkers(ctx, &fleet{specs: []engines.Spec{own.Unshared(), own}, cpuThreads: b.cpuThreads, env: "dev"})
	stops = append(stops, stopWorkers)
	if err != nil {
		return facts, stop, err
	}
	b.engine, b.client = workers[0], workers[1]
	b.served, err = startReplica(ctx, b.program, "--redis", b.redis, "--plan_dir", b.folder, "--plan_name", b.plan,
		"--cpu_threads", strconv.Itoa(b.cpuThreads), "--coalesce_reads=false")
	if err == nil {
		stops = append(stops, b.served.Kill)
	}
	return facts, stop, err
}

// warnOfEmbedded says on stderr that the figures are mostly those of the embedded Redis, if they are.
func (p *Program) warnOfEmbedded(redis *backend.Backend) {
	if redis.Embedded {
		fmt.Fprintf(p.Stderr, "rankd: %s\n", compare.EmbeddedWarning)
	}
}

// startReplica starts "rankd serve" of a program; empty means this one.
func startReplica(ctx context.Context, program string, args ...string) (*process.Replica, error) {
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	return process.StartReplica(ctx, process.ReplicaOptions{Program: program, Args: args})
}

// writePlans writes artifacts, by name, into a folder.
func writePlans(folder string, artifacts map[string]string) error {
	for name, text := range artifacts {
		if err := os.WriteFile(filepath.Join(folder, name+plan.ArtifactSuffix), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// round returns a round that has so many requests in flight.
func (b *serveBench) round(inFlight int) worker.Round {
	return worker.Round{
		Setup: worker.Setup{Plan: b.plan}, Users: []int64{benchUser}, Concurrency: inFlight, Duration: b.duration, Warmup: b.warmup,
	}
}

// inProcess has the engine ask itself, in JSON or not.
func (b *serveBench) inProcess(inFlight int, json bool) (fronts.Sample, error) {
	r := b.round(inFlight)
	r.Redis, r.Artifact, r.JSON = b.redis, b.artifact, json
	report, result, err := run(b.engine, &r)
	if err != nil {
		return fronts.Sample{}, err
	}
	return sampleOf(result, report.CPU), nil
}

// own has this program's client ask a front.
func (b *serveBench) own(front string, inFlight int) (fronts.Sample, error) {
	r := b.round(inFlight)
	r.Front, r.Server, r.Connections, r.ServerPID = front, b.served.RESP, min(b.connections, inFlight), b.served.Pid()
	if front == caller.HTTP {
		r.Server, r.Connections = b.served.HTTP, inFlight
	}
	report, result, err := run(b.client, &r)
	if err != nil {
		return fronts.Sample{}, err
	}
	b.rates[front][inFlight] = result.PerSecond()
	return sampleOf(result, report.ServerCPU), nil
}

// foreign has a foreign client ask its front.
func (b *serveBench) foreign(ctx context.Context, f *fronts.Foreign, inFlight int) (fronts.Sample, error) {
	c := fronts.Call{
		Addr: b.served.RESP, Plan: b.plan, User: benchUser, InFlight: inFlight, Duration: b.duration, Folder: b.folder,
		Requests: max(int64(b.rates[f.Front][inFlight]*b.duration.Seconds()), 1),
	}
	if f.Front == caller.HTTP {
		c.Addr = b.served.HTTP
	}
	before, err := load.ProcessCPU(b.served.Pid())
	if err != nil {
		return fronts.Sample{}, err
	}
	seen, err := f.Run(ctx, &c)
	if err != nil {
		return fronts.Sample{}, err
	}
	after, err := load.ProcessCPU(b.served.Pid())
	return fronts.Sample{
		PerSecond: seen.PerSecond, CPU: micros(int64(after-before)) / float64(seen.Requests), P50: seen.P50, P99: seen.P99,
	}, err
}

// run has a worker run a round in which no request may fail.
func run(w *worker.Process, r *worker.Round) (*worker.Report, *load.Result, error) {
	report, err := w.Run(r)
	if err != nil {
		return nil, nil, err
	}
	result, err := report.Result()
	switch {
	case err != nil:
		return nil, nil, err
	case result.FirstError != nil:
		return nil, nil, fmt.Errorf("%d of %d requests failed, the first with: %w", result.Errors, result.Answered, result.FirstError)
	case result.Refused != nil:
		return nil, nil, fmt.Errorf("%d requests were refused", result.Refused.Count)
	case result.Answered == 0:
		return nil, nil, errors.New("no request was answered")
	}
	return report, result, nil
}

// sampleOf returns the figures of a round that took so much CPU time.
func sampleOf(r *load.Result, cpu time.Duration) fronts.Sample {
	return fronts.Sample{
		PerSecond: r.PerSecond(), CPU: micros(int64(cpu)) / float64(r.Answered),
		P50: micros(r.Latency.ValueAtPercentile(50)), P99: micros(r.Latency.ValueAtPercentile(99)),
	}
}
