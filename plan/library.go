package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/inputfile"
	"github.com/rankd/rankd/internal/nearest"
	"github.com/rankd/rankd/registry"
)

// Classes of errors about a plan's name.
var (
	// ErrBadName says that no plan can have the name. Plans are found only by names of
	// letters, digits and _, so a name cannot lead out of the folder.
	ErrBadName = errors.New("a plan name consists of letters, digits and _")
	// ErrUnknown says that the folder has no plan of that name.
	ErrUnknown = errors.New("unknown plan")
)

// validName matches the names that plans can have.
var validName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// nameLimit bounds a plan name in bytes, so that file systems take the name of its file.
const nameLimit = 200

// fileSuffix follows the plan's name in the name of its file.
const fileSuffix = ".plan.json"

// A Library finds plans by name in one folder. It loads each at its first use and keeps
// the plan, or the error that refused it. Any goroutine.
type Library struct {
	folder   fs.FS
	place    string // names the folder in errors
	ops      Ops
	registry *registry.Registry

	listing func() []string // names of the plans when one was first not found, ascending

	// entries holds one entry by plan name for each file that was asked for and exists. Every
	// request looks its plan up, so the map is immutable: adding an entry replaces it by a copy.
	entries atomic.Pointer[map[string]*entry]
	adding  sync.Mutex // held while entries is replaced
}

// entry is one file of the library.
type entry struct {
	once  sync.Once // guards the rest
	graph *Graph
	err   error
}

// NewLibrary returns a library of the files <name>.plan.json in folder. place names the
// folder in errors: "folder /plans", "the built-in examples". NewLibrary reads nothing.
func NewLibrary(folder fs.FS, place string, ops Ops, reg *registry.Registry) *Library {
	l := &Library{folder: folder, place: place, ops: ops, registry: reg}
	l.entries.Store(&map[string]*entry{})
	l.listing = sync.OnceValue(l.names)
	return l
}

// Get returns the plan with that name. The file and the plan's own plan_name have the same
// name. The error is ErrBadName, ErrUnknown (wrapped), an *Error, or one of reading the file.
func (l *Library) Get(name string) (*Graph, error) {
	e := (*l.entries.Load())[name]
	if e == nil {
		var err error
		if e, err = l.find(name); err != nil {
			return nil, err
		}
	}
	e.once.Do(func() { e.graph, e.err = l.load(name) })
	return e.graph, e.err
}

// find adds an entry for the file of the plan with that name. Names without a file get none,
// since anyone may ask for any name.
func (l *Library) find(name string) (*entry, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("%w, not %s", ErrBadName, excerpt.Quote(name))
	}
	if len(name) > nameLimit {
		return nil, fmt.Errorf("%w %s in %s", ErrUnknown, excerpt.Quote(name), l.place)
	}
	if _, err := fs.Stat(l.folder, name+fileSuffix); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, l.unknown(name)
		}
		return nil, fmt.Errorf("plan %s: %w", name, err)
	}
	l.adding.Lock()
	defer l.adding.Unlock()
	entries := *l.entries.Load()
	if e := entries[name]; e != nil { // another goroutine was faster
		return e, nil
	}
	entries = maps.Clone(entries)
	e := new(entry)
	entries[name] = e
	l.entries.Store(&entries)
	return e, nil
}

func (l *Library) load(name string) (*Graph, error) {
	file := name + fileSuffix
	artifact, err := inputfile.Read(l.folder, file, MaxArtifactBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	graph, err := Load(file, artifact, l.ops, l.registry)
	if err == nil && graph.Name != name {
		// A request for one plan could run another without this check.
		err = &Error{File: file, Field: "plan_name",
			Msg: fmt.Sprintf("is %s, must be %q as the name of the file says", excerpt.Quote(graph.Name), name)}
	}
	if err != nil {
		return nil, err
	}
	return graph, nil
}

// unknown returns the error for a name without a file. It names the place and the nearest plan.
func (l *Library) unknown(name string) error {
	near, found := nearest.Name(name, l.listing())
	if !found {
		return fmt.Errorf("%w %s: there are no plans in %s", ErrUnknown, excerpt.Quote(name), l.place)
	}
	return fmt.Errorf("%w %s in %s; the nearest is %q", ErrUnknown, excerpt.Quote(name), l.place, near)
}

// names returns the names of the plans in the folder, as many as can be read.
func (l *Library) names() []string {
	files, _ := fs.ReadDir(l.folder, ".")
	var names []string
	for _, file := range files {
		name, ok := strings.CutSuffix(file.Name(), fileSuffix)
		if ok && !file.IsDir() && validName.MatchString(name) && len(name) <= nameLimit {
			names = append(names, name)
		}
	}
	return names
}

// Listing is one file of a library: a plan, or the error that refused it. Immutable
// once built; any goroutine.
type Listing struct {
	Name  string // name of the file, without suffix
	Graph *Graph // nil if Err is set
	Err   error
}

// List loads all plans of the library and returns them in the order of their names. It lists
// a plan that does not load with its error. List fails only if the folder cannot be read.
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
			err = fmt.Errorf("%s: %w", excerpt.Name(file.Name()), err) // other errors name it themselves
		}
		list = append(list, Listing{Name: name, Graph: graph, Err: err})
	}
	slices.SortFunc(list, func(a, b Listing) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// ReadFile returns the artifact in the file at path, which may be a pipe. A pipe can be read
// only once, but callers can load the artifact again with another registry.
func ReadFile(path string) ([]byte, error) {
	artifact, err := inputfile.ReadPath(path, MaxArtifactBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", excerpt.Name(path), err)
	}
	return artifact, nil
}
