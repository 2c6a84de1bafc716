package compiler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// ForEngine compiles the plans of one engine: it is a rankd.Compiler. The zero value is ready. Close
// it after the engine. Any goroutine.
type ForEngine struct {
	// Report is called with each outcome, so that a program can show warnings. Nil means that warnings are dropped.
	Report func(Result)

	mu     sync.Mutex
	with   *compiling // nil until the first plan; guarded by mu, as are closed and what with holds
	closed bool
}

// compiling is a compiler for one generation of an engine, which a reload replaces. ForEngine.mu guards it.
type compiling struct {
	compiler *Compiler
	tasks    *task.Catalog
	registry *registry.Registry
	copied   string // path of a copy of the plan folder; "" if there is none
	users    int    // number of its users: calls of Compile, and the ForEngine itself
}

// copyName is the name of the copy, with which spans begin.
const copyName = "plans"

// Compile returns the artifact of the plan in a file of folder. dir is the folder's path. A folder
// without a path is copied, because a child process reads the sources. The error is a *Failure if
// the plan is refused.
func (e *ForEngine) Compile(folder fs.FS, dir, file string, tasks *task.Catalog, reg *registry.Registry) ([]byte, error) {
	c, err := e.start(tasks, reg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer e.leave(c)
	above := "" // the copy, if there is one, is in this folder
	if dir == "" {
		if dir, err = e.copy(c, folder); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		above = filepath.Dir(dir) + string(filepath.Separator)
	}
	results, err := c.compiler.Compile(context.Background(), Source{Folder: dir, File: file})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r := results[0]
	for _, list := range [...][]Diagnostic{r.Errors, r.Warnings} {
		for i := range list {
			list[i].File = strings.TrimPrefix(list[i].File, above)
		}
	}
	if e.Report != nil {
		e.Report(r)
	}
	if len(r.Errors) > 0 {
		return nil, &Failure{Diagnostics: r.Errors}
	}
	return r.Artifact, nil
}

// start returns the compiler for these tasks and tables, which the first plan of a generation starts. The caller
// drops it.
func (e *ForEngine) start(tasks *task.Catalog, reg *registry.Registry) (*compiling, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	if e.with == nil || e.with.tasks != tasks || e.with.registry != reg {
		c, err := New(Config{Tasks: tasks, Registry: reg})
		if err != nil {
			return nil, err
		}
		_ = e.with.drop() // An error does not affect the new one.
		e.with = &compiling{compiler: c, tasks: tasks, registry: reg, users: 1}
	}
	e.with.users++
	return e.with, nil
}

// leave ends a use of c.
func (e *ForEngine) leave(c *compiling) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = c.drop() // Close returns the error of the last one.
}

// drop ends a use of c. The last one ends c itself.
func (c *compiling) drop() (err error) {
	if c == nil {
		return nil
	}
	if c.users--; c.users > 0 {
		return nil
	}
	err = c.compiler.Close()
	if c.copied != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Dir(c.copied)))
	}
	return err
}

// copy returns the path of a copy of the sources in the engine's plan folder.
func (e *ForEngine) copy(c *compiling, folder fs.FS) (path string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.copied != "" {
		return c.copied, nil
	}
	above, err := os.MkdirTemp("", "rankd-")
	if err != nil {
		return "", err
	}
	c.copied = filepath.Join(above, copyName)
	return c.copied, fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".ts") {
			return err
		}
		to := filepath.Join(c.copied, filepath.FromSlash(name))
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600))
	})
}

// Close ends the compiler's processes and removes what it wrote. Compile then fails with ErrClosed.
func (e *ForEngine) Close() (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	err = e.with.drop()
	e.with, e.closed = nil, true
	return err
}

// Failure is the refusal of one plan. Immutable; any goroutine.
type Failure struct{ Diagnostics []Diagnostic }

// Error implements error: one line with the first diagnostic, for answers and logs.
func (f *Failure) Error() string {
	first := &f.Diagnostics[0]
	text := first.Place() + ": " + first.Message
	if first.Hint != "" {
		text += "; " + first.Hint
	}
	if more := len(f.Diagnostics) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// Text returns all diagnostics for a terminal, with excerpts and hints.
func (f *Failure) Text() string {
	var b strings.Builder
	for i := range f.Diagnostics {
		b.WriteString(f.Diagnostics[i].String() + "\n")
	}
	return b.String()
}
