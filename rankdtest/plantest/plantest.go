package plantest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Config says which tests run, and in what engine. Immutable once it is given to Run.
type Config struct {
	// Folder is the path of the folder with the plans and their tests. Empty means ".".
	Folder string
	// Files are the tests to run, as names in Folder. Nil means all.
	Files []string
	// Engine are the options of the engines, such as Registry, Models, Tasks and Env. Run sets
	// those of plans, of Redis, of the compiler and of the calendar. Endpoints of kind http
	// lead to the services of the test. No cache keeps values of an earlier test.
	Engine rankd.Options
	// Run chooses the tests whose names it matches. Nil means all.
	Run *regexp.Regexp
	// Update records all snapshots again instead of comparing with them.
	Update bool
	// Parallel is how many files run at the same time. Zero means GOMAXPROCS.
	Parallel int
	// Timeout bounds each request, and how long a test may compute without one. Zero means compiler.DefaultTimeout.
	Timeout time.Duration
}

// Report is the outcome of the files, in the order of their names. Immutable; any goroutine.
type Report struct {
	Files   []File
	Elapsed time.Duration
}

// File is the outcome of one file. Immutable; any goroutine.
type File struct {
	Path    string                // the folder as the caller wrote it, and the name
	Tests   []Result              // that ran, in the order of the file
	Errors  []compiler.Diagnostic // why the file could not run to its end
	Sources []string              // paths of the file and of its imports
	Elapsed time.Duration
}

// Result is the outcome of one test. Immutable; any goroutine.
type Result struct {
	Name    string
	Line    int                   // of the file, where the test begins
	Failure *compiler.TestFailure // nil: it passed
	Log     []string              // what the test said
	Elapsed time.Duration
}

// Counts returns how many tests passed, and how many tests and files failed.
func (r *Report) Counts() (passed, failed int) {
	for i := range r.Files {
		f := &r.Files[i]
		failed += min(1, len(f.Errors))
		for j := range f.Tests {
			if f.Tests[j].Failure != nil {
				failed++
			} else {
				passed++
			}
		}
	}
	return passed, failed
}

// ErrNoTests says that the folder has no file with tests.
var ErrNoTests = errors.New("no file with tests, <name>" + compiler.TestExtension)

// Run runs the tests of a folder. A program that calls it calls compiler.Main first in main. An
// error means that no test can run: the folder cannot be read, or the tables are faulty. The
// error wraps ErrNoTests if the folder has no tests.
func Run(ctx context.Context, c Config) (*Report, error) {
	c.Folder, c.Timeout = cmp.Or(c.Folder, "."), cmp.Or(c.Timeout, compiler.DefaultTimeout)
	begun := time.Now()
	sources, err := compiler.TestFolder(c.Folder)
	if err != nil {
		return nil, err
	}
	if c.Files != nil {
		sources = slices.DeleteFunc(sources, func(s compiler.Source) bool { return !slices.Contains(c.Files, s.File) })
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%s: %w", c.Folder, ErrNoTests)
	}
	tables, err := readTables(&c.Engine)
	if err != nil {
		return nil, err
	}
	tasks, err := task.NewCatalog(append(builtin.Specs(), c.Engine.Tasks...)...)
	if err != nil {
		return nil, err
	}
	sandbox, err := compiler.New(compiler.Config{Tasks: tasks, Registry: tables, Timeout: c.Timeout})
	if err != nil {
		return nil, err
	}
	defer sandbox.Close()
	plans := &onceEach{}
	defer plans.compiler.Close()

	report := &Report{Files: make([]File, len(sources))}
	next, failures := make(chan int), make(chan error, len(sources))
	var wait sync.WaitGroup
	for range min(cmp.Or(c.Parallel, runtime.GOMAXPROCS(0)), len(sources)) {
		wait.Go(func() {
			w, err := openWorld(&c, tables, plans)
			if err != nil {
				failures <- err
				for range next { // The other files may have come further.
				}
				return
			}
			defer w.close()
			for i := range next {
				if report.Files[i], err = runFile(ctx, &c, w, sandbox, sources[i]); err != nil {
					failures <- err
				}
			}
		})
	}
	for i := range sources {
		next <- i
	}
	close(next)
	wait.Wait()
	close(failures)
	report.Elapsed = time.Since(begun)
	return report, <-failures
}

