package program

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/draw"
)

const traceLong = `Run one request and draw what ran when: on the loop, on each worker, on Redis.

The timeline has a column per thread. An arrow leads from a thread to a call to Redis, or to
a job on a worker, and back. "~" marks a wait of the critical path that takes more than a tenth
of the request. Below, the nodes stand as a waterfall, those on the critical path marked, with
the node that bounds the request. docs/trace.md explains how to read it.

A new engine has measured nothing yet, and has no connection to Redis. --warmup runs the request
some times before the one that is drawn.`

const traceExamples = `  # Draw a request for user 1:
  rankd trace --plan_name complex_dag

  # Another user, as a page with the plan as a graph, and for ui.perfetto.dev:
  rankd trace --plan_name complex_dag --user 7 --html trace.html --perfetto trace.json

  # Two scheduling modes, or two engines, one above the other:
  rankd trace --plan_name mixed_pipeline --compare offload_all,adaptive
  rankd trace --plan_name parallel_sleep_plan --compare reactor,pool

  # The trace of an answer, which a server gave with "trace": true:
  rankd trace --from answer.json`

// traceOptions are the flags of rankd trace. Immutable once checked.
type traceOptions struct {
	oneRequest

	warmup  int
	compare string
	from    string
	full    bool

	html, perfetto, json string

	variants []variant // what to run, set by check
}

// A variant is one way to run the request. Immutable.
type variant struct {
	name string // as in --compare; "" if there is only one
	options
}

// warmupMost bounds --warmup.
const warmupMost = 1_000_000

// traceCommand returns "rankd trace".
func (p *program) traceCommand(ctx context.Context) *cobra.Command {
	var o traceOptions
	o.EngineFlags.Options = p.own
	o.tracing, o.AllowRequestTrace, o.AllowRequestNow, o.Detail = true, true, true, trace.Full.String()
	cmd := &cobra.Command{
		Use: "trace", Short: "Run one request and draw what ran when", Long: traceLong, Example: traceExamples,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return p.trace(ctx, &o)
		},
	}
	return cmdline.Dress(cmd, o.settings([]cmdline.Setting{
		{Name: "warmup", To: &o.warmup, Help: "first run the request this `number` of times"},
		{Name: "compare", To: &o.compare, Help: "run the request in each of these scheduling modes or engines, a `list` such as " +
			"offload_all,adaptive or reactor,pool, and draw the timelines above each other"},
		{Name: "html", To: &o.html, Help: "write a page with the plan as a graph and the timeline to this `file`"},
		{Name: "perfetto", To: &o.perfetto, Help: "write Chrome's trace events, which ui.perfetto.dev opens, to this `file`"},
		{Name: "json", To: &o.json, Help: "write the trace as JSON to this `file`, one line per trace; --from reads it"},
		{Name: "from", To: &o.from, Help: "draw the traces in this `file`, which --json wrote, or answers with a trace; run nothing"},
		{Name: "full", To: &o.full, Help: "draw all lines of a long timeline, and all nodes"},
	}), "0  the request succeeded",
		"1  the request failed, and the drawing says why; or a file could not be written",
		"2  bad usage or a bad plan")
}

// drawing are the flags of rankd trace that have an effect with --from, too.
var drawingFlags = map[string]bool{"from": true, "full": true, "html": true, "perfetto": true}

// check reports all that is wrong with the options at once, and completes them.
func (o *traceOptions) check(given *pflag.FlagSet) error {
	if o.from != "" {
		idle := cmdline.IdleFlags{Given: given}
		given.Visit(func(f *pflag.Flag) {
			if !drawingFlags[f.Name] {
				idle.Add(f.Name, "with --from, which runs nothing")
			}
		})
		return errors.Join(cmdline.CheckValues(given), idle.Problems())
	}
	if err := cmdline.CheckExclusive(given, "user", "request"); err != nil {
		return err
	}
	problems := []error{o.chooseVariants(given), o.needsPlan("trace")}
	if o.warmup < 0 || o.warmup > warmupMost {
		problems = append(problems, fmt.Errorf("--warmup is a number from 0 to %d, not %d", warmupMost, o.warmup))
	}
	return errors.Join(problems...)
}

