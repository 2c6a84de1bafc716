package plan

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rankd/rankd/registry"
)

// Ways in which a plan's name can be wrong.
var (
	// ErrBadName says that a name cannot be one of a plan: plans are looked up by names
	// of letters, digits and _ alone, so that no name can lead out of the folder.
	ErrBadName = errors.New("a plan name consists of letters, digits and _")
	// ErrUnknown says that the folder has no plan of that name.
	ErrUnknown = errors.New("unknown plan")
)

// validName is what plan names have to match to be looked up.
var validName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// nameLimit bounds a plan name in bytes, so that its file has a name that file systems
// take. No longer name can have a file.
const nameLimit = 200

// fileSuffix follows the plan's name in the name of its file.
const fileSuffix = ".plan.json"

// A Library finds plans by name in one folder, loads each at its first use and keeps
// it, or the error that refused it. Any goroutine.
type Library struct {
	folder   fs.FS
	ops      Ops
	registry *registry.Registry

	mu      sync.Mutex
	entries map[string]*entry // by plan name; only of files that exist
}

// entry is one file of the library.
type entry struct {
	once  sync.Once // guards the rest
	graph *Graph
	err   error
}

// NewLibrary returns a library of the files <name>.plan.json in folder, os.DirFS of
// --plan_dir, say, or the embedded plans. Nothing is read yet.
func NewLibrary(folder fs.FS, ops Ops, reg *registry.Registry) *Library {
	return &Library{folder: folder, ops: ops, registry: reg, entries: make(map[string]*entry)}
}

// Get returns the plan with that name, which is the name of its file. The error is
// ErrBadName, ErrUnknown (wrapped), an *Error, or one of reading the file.
func (l *Library) Get(name string) (*Graph, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("%w, not %s", ErrBadName, quote(name))
	}
	if len(name) > nameLimit {
		return nil, fmt.Errorf("%w %s", ErrUnknown, quote(name))
	}
	l.mu.Lock()
	e := l.entries[name]
	l.mu.Unlock()
	if e == nil {
		// Only names that have a file are remembered: anyone may ask for any name.
		if _, err := fs.Stat(l.folder, name+fileSuffix); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("%w %s", ErrUnknown, quote(name))
			}
			return nil, fmt.Errorf("plan %s: %w", name, err)
		}
		l.mu.Lock()
		if e = l.entries[name]; e == nil {
			e = new(entry)
			l.entries[name] = e
		}
		l.mu.Unlock()
	}
	e.once.Do(func() { e.graph, e.err = l.load(name + fileSuffix) })
	return e.graph, e.err
}

func (l *Library) load(file string) (*Graph, error) {
	f, err := l.folder.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return loadFrom(file, f, l.ops, l.registry)
}

// Listing is one file of a library: a plan, or the error that refused it. Immutable
// once built; any goroutine.
type Listing struct {
	Name  string // of the file, without suffix
	Graph *Graph // nil if Err is not
	Err   error
}

// List loads all plans of the library and returns them by name. A plan that does not
// load is listed with its error; List itself fails only if the folder cannot be read.
func (l *Library) List() ([]Listing, error) {
	files, err := fs.ReadDir(l.folder, ".")
	if err != nil {
		return nil, err
	}
	var list []Listing
	for _, file := range files {
		name, ok := strings.CutSuffix(file.Name(), fileSuffix)
		if !ok || file.IsDir() {
			continue
		}
		graph, err := l.Get(name)
		if errors.Is(err, ErrBadName) || errors.Is(err, ErrUnknown) {
			err = fmt.Errorf("%s: %w", file.Name(), err) // other errors name it themselves
		}
		list = append(list, Listing{Name: name, Graph: graph, Err: err})
	}
	slices.SortFunc(list, func(a, b Listing) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// LoadFile loads the plan in the file at path, whatever it calls itself. The error is
// an *Error, or one of reading the file.
func LoadFile(path string, ops Ops, reg *registry.Registry) (*Graph, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return loadFrom(path, f, ops, reg)
}

// loadFrom reads no more than one byte past the limit, which Load then refuses.
func loadFrom(file string, r io.Reader, ops Ops, reg *registry.Registry) (*Graph, error) {
	artifact, err := io.ReadAll(io.LimitReader(r, MaxArtifactBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return Load(file, artifact, ops, reg)
}
