package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/bench/cli"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/cmdline"
)

// runCommand returns "rankd run": the root command with its plan as an argument.
func (p *program) runCommand(ctx context.Context, bench *cli.Program) *cobra.Command {
	o := options{EngineFlags: cmdline.EngineFlags{Options: p.own}}
	watch := false
	cmd := newCommand(&o, func(*cobra.Command) error {
		if watch {
			return p.watch(ctx, &o)
		}
		return p.dispatch(ctx, &o, bench)
	})
	cmd.Use, cmd.Short = "run plan [flags] < requests", "Run the plan in a file, x.plan.ts or x.plan.json"
	cmd.Long = `Run the plan in a file for each request on stdin, as rankd --plan does. A plan in TypeScript
is compiled in memory.`
	cmd.Example = `  echo '{"user_id": 1}' | rankd run plans/example.plan.ts
  echo '{"user_id": 1}' | rankd run plans/example.plan.ts --watch`
	cmd.Flags().BoolVar(&watch, "watch", false, "read stdin to its end, then run the plan for the same requests again on each save, until a signal comes")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("rankd run takes one plan, not %d; a file of requests comes on stdin", len(args))
		}
		return nil
	}
	serve := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cmd.Flags().Set("plan", args[0]); err != nil {
			return err
		}
		if o.PlansDir == "" {
			o.PlansDir = cmdline.Beside(args[0])
		}
		if !watch {
			return serve(cmd, args)
		}
		if asked := o.job(); asked != jobServe {
			return fmt.Errorf("--watch has no effect with --%s", asked)
		}
		idle := cmdline.IdleFlags{Given: cmd.Flags()}
		for _, flag := range [...]string{"metrics", "trace_file", "trace_sample", "served_log"} {
			idle.Add(flag, "with --watch")
		}
		if err := idle.Problems(); err != nil {
			return err
		}
		return serve(cmd, args)
	}
	return cmd
}

// watch answers the requests on stdin, and again after each change of a file of the plan, until ctx
// ends.
func (p *program) watch(ctx context.Context, o *options) error {
	requests, err := io.ReadAll(p.stdin)
	if err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("reading requests: %w", err)}
	}
	p.tune(o.CPUThreads)
	redis := new(cmdline.EmbeddedRedis)
	defer redis.Close()
	watcher, err := cmdline.NewWatcher()
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	defer watcher.Close()
	if err := watcher.Add(o.PlanFile); err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	for ctx.Err() == nil {
		files := []string{o.PlanFile}
		err := p.answerOnce(ctx, o, redis, bytes.NewReader(requests), func(r compiler.Result) {
			p.warn(r)
			files = append(files, r.Files...)
		})
		if err != nil && !errors.Is(err, cmdline.ErrFailed) {
			p.explain(err, []string{o.PlanFile})
		}
		if err := watcher.Add(files...); err != nil {
			return &cmdline.RuntimeError{Err: err}
		}
		fmt.Fprintf(p.stderr, "rankd: waiting for a change of %s\n", o.PlanFile)
		plan := filepath.Clean(o.PlanFile)
		_, err = watcher.Changed(ctx, func(path string) bool { return strings.HasSuffix(path, ".ts") || path == plan })
		if err != nil && !errors.Is(err, cmdline.ErrOverflow) && ctx.Err() == nil {
			return &cmdline.RuntimeError{Err: err}
		}
	}
	return nil
}

// answerOnce compiles the plan and answers the requests.
func (p *program) answerOnce(ctx context.Context, o *options, redis *cmdline.EmbeddedRedis, requests io.Reader, report func(compiler.Result)) error {
	plans := &compiler.ForEngine{Report: report}
	defer plans.Close()
	e, err := openEngine(o, setting{stderr: p.stderr, plans: plans, redis: redis})
	if err != nil {
		return err
	}
	defer e.Close()
	defer shutDownAfter(ctx, e, o)()
	return serve(ctx, e, o, requests, p.stdout, p.stderr)
}
