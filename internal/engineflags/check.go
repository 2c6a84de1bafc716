package engineflags

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/command"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
)

// LimitMSMax is the longest limit of time that one can set, in milliseconds: some 24 days.
const LimitMSMax = 1<<31 - 1

// busyPollUSMax is the longest busy poll that one can set: a tenth of a second.
const busyPollUSMax = 100_000

// Number is a flag that takes numbers from Least to Most. Immutable; any goroutine.
type Number struct {
	Name               string
	Value, Least, Most int
}

// CheckNumbers reports each number that is out of its range, of flags that the command has.
func CheckNumbers(given *pflag.FlagSet, numbers ...Number) error {
	var problems []error
	for _, n := range numbers {
		if Has(given, n.Name) && (n.Value < n.Least || n.Value > n.Most) {
			problems = append(problems, fmt.Errorf("--%s is a number from %d to %d, not %d", n.Name, n.Least, n.Most, n.Value))
		}
	}
	return errors.Join(problems...)
}

// Has reports whether a command has a flag.
func Has(flags *pflag.FlagSet, name string) bool { return flags.Lookup(name) != nil }

// Check reports all that is wrong with the values at once, and completes them.
func (e *Flags) Check(given *pflag.FlagSet) error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch rankd.SchedulingMode(e.Scheduling) {
	case rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll:
	default:
		problem("--scheduling is adaptive, offload_all or inline_all, not %q", e.Scheduling)
	}
	if Has(given, "response") && e.Response != "flat" && e.Response != "fields" {
		problem("--response is flat or fields, not %q", e.Response)
	}
	if err := CheckNumbers(given,
		Number{"cpu_threads", e.CPUThreads, 1, 1 << 10},
		Number{"io_threads", e.IOThreads, 1, 1 << 14},
		Number{"redis_pool", e.RedisPool, 0, 1 << 12},
		Number{"max_rows", e.MaxRows, 1, task.MaxRowsLimit},
		Number{"max_reply_bytes", e.MaxReplyBytes, 1, resp.MaxReplyBytesLimit},
		Number{"busy_poll_us", e.BusyPollUS, 0, busyPollUSMax},
		Number{"inline_threshold_ns", e.InlineThresholdNS, 1, int(time.Second)},
		Number{"max_inline_depth", e.MaxInlineDepth, 1, 1 << 16},
		Number{"trace_sample", e.TraceSample, 1, 1 << 30},
		Number{"deadline_ms", e.DeadlineMS, 0, LimitMSMax},
		Number{"node_timeout_ms", e.NodeTimeoutMS, 0, LimitMSMax},
		Number{"shutdown_grace_ms", e.ShutdownGraceMS, 0, LimitMSMax},
	); err != nil {
		problems = append(problems, err)
	}
	e.Timeout = Milliseconds(e.DeadlineMS)
	e.NodeTimeout = Milliseconds(e.NodeTimeoutMS)
	e.ShutdownGrace = Milliseconds(e.ShutdownGraceMS)
	if detail, err := trace.ParseDetail(e.TraceDetail); Has(given, "trace_detail") && (err != nil || detail == trace.Off) {
		problem("--trace_detail is nodes or full, not %q", e.TraceDetail)
	}
	if e.Redis != "" {
		if _, err := rankd.RedisAddr(e.Redis); err != nil {
			problem("--redis is host:port or a URL: %w", err)
		}
	}
	return errors.Join(problems...)
}

// Milliseconds returns a number of milliseconds as a duration.
func Milliseconds(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

// ChooseEngine sets the engine that the three flags name together.
func (e *Flags) ChooseEngine(given *pflag.FlagSet) error {
	switch e.Engine {
	case Reactor, Pool, Sequential:
	default:
		return fmt.Errorf("--engine is reactor, pool or sequential, not %q", e.Engine)
	}
	async, parallel := given.Changed("async_scheduler"), e.withinRequestParallelism
	engine := e.Engine
	switch {
	case async && e.asyncScheduler && parallel:
		return errors.New("--async_scheduler contradicts --within_request_parallelism")
	case async && e.asyncScheduler:
		engine = Reactor
	case parallel:
		engine = Pool
	case async && (!given.Changed("engine") || e.Engine == Reactor): // not the reactor
		engine = Sequential
	}
	if given.Changed("engine") && e.Engine != engine {
		return fmt.Errorf("--engine %s contradicts --async_scheduler or --within_request_parallelism", e.Engine)
	}
	e.Engine = engine
	return nil
}

// Idle adds the flags that have no effect beside the engine and its mode, after ChooseEngine. requestsChoose says whether a
// request may have a mode of its own.
func (e *Flags) Idle(idle *command.IdleFlags, requestsChoose bool) {
	if e.Engine != Pool {
		idle.Add("io_threads", "with engine "+e.Engine+"; --engine pool has I/O workers")
	}
	if e.Engine != Reactor {
		idle.Add("coalesce_reads", "with --engine "+e.Engine)
		idle.Add("busy_poll_us", "with --engine "+e.Engine)
	}
	inline := []string{"inline_threshold_ns", "max_inline_depth"}
	all := append([]string{"enable_inline_execution", "enable_continuation_chaining"}, inline...)
	add := func(names []string, why string) {
		for _, name := range names {
			idle.Add(name, why)
		}
	}
	switch {
	case e.Engine != Reactor:
		add(append(all, "allow_request_scheduling", "metrics"), "with engine "+e.Engine+"; --engine reactor has a loop")
	case e.Scheduling == string(rankd.OffloadAll) && !requestsChoose:
		add(all, "with --scheduling "+e.Scheduling)
	case !e.EnableInlineExecution:
		add(inline, "with --enable_inline_execution=false")
	case e.Scheduling == string(rankd.InlineAll) && !requestsChoose:
		add(inline[:1], "with --scheduling "+e.Scheduling)
	}
}

// IdleRecording adds the flags of recordings that have no effect. requestsTrace says whether a request may ask for a trace.
func (e *Flags) IdleRecording(idle *command.IdleFlags, requestsTrace bool) {
	if e.TraceFile != "" {
		return
	}
	idle.Add("trace_sample", "without --trace_file")
	if !requestsTrace {
		idle.Add("trace_detail", "without --trace_file or --allow_request_trace")
	}
}