// chooseVariants sets the variants that --compare lists, or the only one. A flag of the engine has to have an effect on
// one of them.
func (o *traceOptions) chooseVariants(given *pflag.FlagSet) error {
	if o.compare == "" {
		err := o.options.check(given)
		o.variants = []variant{{"", o.options}}
		return err
	}
	idle := cmdline.IdleFlags{Given: given}
	for _, flag := range [...]string{"engine", "async_scheduler", "within_request_parallelism"} {
		idle.Add(flag, "with --compare, which chooses the engines")
	}
	var problems error // of the variant that has the fewest
	modes := 0
	for name := range strings.SplitSeq(o.compare, ",") {
		v := variant{name, o.options}
		switch name {
		case cmdline.Reactor, cmdline.Pool, cmdline.Sequential:
			v.Model = rankd.Model(name)
		case string(rankd.Adaptive), string(rankd.OffloadAll), string(rankd.InlineAll):
			v.Scheduling.Mode = rankd.SchedulingMode(name)
			modes++
		default:
			return fmt.Errorf("--compare lists some of adaptive, offload_all, inline_all, reactor, pool and sequential, not %s", errtext.Quote(name))
		}
		err := v.options.check(given)
		if len(o.variants) == 0 || err == nil || problems != nil && len(err.Error()) < len(problems.Error()) {
			problems = err
		}
		o.variants = append(o.variants, v)
	}
	if len(o.variants) < 2 {
		return errors.New("--compare lists two or more, with commas between them")
	}
	if modes == len(o.variants) {
		idle.Add("scheduling", "with --compare, which chooses the modes")
	}
	return errors.Join(problems, idle.Problems())
}

// trace runs the request, or reads traces, and draws. A request that failed is drawn, too.
func (p *program) trace(ctx context.Context, o *traceOptions) error {
	var runs []draw.Run
	var failed error
	if o.from != "" {
		read, err := readTraces(o.from)
		if err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		for i, t := range read {
			runs = append(runs, draw.Run{Name: strconv.Itoa(i + 1), Trace: t})
		}
	} else {
		p.tune(o.CPUThreads)
		for i := range o.variants {
			v := &o.variants[i]
			t, err := p.record(ctx, o, v)
			if t == nil {
				return err
			}
			failed = errors.Join(failed, err)
			runs = append(runs, draw.Run{Name: v.name, Trace: t})
		}
	}
	if err := o.draw(p.stdout, runs); err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	if failed != nil {
		return cmdline.ErrFailed // the drawing says why
	}
	return nil
}

// record runs the request in one way and returns its trace, which is nil if it did not get to the engine.
func (p *program) record(ctx context.Context, o *traceOptions, v *variant) (*trace.Trace, error) {
	redis := new(cmdline.EmbeddedRedis)
	defer redis.Close()
	e, err := openEngine(&v.options, setting{stderr: p.stderr, plans: p.plans, redis: redis})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r, err := o.of(e)
	if err != nil {
		return nil, err
	}
	for range o.warmup {
		if _, err := e.Rank(ctx, r); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	r.Trace = true
	answer, err := e.Rank(ctx, r)
	if err == nil {
		return answer.Trace(), nil
	}
	var failed *rankd.Error
	if errors.As(err, &failed) && failed.Trace() != nil {
		return failed.Trace(), err
	}
	return nil, &cmdline.RuntimeError{Err: err}
}

// draw writes the drawing to stdout, and the files that the flags name.
func (o *traceOptions) draw(stdout io.Writer, runs []draw.Run) error {
	if len(runs) == 1 {
		runs[0].Name = ""
	}
	if err := draw.Text(stdout, draw.Options{Full: o.full}, runs...); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{o.html, func(w io.Writer) error { return draw.HTML(w, runs...) }},
		{o.perfetto, func(w io.Writer) error { return draw.Perfetto(w, runs...) }},
		{o.json, func(w io.Writer) error { return writeTraces(w, runs) }},
	} {
		if f.name == "" {
			continue
		}
		if err := cmdline.WriteFile(f.name, f.write); err != nil {
			return err
		}
	}
	return nil
}

// writeTraces writes one line of JSON per trace.
func writeTraces(w io.Writer, runs []draw.Run) error {
	out := json.NewEncoder(w)
	for _, r := range runs {
		if err := out.Encode(r.Trace); err != nil {
			return err
		}
	}
	return nil
}

// readTraces reads documents that are traces, or answers with a trace.
func readTraces(file string) ([]*trace.Trace, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var traces []*trace.Trace
	for in := json.NewDecoder(bufio.NewReader(f)); ; {
		var doc json.RawMessage
		if err := in.Decode(&doc); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		var answer struct {
			Trace json.RawMessage `json:"trace"`
		}
		if json.Unmarshal(doc, &answer) == nil && answer.Trace != nil {
			doc = answer.Trace
		}
		t, err := trace.Decode(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", file, len(traces)+1, err)
		}
		traces = append(traces, t)
	}
	if len(traces) == 0 {
		return nil, fmt.Errorf("%s holds no trace", file)
	}
	return traces, nil
}
