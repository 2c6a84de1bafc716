package engineflags

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/internal/command"
	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/trace"
)

// Options returns the flags as options of an engine.
func (e *Flags) Options() (rankd.Options, error) {
	o := rankd.Options{
		Redis: e.Redis, Env: e.Env, Plan: e.PlanName, PlanFile: e.Plan,
		Model: rankd.Model(e.Engine), CPUThreads: e.CPUThreads, IOThreads: e.IOThreads, RedisConnections: e.RedisPool,
		Scheduling: rankd.Scheduling{
			Mode: rankd.SchedulingMode(e.Scheduling), NoInlineExecution: !e.EnableInlineExecution,
			NoContinuationChaining: !e.EnableContinuationChaining,
			InlineThreshold:        time.Duration(e.InlineThresholdNS), MaxInlineDepth: e.MaxInlineDepth,
		},
		AllowRequestScheduling: e.AllowRequestScheduling,
		AllowRequestTrace:      e.AllowRequestTrace,
		AllowRequestExplain:    e.AllowRequestExplain,
		Timeout:                e.Timeout, NodeTimeout: e.NodeTimeout, MaxRows: e.MaxRows,
		MaxReplyBytes: e.MaxReplyBytes, NoCoalesceReads: !e.CoalesceReads,
		BusyPoll: time.Duration(e.BusyPollUS) * time.Microsecond,
	}
	if e.BusyPollUS == 0 {
		o.BusyPoll = -1
	}
	o.TraceDetail, _ = trace.ParseDetail(e.TraceDetail) // Check has refused what it refuses.
	if err := command.Folders(&o, e.PlanDir, e.RegistryDir, e.ModelDir); err != nil {
		return o, err
	}
	return o, checkPlanFile(e.Plan, o.Plans)
}

// Record makes the engine record a sample of requests for the sink, which may be nil.
func (e *Flags) Record(o *rankd.Options, sink trace.Sink) {
	if sink != nil {
		o.TraceSink, o.TraceSample = sink, e.TraceSample
	}
}

// Format returns the form of answers.
func (e *Flags) Format() rankd.Format {
	if e.Response == "fields" {
		return rankd.FormatFields
	}
	return rankd.FormatFlat
}

// CheckOffer refuses a folder with a bad plan where requests may name any plan of the folder
// and the flags choose none.
func (e *Flags) CheckOffer(engine *rankd.Engine) error {
	if e.PlanDir == "" || e.PlanName != "" || e.Plan != "" {
		return nil
	}
	all, err := engine.Plans()
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
