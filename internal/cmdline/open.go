package cmdline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/trace"
)

// EngineOptions returns the options of an engine, with the contents of the folders that the flags name.
func (e *EngineFlags) EngineOptions() (rankd.Options, error) {
	o := e.Options
	if o.BusyPoll == 0 {
		o.BusyPoll = -1 // Options have a default for zero.
	}
	o.TraceDetail, _ = trace.ParseDetail(e.Detail) // Check has refused what it refuses.
	if now, err := request.ParseNow(e.now); err == nil {
		o.Now = func() time.Time { return now }
	}
	o.PlansDir = ""
	if err := Folders(&o, e.PlansDir, e.RegistryDir, e.ModelDir); err != nil {
		return o, err
	}
	return o, checkPlanFile(o.PlanFile, o.Plans)
}

// Record makes the engine record a sample of requests for the sink, which may be nil.
func (e *EngineFlags) Record(o *rankd.Options, sink trace.Sink) {
	if sink != nil {
		o.TraceSink, o.TraceSample = sink, e.TracesOneIn
	}
}

// Format returns the form of answers.
func (e *EngineFlags) Format() rankd.Format {
	if e.Response == "fields" {
		return rankd.FormatFields
	}
	return rankd.FormatFlat
}

// CheckOffer refuses a folder with a bad plan if the flags do not choose a plan, so that requests may name any plan
// of the folder.
func (e *EngineFlags) CheckOffer(engine *rankd.Engine) error {
	if e.PlansDir == "" || e.Plan != "" || e.PlanFile != "" {
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
	err = fmt.Errorf("--plan: %s: %w", errtext.Name(path), errors.Unwrap(err))
	if folder == nil {
		folder = artifacts.Plans()
	}
	if _, notThere := fs.Stat(folder, path+".plan.json"); notThere == nil {
		return fmt.Errorf("%w; --plan_name %s names a plan", err, path)
	}
	return err
}
