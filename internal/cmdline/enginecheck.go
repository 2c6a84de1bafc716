package cmdline

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/request"
)

// Check reports everything that is wrong with the values of a table's flags at once. The table includes the flags of
// the engine.
func (e *EngineFlags) Check(given *pflag.FlagSet, table []Setting) error {
	err := CheckSettings(given, table)
	if e.Redis != "" {
		if _, bad := rankd.RedisAddr(e.Redis); bad != nil {
			err = errors.Join(err, fmt.Errorf("--redis is host:port or a URL: %w", bad))
		}
	}
	if _, bad := request.ParseNow(e.now); e.now != "" && bad != nil {
		err = errors.Join(err, fmt.Errorf("--now: %w", bad))
	}
	return err
}

// ChooseEngine sets the engine that the three flags name together.
func (e *EngineFlags) ChooseEngine(given *pflag.FlagSet) error {
	switch e.Model {
	case rankd.Reactor, rankd.Pool, rankd.Sequential:
	default:
		return fmt.Errorf("--engine is reactor, pool or sequential, not %q", e.Model)
	}
	async, parallel := given.Changed("async_scheduler"), e.withinRequestParallelism
	engine := e.Model
	switch {
	case async && e.asyncScheduler && parallel:
		return errors.New("--async_scheduler contradicts --within_request_parallelism")
	case async && e.asyncScheduler:
		engine = rankd.Reactor
	case parallel:
		engine = rankd.Pool
	case async && (!given.Changed("engine") || e.Model == rankd.Reactor): // not the reactor
		engine = rankd.Sequential
	}
	if given.Changed("engine") && e.Model != engine {
		return fmt.Errorf("--engine %s contradicts --async_scheduler or --within_request_parallelism", e.Model)
	}
	e.Model = engine
	return nil
}

// The reasons why a flag has no effect, or "" if it has one: see Setting.Idle. They hold after ChooseEngine.

func (e *EngineFlags) withoutIOWorkers() string {
	return when(e.Model != rankd.Pool, "with engine "+string(e.Model)+"; --engine pool has I/O workers")
}

func (e *EngineFlags) besideReactor() string {
	return when(e.Model != rankd.Reactor, "with --engine "+string(e.Model))
}

// WithoutLoop is the reason for flags that need the engine reactor.
func (e *EngineFlags) WithoutLoop() string {
	return when(e.Model != rankd.Reactor, "with engine "+string(e.Model)+"; --engine reactor has a loop")
}

// always reports whether all requests run in a mode.
func (e *EngineFlags) always(mode rankd.SchedulingMode) bool {
	return e.Scheduling.Mode == mode && !e.AllowRequestScheduling && !e.GrantsModes
}

func (e *EngineFlags) withoutPlacement() string {
	return cmp.Or(e.WithoutLoop(), when(e.always(rankd.OffloadAll), "with --scheduling offload_all"))
}

func (e *EngineFlags) withoutInline() string {
	return cmp.Or(e.withoutPlacement(), when(e.Scheduling.NoInlineExecution, "with --enable_inline_execution=false"))
}

func (e *EngineFlags) withoutThreshold() string {
	return cmp.Or(e.withoutInline(), when(e.always(rankd.InlineAll), "with --scheduling inline_all"))
}

func (e *EngineFlags) withoutTraceFile() string {
	return when(e.TraceFile == "", "without --trace_file")
}

func (e *EngineFlags) withoutTraces() string {
	return when(e.TraceFile == "" && !e.AllowRequestTrace && !e.GrantsTraces, "without --trace_file or --allow_request_trace")
}

// when returns the reason if it holds.
func when(holds bool, reason string) string {
	if holds {
		return reason
	}
	return ""
}
