package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing/fstest"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/draw"
	"github.com/rankd/rankd/trace/record"
)

const replayLong = `Run recorded requests again, and compare each node and each answer with the record.

rankd replay needs the files that rankd serve --record has written, and nothing else: they have the plans, the tables,
the models and all values that came from Redis and services. It connects to nothing. A request that differs has a line
with the first node, column and row that does, and both values. docs/record.md says what a record has.`

const replayExamples = `  # Does this build answer as the one that has recorded? On another engine, too?
  rankd replay records
  rankd replay --engine pool records

  # Why did this visitor see that?
  rankd replay --request 0d9c8a52-6d0e-4c0f-9b3e-2f4d1c7a9b10 --explain records`

// replayOptions are the flags of rankd replay. Immutable once checked.
type replayOptions struct {
	engine, mode string
	models       string
	request      string
	trace        bool
	explain      bool
	files        cmdline.RecordFiles
}

// replayed counts requests. One goroutine.
type replayed struct{ equal, different, foreign, marked int }

// replayCommand returns "rankd replay".
func (p *program) replayCommand(ctx context.Context) *cobra.Command {
	var o replayOptions
	table := []cmdline.Setting{
		{Name: "engine", To: &o.engine, Default: cmdline.Reactor, OneOf: []string{cmdline.Reactor, cmdline.Pool, cmdline.Sequential}, Help: "run them on this `engine`: reactor, pool or sequential"},
		{Name: "scheduling", To: &o.mode, Default: string(rankd.Adaptive), OneOf: []string{string(rankd.Adaptive), string(rankd.OffloadAll), string(rankd.InlineAll)},
			Help: "where nodes that compute run on the reactor, a `mode`: adaptive, offload_all or inline_all"},
		{Name: "model_dir", To: &o.models, Help: "take the models from this `folder`, for records without models"},
		o.files.Setting(),
		{Name: "request", To: &o.request, Help: "run one request alone, by the engine_request_id or request_id of its answer, an `id`, and print its answer"},
		{Name: "trace", To: &o.trace, Idle: o.alone, Help: "with --request, draw what ran when in this run; times are those of this machine"},
		{Name: "explain", To: &o.explain, Idle: o.alone, Help: "with --request, say why the rows of its answer are where they are"},
	}
	cmd := &cobra.Command{
		Use: "replay [flags] FILE|FOLDER...", Short: "Run recorded requests again, and say where one differs", Long: replayLong, Example: replayExamples,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			idle := cmdline.IdleFlags{Given: cmd.Flags()}
			idle.AddSettings(table)
			if err := errors.Join(cmdline.CheckValues(cmd.Flags()), cmdline.CheckSettings(cmd.Flags(), table), idle.Problems()); err != nil {
				return err
			}
			var n replayed
			files, err := o.files.Open(files)
			if err != nil {
				return err
			}
			var failures []error // A damaged file hides none of the others.
			for _, file := range files {
				if err := p.replayFile(ctx, &o, file, &n); err != nil {
					failures = append(failures, fmt.Errorf("%s: %w", errtext.Name(file), err))
				}
			}
			if err := p.replayEnd(&o, &n); len(failures) == 0 {
				return err
			}
			return &cmdline.RuntimeError{Err: errors.Join(failures...)}
		},
	}
	return cmdline.Dress(cmd, table,
		"0  each request was run again and is equal",
		"1  some request differs or cannot be run again, or a file cannot be read",
		"2  bad usage")
}

func (o *replayOptions) alone() string {
	if o.request == "" {
		return "without --request"
	}
	return ""
}

// replayEnd prints how many requests were equal, unless the command was about one.
func (p *program) replayEnd(o *replayOptions, n *replayed) error {
	all := n.equal + n.different + n.foreign
	switch {
	case o.request != "" && all+n.marked == 0:
		return &cmdline.RuntimeError{Err: fmt.Errorf("no file has a request %s", errtext.Quote(o.request))}
	case o.request == "":
		fmt.Fprintf(p.stdout, "%s: %d equal, %d different, %d not replayable\n", errtext.Count(all, "request"), n.equal, n.different, n.foreign)
		if n.marked > 0 {
			fmt.Fprintf(p.stdout, "%s of users outside of the sample, which have no values\n", errtext.Count(n.marked, "request"))
		}
	}
	if n.different+n.foreign > 0 {
		return cmdline.ErrFailed
	}
	if all == 0 {
		return &cmdline.RuntimeError{Err: errors.New("no request was run again: the files have none with values")}
	}
	return nil
}

