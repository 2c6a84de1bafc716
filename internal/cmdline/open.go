package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/request"
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

// CheckOffer refuses a folder of plans with a bad one, if requests may name any of them: if the flags do not choose a
// plan. The folder is that of a flag, or the program's own.
func (e *EngineFlags) CheckOffer(engine *rankd.Engine) error {
	if e.PlansDir == "" && e.Plans == nil || e.Plan != "" || e.PlanFile != "" {
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
		folder = demo.Plans()
	}
	if _, notThere := fs.Stat(folder, path+".plan.json"); notThere == nil {
		return fmt.Errorf("%w; --plan_name %s names a plan", err, path)
	}
	if !strings.HasSuffix(path, ".ts") && !strings.HasSuffix(path, ".json") {
		return fmt.Errorf("%w; a plan is a file such as %s.plan.ts", err, errtext.Name(path))
	}
	return err
}

// EmbeddedRedis is the Redis inside the process. It starts when an engine first needs it. The zero value is ready.
// One goroutine.
type EmbeddedRedis struct {
	server    *devredis.Server // nil until it starts
	announced bool
}

// Start returns the address of the server for rankd.Options.EmbeddedRedis. Several engines, one after
// the other, use the same one.
func (r *EmbeddedRedis) Start() (addr string, stop func(), err error) {
	if r.server == nil {
		if r.server, err = devredis.Start(); err != nil {
			return "", nil, err
		}
	}
	return r.server.Addr(), func() {}, nil
}

// Addr returns the address of the server, or "" if it does not run.
func (r *EmbeddedRedis) Addr() string {
	if r.server == nil {
		return ""
	}
	return r.server.Addr()
}

// Announce calls tell with the address and the number of users, once, if the server runs.
func (r *EmbeddedRedis) Announce(tell func(addr string, users int)) {
	if r.server == nil || r.announced {
		return
	}
	r.announced = true
	tell(r.server.Addr(), devredis.Users)
}

// Close stops the server, if it runs.
func (r *EmbeddedRedis) Close() {
	if r.server != nil {
		r.server.Close()
	}
}

// TraceFile is the file of --trace_file. A nil TraceFile takes nothing. One goroutine; any goroutine may use its
// sink.
type TraceFile struct {
	*trace.Writer
	file *os.File
}

// OpenTraceFile creates the file. It returns nil without the flag. As with trace.NewWriter, another goroutine calls
// report when writing begins to fail and when it works again.
func (e *EngineFlags) OpenTraceFile(report func(error)) (*TraceFile, error) {
	if e.TraceFile == "" {
		return nil, nil
	}
	file, err := os.Create(e.TraceFile)
	if err != nil {
		return nil, fmt.Errorf("--trace_file: %w", err)
	}
	return &TraceFile{trace.NewWriter(file, report), file}, nil
}

// Sink returns the sink that writes to the file, or nil.
func (f *TraceFile) Sink() trace.Sink {
	if f == nil {
		return nil
	}
	return f.Writer
}

// Close writes what waits for at most that time. It returns how many traces came too fast for the file.
func (f *TraceFile) Close(patience time.Duration) (dropped int, err error) {
	if f == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("it took too little in %v", patience))
	defer cancel()
	dropped, err = f.Shutdown(ctx)
	if closing := f.file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		err = &RuntimeError{Err: fmt.Errorf("writing %s: %w", errtext.Name(f.file.Name()), err)}
	}
	return dropped, err
}
