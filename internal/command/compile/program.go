package compile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/compiler/editor"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/command/compile/starter"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Program is the program whose commands these are. Its errors tell the exit status, as in package
// command. One goroutine.
type Program struct {
	Stdout, Stderr io.Writer
	Own            rankd.Options // what the program brings: tasks, and folders where no flag names one
}

// options are the flags of the commands. Immutable once parsed.
type options struct {
	output                     string // the folder of artifacts
	planDir                    string // stands for the arguments if there are none
	json, watch, advise        bool
	online                     bool
	env, registryDir, modelDir string
}

// Commands returns the commands.
func (p *Program) Commands(ctx context.Context) []*cobra.Command {
	commands := []*cobra.Command{p.compileCommand(ctx), p.checkCommand(ctx), p.initCommand()}
	for _, c := range commands {
		cmdline.Dress(c, nil)
	}
	return commands
}

func (p *Program) compileCommand(ctx context.Context) *cobra.Command {
	o := new(options)
	cmd := &cobra.Command{
		Use:   "compile files|folders [flags]",
		Short: "Compile plans in TypeScript to artifacts",
		Long: `Compile plans in TypeScript to artifacts, <name>.plan.json. A folder stands for the files
*.plan.ts in it. An artifact is replaced only if its whole plan compiled; the other plans
are compiled all the same. The aliases.toml of a folder is copied beside the artifacts.`,
		Example: `  rankd compile plans                     # to artifacts/plans
  rankd compile plans --watch             # again on each save
  rankd compile mine.plan.ts -o . --json  # errors as JSON, for an editor`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmdline.CheckValues(cmd.Flags()); err != nil {
				return err
			}
			if len(args) == 0 && o.planDir == "" {
				return errors.New("name the plans to compile: files <name>.plan.ts, or folders of them")
			}
			return p.compile(ctx, o, o.sources(args))
		},
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.watch, "watch", false, "go on, and compile again what a saved file affects, until a signal comes")
	return cmd
}

func (p *Program) checkCommand(ctx context.Context) *cobra.Command {
	o := new(options)
	cmd := &cobra.Command{
		Use:   "check folder [flags]",
		Short: "Check that plans compile and that their artifacts are up to date",
		Long: `Compile the plans of a folder without writing, and compare them with their artifacts. An
artifact that differs, that is missing or whose source is gone is an error. So is an
artifact without a source that uses a key or a parameter which the registry lacks, and
an aliases.toml beside the artifacts that is not that of the folder.`,
		Example: `  rankd check plans
  rankd check plans --advise  # also what a request could cost less`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmdline.CheckValues(cmd.Flags()); err != nil {
				return err
			}
			dir, err := o.folder(cmd, args)
			if err != nil {
				return err
			}
			return p.check(ctx, o, dir)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.online, "online", false, "also ask the servers of the endpoints that plans use: one that does not answer, or that serves another model than the table says, is an error")
	cmd.Flags().BoolVar(&o.advise, "advise", false, "name columns that are looked up for rows which a later node does not keep, and those that go out though the plan only needs to compute with them")
	return cmd
}

func (p *Program) initCommand() *cobra.Command {
	o := new(options)
	var module bool
	var checkout string
	cmd := &cobra.Command{
		Use:   "init folder [flags]",
		Short: "Make a folder ready to write plans in TypeScript, or tasks in Go",
		Long: `Write the type declarations that editors and tsc need, a tsconfig.json, and an example with tests. Files
that are there stay, but declarations of an earlier init are brought up to date. New columns and parameters in the
short form get their ids, as with rankd registry lock. A folder of --registry_dir that is not there is made, with the
built-in tables to begin with. With --registry_dir and without a rankd.toml here or above, write one that names both
folders, so that no command needs to be told.

With --go the folder becomes a Go module: the program rankd with one task of its own, and a plan with tests that uses
it, in the folder plans. Such a program has every command of this one. A folder with Go files stays as it is.`,
		Example: `  rankd init plans
  rankd init mine --go                         # a program with a task of your own
  rankd init mine --go --checkout ../rankd     # the same, built from the sources in a folder`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmdline.CheckValues(cmd.Flags()); err != nil {
				return err
			}
			if cmd.Flags().Changed("checkout") && !module {
				return errors.New("--checkout is for --go")
			}
			if module && len(args) == 0 {
				return errors.New("init --go takes the folder of the module as an argument")
			}
			dir, err := o.folder(cmd, args)
			if err != nil {
				return err
			}
			return p.init(o, dir, cmd.Flags().Changed("registry_dir"), module, checkout)
		},
	}
	cmd.Flags().BoolVar(&module, "go", false, "make the folder a Go module: rankd with a task of your own, and the folder plans")
	cmd.Flags().StringVar(&checkout, "checkout", "", "for --go: build with the checkout of rankd in this `folder`, in place of the version that runs")
	o.addRegistryFlags(cmd)
	return cmd
}

