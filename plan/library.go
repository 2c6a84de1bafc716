package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/inputfile"
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
	place    string // what errors call the folder
	ops      Ops
	registry *registry.Registry

	listing func() []string // names of the plans when one was first not found, ascending

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
// --plan_dir, say, or the embedded plans. Errors call it place: "folder /plans", "the
// built-in examples". Nothing is read yet.
func NewLibrary(folder fs.FS, place string, ops Ops, reg *registry.Registry) *Library {
	l := &Library{folder: folder, place: place, ops: ops, registry: reg, entries: make(map[string]*entry)}
	l.listing = sync.OnceValue(l.names)
	return l
}

// Get returns the plan with that name, which is the name of its file and what the
// plan calls itself. The error is ErrBadName, ErrUnknown (wrapped), an *Error, or one of
// reading the file.
func (l *Library) Get(name string) (*Graph, error) {
	l.mu.Lock()
	e := l.entries[name]
	l.mu.Unlock()
	if e == nil { // only sound names have an entry
		var err error
		if e, err = l.find(name); err != nil {
			return nil, err
		}
	}
	e.once.Do(func() { e.graph, e.err = l.load(name) })
	return e.graph, e.err
}

// find returns the entry of a name that is asked for the first time. It remembers only names
// that have a file: anyone may ask for any name.
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
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[name]
	if e == nil {
		e = new(entry)
		l.entries[name] = e
	}
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
		// Or else who asks for one plan would get another.
		err = &Error{File: file, Field: "plan_name",
			Msg: fmt.Sprintf("is %s, must be %q as the name of the file says", excerpt.Quote(graph.Name), name)}
	}
	if err != nil {
		return nil, err
	}
	return graph, nil
}

// unknown says where there is no plan of that name, and which name is nearest.
func (l *Library) unknown(name string) error {
	near, found := nearest(name, l.listing())
	if !found {
		return fmt.Errorf("%w %s: there are no plans in %s", ErrUnknown, excerpt.Quote(name), l.place)
	}
	return fmt.Errorf("%w %s in %s; the nearest is %q", ErrUnknown, excerpt.Quote(name), l.place, near)
}

// names returns the names of the plans in the folder, as far as it can be read.
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
			err = fmt.Errorf("%s: %w", excerpt.Name(file.Name()), err) // other errors name it themselves
		}
		list = append(list, Listing{Name: name, Graph: graph, Err: err})
	}
	slices.SortFunc(list, func(a, b Listing) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// ReadFile returns the artifact in the file at path, which may be a pipe: that can be
// read only once, while an artifact can be loaded with one registry after another.
func ReadFile(path string) ([]byte, error) {
	artifact, err := inputfile.ReadPath(path, MaxArtifactBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", excerpt.Name(path), err)
	}
	return artifact, nil
}
