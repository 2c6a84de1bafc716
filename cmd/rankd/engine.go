package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/internal/command"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/trace"
)

// setting is what an engine is opened with besides the flags. Immutable.
type setting struct {
	stderr io.Writer
	plans  rankd.Compiler // of plans in TypeScript
	redis  *embeddedRedis
	sink   trace.Sink // takes the traces of a sample; nil: there is none
}

// openEngine opens the engine that the flags ask for. Where plans run, it reports on stderr
// what the user did not ask for: a synthetic answer, an embedded Redis.
func openEngine(o *options, with setting) (*rankd.Engine, error) {
	asked := o.job()
	options, err := engineOptions(o)
	if err != nil {
		return nil, err
	}
	options.Logger, options.Compiler = command.Logger(with.stderr), with.plans
	if with.sink != nil {
		options.TraceSink, options.TraceSample = with.sink, o.traceSample
	}
	options.NoSecrets = !asked.runsPlans()
	if o.env == "dev" && asked.runsPlans() {
		options.EmbeddedRedis = with.redis.start
	}
	e, err := rankd.Open(options)
	if err != nil {
		return nil, err
	}
	if err := checkOffer(e, o); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if asked == jobServe && options.Synthetic {
		fmt.Fprintln(with.stderr, "rankd: no plan is chosen (--plan_name, --plan or --plan_dir): "+
			"a request that names none gets five synthetic candidates")
	}
	with.redis.announce(with.stderr)
	return e, nil
}

// embeddedRedis is the Redis inside the process. It starts when an engine first asks for it. The
// zero value is ready. One goroutine.
type embeddedRedis struct {
	server    *devredis.Server // nil until it starts
	announced bool
}

// start returns the address of the server for rankd.Options.EmbeddedRedis. Several engines, one after
// the other, use the same one.
func (r *embeddedRedis) start() (addr string, stop func(), err error) {
	if r.server == nil {
		if r.server, err = devredis.Start(); err != nil {
			return "", nil, err
		}
	}
	return r.server.Addr(), func() {}, nil
}

// announce says once that the server runs, if it does.
func (r *embeddedRedis) announce(stderr io.Writer) {
	if r.server == nil || r.announced {
		return
	}
	r.announced = true
	fmt.Fprintf(stderr, "rankd: using an embedded Redis with demo data of %d users on %s (--redis host:port for your own)\n",
		devredis.Users, r.server.Addr())
}

// close stops the server, if it runs.
func (r *embeddedRedis) close() {
	if r.server != nil {
		r.server.Close()
	}
}

// engineOptions returns the flags as options of an engine.
func engineOptions(o *options) (rankd.Options, error) {
	e := rankd.Options{
		Redis: o.redis, Env: o.env, Plan: o.planName, PlanFile: o.plan,
		Synthetic: o.planName == "" && o.plan == "" && o.planDir == "",
		Model:     rankd.Model(o.engine), CPUThreads: o.cpuThreads, IOThreads: o.ioThreads, RedisConnections: o.redisPool,
		Scheduling: rankd.Scheduling{
			Mode: rankd.SchedulingMode(o.scheduling), NoInlineExecution: !o.enableInlineExecution,
			NoContinuationChaining: !o.enableContinuationChaining,
			InlineThreshold:        time.Duration(o.inlineThresholdNS), MaxInlineDepth: o.maxInlineDepth,
		},
		AllowRequestScheduling: o.allowRequestScheduling,
		AllowRequestTrace:      o.allowRequestTrace,
		AllowRequestExplain:    o.allowRequestExplain,
		Timeout:                o.deadline, NodeTimeout: o.nodeTimeout, MaxRows: o.maxRows,
		MaxReplyBytes: o.maxReplyBytes, NoCoalesceReads: !o.coalesceReads,
		BusyPoll: time.Duration(o.busyPollUS) * time.Microsecond,
	}
	if o.busyPollUS == 0 {
		e.BusyPoll = -1
	}
	e.TraceDetail, _ = trace.ParseDetail(o.traceDetail) // checked with the flags
	if err := command.Folders(&e, o.planDir, o.registryDir, o.modelDir); err != nil {
		return e, err
	}
	return e, checkPlanFile(o.plan, e.Plans)
}

// checkOffer refuses a folder with a bad plan where requests may name any plan of the folder
// and the flags choose none.
func checkOffer(e *rankd.Engine, o *options) error {
	if o.job() != jobServe || o.planDir == "" || o.planName != "" || o.plan != "" {
		return nil
	}
	all, err := e.Plans()
	for _, p := range all {
		if err == nil {
			err = p.Err
		}
	}
	return err
}

// checkPlanFile refuses a --plan that does not exist. The error names --plan_name if the path
// would be the name of a plan in folder; nil means the examples.
func checkPlanFile(path string, folder fs.FS) error {
	_, err := os.Stat(path)
	if path == "" || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err = fmt.Errorf("--plan: %s: %w", excerpt.Name(path), errors.Unwrap(err))
	if folder == nil {
		folder = artifacts.Plans()
	}
	if _, notThere := fs.Stat(folder, path+".plan.json"); notThere == nil {
		return fmt.Errorf("%w; --plan_name %s names a plan", err, path)
	}
	return err
}

// shutDownAfter makes the engine refuse new requests as soon as ctx ends, and fail the
// requests in flight when the grace is over. The caller calls callOff before it closes the
// engine.
func shutDownAfter(ctx context.Context, e *rankd.Engine, o *options) (callOff func()) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		grace, cancel := context.WithTimeout(context.Background(), o.shutdownGrace)
		defer cancel()
		_ = e.Shutdown(grace) // reports that the grace was too short; the answers say so
	})
	return func() {
		if !stop() {
			<-ended
		}
	}
}
