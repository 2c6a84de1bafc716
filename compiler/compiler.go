package compiler

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// Version is the version of the language, which artifacts carry as tool_version. It changes when
// the same source gives another artifact.
const Version = "1"

// Extension is how the names of plan files end.
const Extension = ".plan.ts"

// Config says how a Compiler works. Tasks and Registry are required.
type Config struct {
	Tasks    *task.Catalog
	Registry *registry.Registry
	// Command starts a child process that calls Main. Nil means this program itself, whose main
	// must then call Main first.
	Command []string
	// Timeout bounds the compilation of one plan. Zero means 10 s.
	Timeout time.Duration
	// MemoryBytes bounds the memory of a child. Zero means 512 MiB.
	MemoryBytes int64
}

// A Compiler compiles plans in child processes, which it starts on demand and keeps. Any goroutine.
type Compiler struct {
	config   Config
	language *Language
}

// New returns a compiler. It starts no process yet.
func New(config Config) (*Compiler, error) {
	return &Compiler{config: config, language: NewLanguage(config.Tasks, config.Registry)}, nil
}

// Language returns the vocabulary of the compiler's plans.
func (c *Compiler) Language() *Language { return c.language }

// Close ends the child processes. Compile fails from then on.
func (c *Compiler) Close() error { return nil }

// A Source is one plan. Immutable; any goroutine.
type Source struct {
	Folder string // where imports may reach; as the caller wrote it, "plans"
	File   string // relative to Folder, with slashes: "complex_dag.plan.ts"
	Text   []byte // replaces what the file holds; nil means the file
}

// SourceFile returns the source in the file at path. Imports may reach the file's folder.
func SourceFile(path string) Source {
	return Source{Folder: filepath.Dir(path), File: filepath.Base(path)}
}

// Path returns the path of the source as the caller wrote it.
func (s Source) Path() string { return filepath.Join(s.Folder, filepath.FromSlash(s.File)) }

// Folder returns the plans that lie in the folder dir, ascending by name. It does not look into
// folders of dir.
func Folder(dir string) ([]Source, error) { return nil, errors.New("not yet") }

// Result is the outcome for one source. Immutable once built; any goroutine.
type Result struct {
	Source
	Plan     string // the plan's name; "" if the source did not come so far
	Artifact []byte // nil if there are Errors
	Errors   []Diagnostic
	Warnings []Diagnostic
	Files    []string // paths of the files that were read, the plan's own first
	Digest   string   // hex SHA-256 of those files, as in the artifact's built_by
}

// Compile compiles the sources and returns one result for each, in their order. Two plans of one
// name are both refused. The error is for a compiler that cannot work at all: the context has
// ended, a child process cannot start. Faults of plans are in the results.
func (c *Compiler) Compile(ctx context.Context, sources ...Source) ([]Result, error) {
	return nil, errors.New("not yet")
}

// Main serves as a compiler's child process if this process is one, and then ends the process. A
// program that compiles plans calls it first in main, and TestMain of its tests does too. Otherwise
// it does nothing.
func Main() {}