// Test runs the tests of a folder as subtests of t, by file and name.
func Test(t *testing.T, c Config) {
	t.Helper()
	report, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range report.Files {
		f := &report.Files[i]
		t.Run(filepath.Base(f.Path), func(t *testing.T) {
			for j := range f.Errors {
				t.Error("\n" + f.Errors[j].String())
			}
			for j := range f.Tests {
				r := &f.Tests[j]
				t.Run(r.Name, func(t *testing.T) {
					for _, line := range r.Log {
						t.Log(line)
					}
					if r.Failure != nil {
						t.Error("\n" + r.Failure.String())
					}
				})
			}
		})
	}
}

// runFile runs the tests of one file in a world.
func runFile(ctx context.Context, c *Config, w *world, sandbox *compiler.Compiler, source compiler.Source) (File, error) {
	f := File{Path: source.Path()}
	begun := time.Now()
	s, err := readSnapshots(f.Path)
	if err != nil {
		return f, err
	}
	run := &fileRun{config: c, world: w, file: &f, snapshots: s}
	outcome, err := sandbox.Test(ctx, source, run.answer)
	if err != nil {
		return f, err
	}
	f.Errors, f.Sources = outcome.Errors, outcome.Files
	if run.runs && len(f.Errors) > 0 { // The last test was stopped, and the tests after it did not run.
		run.test().Failure = &compiler.TestFailure{Diagnostic: f.Errors[0], Detail: "  the tests after it did not run"}
		f.Errors = f.Errors[1:]
	}
	if len(f.Sources) == 0 {
		f.Sources = []string{f.Path}
	}
	f.Elapsed = time.Since(begun)
	if c.Update {
		failed := len(f.Errors) > 0 || slices.ContainsFunc(f.Tests, func(r Result) bool { return r.Failure != nil })
		err = s.write(!failed && c.Run == nil)
	}
	return f, err
}

// Text returns the lines for people: each file, its failures, and what the tests said.
func (r *Report) Text() string {
	var b strings.Builder
	for i := range r.Files {
		f := &r.Files[i]
		failed := len(f.Errors)
		for j := range f.Tests {
			t := &f.Tests[j]
			for _, line := range t.Log {
				fmt.Fprintf(&b, "%s: %s: %s\n", f.Path, t.Name, line)
			}
			if t.Failure != nil {
				failed++
			}
		}
		verdict := "ok  "
		if failed > 0 {
			verdict = "FAIL"
		}
		fmt.Fprintf(&b, "%s  %s: %s, %s\n", verdict, f.Path, errtext.Count(len(f.Tests), "test"), f.Elapsed.Round(time.Millisecond))
		for j := range f.Errors {
			fmt.Fprintf(&b, "%s\n", f.Errors[j].String())
		}
		for j := range f.Tests {
			if t := &f.Tests[j]; t.Failure != nil {
				fmt.Fprintf(&b, "\n--- %s\n%s\n", t.Name, strings.TrimRight(t.Failure.String(), "\n"))
			}
		}
	}
	return b.String()
}

// readTables returns the registry of the engines, without passwords.
func readTables(o *rankd.Options) (*registry.Registry, error) {
	env := cmp.Or(o.Env, "dev")
	if o.Registry == nil {
		return registry.Default(env)
	}
	reg, err := registry.Load(o.Registry, env)
	if err != nil {
		return nil, registry.InFolder(cmp.Or(o.RegistryName, "the registry folder"), err)
	}
	return reg.Named(o.RegistryName), nil
}

// dir returns the folder of plans in the form of the options of an engine.
func (c *Config) dir(o *rankd.Options) {
	o.Plans, o.PlansDir, o.PlansName = os.DirFS(c.Folder), c.Folder, "folder "+c.Folder
}