// replayFile runs the requests of a file.
func (p *program) replayFile(ctx context.Context, o *replayOptions, path string, n *replayed) (failure error) {
	from, err := record.Open(path, o.files.Read)
	if torn := (*record.Torn)(nil); errors.As(err, &torn) {
		fmt.Fprintf(p.stderr, "rankd: %s: %v\n", errtext.Name(path), torn)
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	before := n.different
	defer func() {
		was, is := from.Header(), cmdline.RecordHeader()
		if n.different > before && (was.Go != is.Go || was.Zones != is.Zones || was.Unicode != is.Unicode) {
			fmt.Fprintf(p.stderr, "rankd: %s was recorded with %s, time zones %s and Unicode %s; this is %s, %s and %s\n", errtext.Name(path),
				was.Go, cmp.Or(was.Zones, "unknown"), was.Unicode, is.Go, cmp.Or(is.Zones, "unknown"), is.Unicode)
		}
	}()
	type setting struct {
		generation string
		maxRows    int
	}
	engines := make(map[setting]*rankd.Engine)
	defer func() {
		for _, e := range engines {
			failure = errors.Join(failure, e.Close())
		}
	}()
	for ctx.Err() == nil {
		r, err := from.Next()
		if torn := (*record.Torn)(nil); errors.As(err, &torn) {
			fmt.Fprintf(p.stderr, "rankd: %s: %v\n", errtext.Name(path), torn)
			return nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		id := request.ID(r.ID)
		if o.request != "" && o.request != id && o.request != r.RequestID {
			continue
		}
		if r.Marked {
			n.marked++
			continue
		}
		e := engines[setting{r.Generation, r.MaxRows}]
		if from.Header().Values != record.ValuesVersion {
			p.differs(n, true, id, fmt.Sprintf("it has values from memory in form %d, and this build has form %d", from.Header().Values, record.ValuesVersion))
			continue
		}
		if e == nil {
			if e, err = p.replayEngine(o, r, from); err != nil {
				return fmt.Errorf("request %s: %w", id, err)
			}
			engines[setting{r.Generation, r.MaxRows}] = e
		}
		how := rankd.Request{Trace: o.trace}
		how.Explain.All = o.explain
		again, err := e.Intake().Replay(ctx, r, from, how)
		switch {
		case err != nil:
			p.differs(n, true, id, err.Error())
			continue
		case again.Difference != nil:
			p.differs(n, again.Difference.Foreign, id, again.Difference.String())
		default:
			n.equal++
		}
		if o.request != "" {
			if err := p.printReplayed(o, again); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// differs counts a request that is not equal, and says why.
func (p *program) differs(n *replayed, foreign bool, id, why string) {
	what := "different"
	if n.different++; foreign {
		n.different, n.foreign, what = n.different-1, n.foreign+1, "not replayable"
	}
	fmt.Fprintf(p.stdout, "%s is %s: %s\n", id, what, why)
}

// replayEngine opens an engine for requests like r.
func (p *program) replayEngine(o *replayOptions, r *record.Request, from record.Source) (*rankd.Engine, error) {
	g, err := from.Generation(r.Generation)
	if err != nil {
		return nil, err
	}
	folder := func(files []record.File, ending string) fstest.MapFS {
		all := fstest.MapFS{}
		for _, f := range files {
			all[f.Name+ending] = &fstest.MapFile{Data: f.Bytes}
		}
		return all
	}
	options := p.own
	options.NoSecrets, options.Env, options.Compiler, options.MaxRows = true, g.Env, nil, r.MaxRows
	options.Registry, options.Plans = folder(g.Tables, ""), folder(g.Plans, ".plan.json")
	options.RegistryName, options.PlansName, options.ModelsName = "the record", "the record", "the record"
	options.Plan, options.PlanFile, options.PlanText = "", "", nil
	options.Model, options.Scheduling.Mode = rankd.Model(o.engine), rankd.SchedulingMode(o.mode)
	options.AllowRequestTrace, options.AllowRequestExplain, options.AllowRequestTraffic = true, true, true
	options.Logger = cmdline.Logger(p.stderr)
	switch {
	case o.models != "":
		options.Models, options.ModelsName = os.DirFS(o.models), o.models
	case len(g.Models) > 0 && g.Models[0].Bytes == nil:
		return nil, errors.New("its record has no models: name the folder that has them by --model_dir")
	case len(g.Models) > 0:
		options.Models = folder(g.Models, "")
	}
	return rankd.Open(options)
}

// printReplayed prints what became of the one request.
func (p *program) printReplayed(o *replayOptions, again *rankd.Replayed) error {
	var t *trace.Trace
	if again.Err != nil {
		t = again.Err.Trace()
	} else {
		t = again.Answer.Trace()
	}
	switch {
	case o.trace && t != nil:
		if err := draw.Text(p.stdout, draw.Options{}, draw.Run{Trace: t}); err != nil {
			return err
		}
	case !o.explain && again.Err != nil:
		_, err := p.stdout.Write(again.Err.AppendJSON(nil))
		return err
	case !o.explain:
		_, err := p.stdout.Write(again.Answer.AppendJSON(nil, rankd.FormatFlat))
		return err
	}
	if o.explain && again.Answer != nil {
		return explain.Text(p.stdout, again.Answer.Explanation())
	}
	return nil
}
