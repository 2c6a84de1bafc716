package compiler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// Version is the version of the language, which artifacts carry as tool_version. It changes when
// the same source gives another artifact.
const Version = "1"

// Extension is the ending of the names of plan files.
const Extension = ".plan.ts"

// TestExtension is the ending of the names of files with tests of plans.
const TestExtension = ".plan.test.ts"

// The defaults of Config.
const (
	DefaultTimeout     = 10 * time.Second
	DefaultMemoryBytes = 512 << 20
)

// plansPerProcess is how many plans justify another child process, whose start costs some 20 ms.
const plansPerProcess = 16

// Config says how a Compiler works. Tasks and Registry are required. Immutable once it is given to
// New.
type Config struct {
	Tasks    *task.Catalog
	Registry *registry.Registry
	// Command starts a child process that calls Main. Nil means this program itself, whose main
	// must then call Main first.
	Command []string
	// Timeout bounds how long the code of one plan runs, and separately how long its sources take to parse. Zero
	// means DefaultTimeout.
	Timeout time.Duration
	// MemoryBytes bounds the memory of a child. Zero means DefaultMemoryBytes.
	MemoryBytes int64
}

// A Compiler compiles plans in child processes, which it starts on demand and keeps. Any goroutine.
type Compiler struct {
	config   Config
	language *Language
	setup    setup

	mu     sync.Mutex
	idle   []*process // guarded by mu
	closed bool       // guarded by mu
}

// ErrClosed is the error of Compile after Close.
var ErrClosed = errors.New("compiler: closed")

// New returns a compiler. It starts no process yet.
func New(config Config) (*Compiler, error) {
	switch {
	case config.Tasks == nil || config.Registry == nil:
		return nil, errors.New("compiler: Tasks and Registry are required")
	case config.Timeout < 0 || config.MemoryBytes < 0:
		return nil, errors.New("compiler: Timeout and MemoryBytes must not be negative")
	case os.Getenv(childVariable) != "":
		return nil, errors.New("compiler: this process is a compiler's child; call compiler.Main first in main")
	}
	if config.Timeout == 0 {
		config.Timeout = DefaultTimeout
	}
	if config.MemoryBytes == 0 {
		config.MemoryBytes = DefaultMemoryBytes
	}
	c := &Compiler{config: config, language: NewLanguage(config.Tasks, config.Registry)}
	c.setup = setup{Language: c.language, Limits: limits{Timeout: config.Timeout, MemoryBytes: config.MemoryBytes}}
	return c, nil
}

// Language returns the vocabulary of the compiler's plans.
func (c *Compiler) Language() *Language { return c.language }

// Close ends the child processes. Compile fails from then on.
func (c *Compiler) Close() error {
	c.mu.Lock()
	idle := c.idle
	c.idle, c.closed = nil, true
	c.mu.Unlock()
	for _, p := range idle {
		p.kill()
	}
	return nil
}

// A Source is one plan. Immutable; any goroutine.
type Source struct {
	Folder string // the folder of imports, as the caller wrote it: "plans"
	File   string // relative to Folder, with slashes: "complex_dag.plan.ts"
	Text   []byte // replaces what the file holds; nil means the file
}

// SourceFile returns the source in the file at path. Imports may reach the file's folder.
func SourceFile(path string) Source {
	return Source{Folder: filepath.Dir(path), File: filepath.Base(path)}
}

// Path returns the path of the source as the caller wrote it.
func (s Source) Path() string { return s.path(s.File) }

// Folder returns the plans in the folder dir, ascending by name. It does not look into subfolders.
func Folder(dir string) ([]Source, error) { return inFolder(dir, Extension) }

// TestFolder is Folder for the files with tests.
func TestFolder(dir string) ([]Source, error) { return inFolder(dir, TestExtension) }

func inFolder(dir, extension string) ([]Source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var sources []Source
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), extension) { // A folder of such a name is refused when it is read.
			sources = append(sources, Source{Folder: dir, File: entry.Name()})
		}
	}
	return sources, nil
}

// Result is the outcome for one source. Immutable once built; any goroutine.
type Result struct {
	Source
	Plan     string // the plan's name; "" if compiling ended before that was known
	Artifact []byte // nil if there are Errors
	Errors   []Diagnostic
	Warnings []Diagnostic
	Files    []string // paths of the files that were read, the plan's own first
	Digest   string   // hex SHA-256 of those files, as in the artifact's built_by

	nameLine, nameColumn int // of the plan's name in the source
	nameExcerpt          string
}

