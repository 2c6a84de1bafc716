package program

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/trace"
)

// setting is what an engine is opened with besides the flags. Immutable.
type setting struct {
	stderr io.Writer
	plans  rankd.Compiler // of plans in TypeScript
	redis  *cmdline.EmbeddedRedis
	sink   trace.Sink    // takes the traces of a sample; nil: there is none
	logs   rankd.Options // has Served and Record, which take what is logged; nil: nothing is
}

// openLogged is openEngine with the log of what is served, and records. The caller calls close, which closes the engine, too.
func openLogged(o *options, with setting) (e *rankd.Engine, close func() error, err error) {
	closeLog, err := o.OpenLogs(&with.logs, nil)
	if err != nil {
		return nil, nil, err
	}
	if e, err = openEngine(o, with); err != nil {
		return nil, nil, errors.Join(err, closeLog())
	}
	return e, func() error {
		err := e.Close()
		for _, loss := range [...]string{cmdline.ServedLoss(e), cmdline.RecordLoss(e)} {
			if loss != "" {
				fmt.Fprintf(with.stderr, "rankd: %s\n", loss)
			}
		}
		return errors.Join(err, closeLog())
	}, nil
}

// openEngine opens the engine that the flags ask for. Where plans run, it reports on stderr
// what the user did not ask for: a synthetic answer, an embedded Redis.
func openEngine(o *options, with setting) (*rankd.Engine, error) {
	asked := o.job()
	if asked == jobPrintRegistry { // What rankd.toml names has no effect then.
		o.PlansDir, o.ModelDir = "", ""
	}
	options, err := engineOptions(o)
	if err != nil {
		return nil, err
	}
	options.Logger, options.Compiler = cmdline.Logger(with.stderr), with.plans
	o.Record(&options, with.sink)
	if options.Served = with.logs.Served; options.Served == nil {
		options.ServedUsers, options.ServedUserKeys = 0, ""
	}
	if options.Record = with.logs.Record; options.Record == nil {
		options.RecordUsers, options.RecordNoModels = 0, false
	}
	options.NoSecrets = !asked.runsPlans()
	if o.Env == "dev" && asked.runsPlans() {
		options.EmbeddedRedis = with.redis.Start
	}
	e, err := rankd.Open(options)
	if err != nil {
		return nil, err
	}
	if asked == jobServe {
		if err := o.CheckOffer(e); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	if asked == jobServe && options.Synthetic {
		fmt.Fprintln(with.stderr, "rankd: no plan is chosen (--plan_name, --plan or --plan_dir): "+
			"a request that names none gets five synthetic candidates")
	}
	with.redis.Announce(func(addr string, users int) {
		fmt.Fprintf(with.stderr, "rankd: using an embedded Redis with demo data of %d users on %s (--redis host:port for your own)\n", users, addr)
	})
	return e, nil
}

// engineOptions returns the flags as options of an engine.
func engineOptions(o *options) (rankd.Options, error) {
	e, err := o.EngineOptions()
	e.Synthetic = o.Plan == "" && o.PlanFile == "" && e.Plans == nil
	return e, err
}

// shutDownAfter makes the engine refuse new requests as soon as ctx ends, and fail the
// requests in flight when the grace is over. The caller calls callOff before it closes the
// engine.
func shutDownAfter(ctx context.Context, e *rankd.Engine, o *options) (callOff func()) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		grace, cancel := context.WithTimeout(context.Background(), o.ShutdownGrace)
		defer cancel()
		_ = e.Shutdown(grace) // reports that the grace was too short; the answers say so
	})
	return func() {
		if !stop() {
			<-ended
		}
	}
}
