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
	// Report is called with each outcome, so that a program can show warnings. Nil means nobody is told.
	Report func(Result)

	mu       sync.Mutex
	compiler *Compiler // nil until the first plan; guarded by mu, as are copied and closed
	closed   bool
	copied   string // path of a copy of the plan folder; "" if there is none
}

// copyName is the name of the copy, with which spans begin.
const copyName = "plans"

// Compile returns the artifact of the plan in a file of folder. dir is the folder's path. A folder
// without a path is copied, because a child process reads the sources. The error is a *Failure if
// the plan is refused.
func (e *ForEngine) Compile(folder fs.FS, dir, file string, tasks *task.Catalog, reg *registry.Registry) ([]byte, error) {
	c, err := e.start(tasks, reg)
	above := "" // the copy, if there is one, lies in this folder
	if err == nil && dir == "" {
		dir, err = e.copy(folder)
		above = filepath.Dir(dir) + string(filepath.Separator)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	results, err := c.Compile(context.Background(), Source{Folder: dir, File: file})
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

// start returns the compiler, which the first plan starts.
func (e *ForEngine) start(tasks *task.Catalog, reg *registry.Registry) (_ *Compiler, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, ErrClosed
	case e.compiler == nil:
		e.compiler, err = New(Config{Tasks: tasks, Registry: reg})
	}
	return e.compiler, err
}

// copy returns the path of a copy of the sources in the engine's plan folder.
func (e *ForEngine) copy(folder fs.FS) (path string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.copied != "" {
		return e.copied, nil
	}
	above, err := os.MkdirTemp("", "rankd-")
	if err != nil {
		return "", err
	}
	e.copied = filepath.Join(above, copyName)
	return e.copied, fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".ts") {
			return err
		}
		to := filepath.Join(e.copied, filepath.FromSlash(name))
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
	if e.compiler != nil {
		err = e.compiler.Close()
	}
	if e.copied != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Dir(e.copied)))
	}
	e.compiler, e.copied, e.closed = nil, "", true
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