// init writes what init writes. The file of the project is written if the command line names the registry.
func (p *Program) init(o *options, dir string, project, module bool, checkout string) error {
	report := func(line string) { fmt.Fprintln(p.Stdout, line) }
	own := p.Own.Tasks
	var m *starter.Module
	if module {
		var err error
		if m, err = starter.New(dir, checkout); err != nil {
			return err
		}
		dir, own = filepath.Join(dir, starter.PlanDir), starter.Tasks() // those of this program are not the module's
	}
	if o.registryDir != "" {
		if err := writeTables(o.registryDir, report); err != nil {
			return err
		}
		path, added, err := cmdline.LockRegistry(o.registryDir, true)
		if err != nil {
			return err
		}
		if len(added) > 0 {
			report("wrote " + path)
		}
	}
	reg, err := cmdline.Registry(&p.Own, o.registryDir, o.env)
	if err != nil {
		return err
	}
	tasks, err := task.NewCatalog(append(builtin.Specs(), own...)...)
	if err != nil {
		return err
	}
	language := compiler.NewLanguage(tasks, reg)
	if m != nil {
		if err := m.Write(language, report); err != nil {
			return err
		}
	}
	if err := editor.Init(dir, language, report); err != nil {
		return err
	}
	if project {
		if err := cmdline.WriteProject(o.registryDir, dir, report); err != nil {
			return err
		}
	}
	if m != nil {
		report("next: " + m.Next())
	}
	return nil
}

// writeTables writes the built-in tables into a folder that does not exist yet. It calls report with one line.
func writeTables(dir string, report func(line string)) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil // What is there is read as it is.
	}
	if err := os.CopyFS(dir, registry.DefaultTables()); err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	report("wrote " + errtext.Name(dir) + ", which has the built-in tables: put your own columns, parameters and endpoints there")
	return nil
}

func (o *options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "artifacts/plans", "`folder` of the artifacts")
	f.BoolVar(&o.json, "json", false, "print what was compiled, and the diagnostics, as a line of JSON on stdout")
	f.StringVar(&o.modelDir, "model_dir", "", "check the nodes of the task model against the models in this `folder`, files <name>.json of XGBoost or <name>.lightgbm of LightGBM")
	o.addRegistryFlags(cmd)
}

func (o *options) addRegistryFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.planDir, "plan_dir", "", "the `folder` of the plans, if no argument names any")
	f.StringVar(&o.env, "env", "dev", "`environment`, which chooses the endpoints: dev, test or prod")
	f.StringVar(&o.registryDir, "registry_dir", "", "read keys, params and endpoints from the TOML files in this `folder`")
}

// sources returns the arguments, or the folder of plans if there are none.
func (o *options) sources(args []string) []string {
	if len(args) == 0 && o.planDir != "" {
		return []string{o.planDir}
	}
	return args
}

// folder returns the folder that the argument names; without an argument, the folder of plans.
func (o *options) folder(cmd *cobra.Command, args []string) (string, error) {
	args = o.sources(args)
	if len(args) != 1 {
		return "", fmt.Errorf("%s takes one folder, not %d", cmd.CommandPath(), len(args))
	}
	return args[0], nil
}

// newCompiler returns a compiler for the flags, and what plans are checked against. The caller closes it.
func (p *Program) newCompiler(o *options) (*compiler.Compiler, compiler.Config, error) {
	var config compiler.Config
	reg, err := cmdline.Registry(&p.Own, o.registryDir, o.env)
	if err != nil {
		return nil, config, err
	}
	models, err := cmdline.Models(&p.Own, o.modelDir)
	if err != nil {
		return nil, config, err
	}
	tasks, err := task.NewCatalog(append(builtin.SpecsWith(models), p.Own.Tasks...)...)
	if err != nil {
		return nil, config, err
	}
	config = compiler.Config{Tasks: tasks, Registry: reg}
	c, err := compiler.New(config)
	return c, config, err
}
