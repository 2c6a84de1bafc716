package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/rankdtest/plantest"
)

const testLong = `Run the tests of plans, files <name>.plan.test.ts beside them. Each test says what Redis and the services
hold, asks, and says what it expects. A Redis inside the process has the data of one test at a time; no
other Redis and no service is asked.

A failure shows the difference, the node at which it began, and why the rows are where they are.
docs/change-a-plan.md has an example.`

const testExamples = `  rankd test plans
  rankd test plans --run 'sold out'     # the tests whose names match
  rankd test plans/home.plan.test.ts    # those of one file
  rankd test plans --update             # record the snapshots anew
  rankd test plans --watch              # again on each save`

// testOptions are the flags of rankd test. Immutable once checked.
type testOptions struct {
	cmdline.EngineFlags

	run, junit    string
	update, watch bool
	parallel      int
	timeout       time.Duration
}

func (o *testOptions) settings() []cmdline.Setting {
	table := []cmdline.Setting{
		{Name: "run", To: &o.run, Help: "run the tests whose names match this `pattern`, a regular expression (RE2)"},
		{Name: "update", To: &o.update, Help: "record the snapshots anew in place of comparing with them"},
		{Name: "watch", To: &o.watch, Help: "go on, and run the tests again on each save, until a signal comes"},
		{Name: "junit", To: &o.junit, Help: "write the outcome to this `file`, too, in the XML of JUnit"},
		{Name: "parallel", To: &o.parallel, Least: 0, Most: 256, Shown: "by cores", Help: "run this `number` of files at the same time (0: one for each core)"},
		{Name: "timeout", To: &o.timeout, Default: compiler.DefaultTimeout, Least: int64(time.Millisecond), Most: int64(time.Hour),
			Help: "fail a request that takes longer than this `time`, and a test that computes longer without one"},
	}
	table = append(table, cmdline.Setting{Name: "plan_dir", To: &o.PlansDir, Help: "the `folder` of the plans and their tests, if no argument names any"})
	for _, s := range o.PlanSettings() {
		switch s.Name {
		case "env", "registry_dir", "model_dir":
			table = append(table, s)
		}
	}
	return table
}

// testCommand returns "rankd test".
func (p *program) testCommand(ctx context.Context) *cobra.Command {
	var o testOptions
	o.EngineFlags.Options = p.own
	cmd := &cobra.Command{Use: "test [folder or files] [flags]", Short: "Run the tests of plans, <name>.plan.test.ts", Long: testLong, Example: testExamples}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := o.config(cmd.Flags(), args)
		if err != nil {
			return err
		}
		if o.watch {
			return p.watchTests(ctx, &o, c)
		}
		_, err = p.testPlans(ctx, &o, c)
		return err
	}
	return cmdline.Dress(cmd, o.settings(), "0  all tests passed",
		"1  a test failed",
		"2  bad usage, or no tests")
}

// config returns what the flags and the arguments ask for: a folder, or files of one folder.
func (o *testOptions) config(given *pflag.FlagSet, args []string) (c plantest.Config, err error) {
	if err := errors.Join(cmdline.CheckValues(given), cmdline.CheckSettings(given, o.settings())); err != nil {
		return c, err
	}
	if len(args) == 0 && o.PlansDir != "" {
		args = []string{o.PlansDir}
	}
	for i, arg := range args {
		dir, file := filepath.Dir(arg), filepath.Base(arg)
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return c, err
		case info.IsDir() && len(args) > 1:
			return c, errors.New("rankd test takes one folder, or files of one folder")
		case info.IsDir():
			c.Folder = arg
			continue
		case !strings.HasSuffix(file, compiler.TestExtension):
			return c, fmt.Errorf("%s is not a file with tests, <name>%s", arg, compiler.TestExtension)
		case i > 0 && dir != c.Folder:
			return c, errors.New("rankd test takes one folder, or files of one folder")
		}
		c.Folder, c.Files = dir, append(c.Files, file)
	}
	if o.run != "" {
		if c.Run, err = regexp.Compile(o.run); err != nil {
			return c, fmt.Errorf("--run: %w", err)
		}
	}
	c.Update, c.Parallel, c.Timeout = o.update, o.parallel, o.timeout
	c.Engine = rankd.Options{Env: o.Env, Tasks: o.Tasks, Registry: o.Registry, RegistryName: o.RegistryName, Models: o.Models, ModelsName: o.ModelsName}
	return c, cmdline.Folders(&c.Engine, "", o.RegistryDir, o.ModelDir)
}

// testPlans runs the tests once and reports. The error is cmdline.ErrFailed if one failed.
func (p *program) testPlans(ctx context.Context, o *testOptions, c plantest.Config) (*plantest.Report, error) {
	report, err := plantest.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprint(p.stdout, report.Text()); err != nil {
		return nil, &cmdline.RuntimeError{Err: err}
	}
	if o.junit != "" {
		if err := fileio.Replace(o.junit, report.JUnit()); err != nil {
			return nil, &cmdline.RuntimeError{Err: fmt.Errorf("--junit: %w", err)}
		}
	}
	passed, failed := report.Counts()
	fmt.Fprintf(p.stderr, "rankd: %d passed, %d failed, in %s\n", passed, failed, report.Elapsed.Round(time.Millisecond))
	if failed > 0 {
		return report, cmdline.ErrFailed
	}
	if passed == 0 {
		return report, errors.New("--run matches no test")
	}
	return report, nil
}

// watchTests runs the tests, and again after each change of a source, of a table or of data that they import, until ctx ends.
func (p *program) watchTests(ctx context.Context, o *testOptions, c plantest.Config) error {
	watcher, err := cmdline.NewWatcher()
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	defer watcher.Close()
	folders := []string{c.Folder}
	for _, folder := range []string{o.RegistryDir, o.ModelDir} {
		if folder != "" {
			folders = append(folders, folder)
		}
	}
	if err := watcher.Add(folders...); err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	for ctx.Err() == nil {
		report, err := p.testPlans(ctx, o, c)
		if err != nil && !errors.Is(err, cmdline.ErrFailed) && ctx.Err() == nil {
			p.explain(err, []string{c.Folder})
		}
		if report != nil {
			for i := range report.Files {
				if err := watcher.Add(report.Files[i].Sources...); err != nil {
					return &cmdline.RuntimeError{Err: err}
				}
			}
		}
		fmt.Fprintf(p.stderr, "rankd: waiting for a change in %s\n", c.Folder)
		counts := func(path string) bool {
			switch filepath.Ext(path) {
			case ".ts", ".toml", ".lightgbm":
				return true
			case ".json":
				return !strings.HasSuffix(path, plantest.SnapshotExtension)
			}
			return false
		}
		if _, err = watcher.Changed(ctx, counts); err != nil && !errors.Is(err, cmdline.ErrOverflow) && ctx.Err() == nil {
			return &cmdline.RuntimeError{Err: err}
		}
	}
	return nil
}