// Compile compiles the sources and returns one result for each, in their order. Two plans of one name are both
// refused. An error means that the compiler cannot work at all: the context has ended, or a child process cannot
// start. Faults of plans are in the results.
func (c *Compiler) Compile(ctx context.Context, sources ...Source) ([]Result, error) {
	results := make([]Result, len(sources))
	workers := min((len(sources)+plansPerProcess-1)/plansPerProcess, runtime.GOMAXPROCS(0))
	next := make(chan int)
	failures := make(chan error, workers)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			if err := c.work(ctx, sources, results, next); err != nil {
				failures <- err
			}
		})
	}
	var err error
feed:
	for i := range sources {
		select {
		case next <- i:
		case err = <-failures:
			break feed
		case <-ctx.Done():
			err = ctx.Err()
			break feed
		}
	}
	close(next)
	wait.Wait()
	close(failures)
	if err == nil {
		err = <-failures
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	refuseTwins(results)
	return results, nil
}

// work compiles sources with one child at a time. A plan that kills its child does not affect other plans.
func (c *Compiler) work(ctx context.Context, sources []Source, results []Result, next <-chan int) error {
	var p *process
	defer func() { c.put(p) }()
	for i := range next {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p == nil {
			var err error
			if p, err = c.take(); err != nil {
				return err
			}
		}
		absolute, err := filepath.Abs(sources[i].Folder)
		if err != nil {
			return err
		}
		source := sources[i]
		source.Folder = absolute
		unwatch := context.AfterFunc(ctx, func() { _ = p.out.SetReadDeadline(time.Unix(1, 0)) })
		a, alive := p.compile(job{Label: label(absolute), Source: source}, c.config.Timeout)
		if !unwatch() {
			p.kill() // the answer may be another one's
			p = nil
			return ctx.Err()
		}
		if !alive {
			p.kill()
			p = nil
		}
		results[i] = c.result(sources[i], a)
	}
	return nil
}

// label names a folder in artifacts by its last name, so that an artifact does not depend on where the folder is or
// from where it is compiled.
func label(absolute string) string {
	if name := filepath.Base(absolute); name != string(filepath.Separator) {
		return name
	}
	return ""
}

// take returns an idle child or a new one.
func (c *Compiler) take() (*process, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	if last := len(c.idle) - 1; last >= 0 {
		p := c.idle[last]
		c.idle = c.idle[:last]
		c.mu.Unlock()
		return p, nil
	}
	c.mu.Unlock()
	return startProcess(c.config.Command, c.setup)
}

// put keeps a child for the next call.
func (c *Compiler) put(p *process) {
	if p == nil {
		return
	}
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.idle = append(c.idle, p)
	}
	c.mu.Unlock()
	if closed {
		p.kill()
	}
}

// result completes the answer of a child, with paths as the caller wrote them, and with faults that the engine's own
// loader finds.
func (c *Compiler) result(source Source, a answer) Result {
	r := Result{
		Source: source, Plan: a.Plan, Artifact: a.Artifact, Errors: a.Errors, Warnings: a.Warnings, Digest: a.Digest,
		nameLine: a.NameLine, nameColumn: a.NameCol, nameExcerpt: a.NameText,
	}
	for _, file := range a.Files {
		r.Files = append(r.Files, r.path(file))
	}
	c.check(&r, &a)
	for _, list := range [][]Diagnostic{r.Errors, r.Warnings} {
		for i := range list {
			list[i].File = r.path(list[i].File)
		}
	}
	return r
}

// path returns the path of a file of the folder as the caller wrote it.
func (s Source) path(file string) string { return filepath.Join(s.Folder, filepath.FromSlash(file)) }

func (r *Result) refuse(d Diagnostic) {
	r.Errors = append(r.Errors, d)
	r.Artifact = nil
}

// refuseTwins refuses all plans that share a name.
func refuseTwins(results []Result) {
	byName := make(map[string][]int)
	for i := range results {
		if name := results[i].Plan; name != "" {
			byName[name] = append(byName[name], i)
		}
	}
	for name, twins := range byName {
		for _, i := range twins {
			other := slices.IndexFunc(twins, func(j int) bool { return results[j].Path() != results[i].Path() })
			if other < 0 {
				continue
			}
			r, twin := &results[i], &results[twins[other]]
			if len(r.Errors) > 0 {
				continue // first things first
			}
			r.refuse(Diagnostic{
				Severity: Error, Code: "plan-name", File: r.Path(), Line: max(1, r.nameLine), Column: max(1, r.nameColumn),
				Message: fmt.Sprintf("the plan's name %s is taken by %s:%d:%d", quote(name), twin.Path(), twin.nameLine, twin.nameColumn),
				Hint:    "give each plan a name of its own", Excerpt: r.nameExcerpt,
			})
		}
	}
}
