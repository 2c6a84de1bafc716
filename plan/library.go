package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/registry"
)

// Classes of errors about a plan's name.
var (
	// ErrBadName says that no plan can have the name. Plans are found only by names of
	// letters, digits and _, so a name cannot lead out of the folder.
	ErrBadName = errors.New("a plan name consists of letters, digits and _")
	// ErrUnknown says that the folder has no plan of that name.
	ErrUnknown = errors.New("unknown plan")
	// ErrNoCompiler says that the plan is a source, and nobody can compile it.
	ErrNoCompiler = errors.New("the plan is TypeScript, and this engine has no compiler; compile it to an artifact")
)

// validName matches the names that plans can have.
var validName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// nameLimit bounds a plan name in bytes, so that file systems take the name of its file.
const nameLimit = 200

// isName reports whether the name is valid for a plan.
func isName(name string) bool { return len(name) <= nameLimit && validName.MatchString(name) }

// The suffixes that follow the plan's name in the name of its file.
const (
	ArtifactSuffix = ".plan.json" // an artifact
	SourceSuffix   = ".plan.ts"   // a source, which a Compile turns into an artifact
)

// Compile returns the artifact of the plan whose source is a file of the library's folder. The
// error names the file. Any goroutine.
type Compile func(file string) ([]byte, error)

// A Library finds plans by name in one folder. It loads each at its first use and keeps the plan, or the error that
// refused it. When a refused plan is asked for, the library loads it again if a file has changed; it checks at most
// once a second. Any goroutine.
type Library struct {
	folder   fs.FS
	place    string // names the folder in errors
	ops      Ops
	registry *registry.Registry
	compile  Compile // nil: the library refuses sources
	now      func() time.Time
	last     *Library // set while ListAfter runs

	listing func() []string // names of the plans, ascending, as of the first time that one was not found

	// entries holds one entry by plan name for each existing file that was asked for. Every request looks its plan
	// up, so the map is immutable: adding an entry replaces the map with a copy.
	entries atomic.Pointer[map[string]*entry]
	adding  sync.Mutex // held while entries is replaced
}

// entry is one plan of the library.
type entry struct {
	loading sync.Mutex              // held while the plan is loaded
	outcome atomic.Pointer[outcome] // the last one; nil: none yet
}

// outcome is what came of loading a plan. Immutable.
type outcome struct {
	graph  *Graph
	err    error
	stamp  string    // of the files at that time
	looked time.Time // when stamp was last found to be the same
}

// retryAfter is the least time between two checks of the files of a refused plan.
const retryAfter = time.Second

// stands reports whether the outcome still holds without a check.
func (l *Library) stands(o *outcome) bool {
	return o != nil && (o.err == nil || l.now().Sub(o.looked) < retryAfter)
}

// NewLibrary returns a library of the files <name>.plan.json and <name>.plan.ts in folder. place
// names the folder in errors: "folder /plans", "the built-in examples". A nil compile refuses
// sources. NewLibrary reads nothing.
func NewLibrary(folder fs.FS, place string, ops Ops, reg *registry.Registry, compile Compile) *Library {
	l := &Library{folder: folder, place: place, ops: ops, registry: reg, compile: compile, now: time.Now}
	l.entries.Store(&map[string]*entry{})
	l.listing = sync.OnceValue(l.names)
	return l
}

// Loaded returns the plan with that name as Get does, but only if Get has loaded it before. It
// never waits.
func (l *Library) Loaded(name string) (graph *Graph, err error, ok bool) {
	e := (*l.entries.Load())[name]
	if e == nil {
		return nil, nil, false
	}
	o := e.outcome.Load()
	if !l.stands(o) {
		return nil, nil, false
	}
	return o.graph, o.err, true
}

// Has reports whether the folder has one file of a plan of that name.
func (l *Library) Has(name string) bool {
	if !isName(name) {
		return false
	}
	_, err := l.file(name)
	return err == nil
}

// Refused reports whether the file of a plan was refused at its last check.
func (l *Library) Refused(name string) bool {
	e := (*l.entries.Load())[name]
	if e == nil {
		return false
	}
	o := e.outcome.Load()
	return o != nil && o.err != nil
}

// Graphs returns the plans that are loaded, in no order.
func (l *Library) Graphs() []*Graph {
	var graphs []*Graph
	for _, e := range *l.entries.Load() {
		if o := e.outcome.Load(); o != nil && o.err == nil {
			graphs = append(graphs, o.graph)
		}
	}
	return graphs
}

// Get returns the plan with that name. The file's name must match the plan's own plan_name. The error is ErrBadName,
// ErrUnknown (wrapped), an *Error, or one of reading the file.
func (l *Library) Get(name string) (*Graph, error) {
	e := (*l.entries.Load())[name]
	if e == nil {
		var err error
		if e, err = l.find(name); err != nil {
			return nil, err
		}
	}
	e.loading.Lock()
	defer e.loading.Unlock()
	last := e.outcome.Load()
	if l.stands(last) {
		return last.graph, last.err
	}
	next := &outcome{stamp: l.stamp(name)} // before the files are read
	if last != nil && last.stamp == next.stamp {
		next.err = last.err
	} else {
		next.graph, next.err = l.load(name)
	}
	next.looked = l.now()
	e.outcome.Store(next)
	return next.graph, next.err
}

// stamp returns a text that changes when somebody writes the file of a plan, or any source, which the plan may import.
func (l *Library) stamp(name string) string {
	var all strings.Builder
	note := func(path string, file fs.FileInfo) {
		fmt.Fprintln(&all, path, file.Size(), file.ModTime().UnixNano())
	}
	if file, err := fs.Stat(l.folder, name+ArtifactSuffix); err == nil {
		note(name, file)
	}
	if _, err := fs.Stat(l.folder, name+SourceSuffix); err != nil {
		return all.String()
	}
	_ = fs.WalkDir(l.folder, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".ts") {
			if file, err := entry.Info(); err == nil {
				note(path, file)
			}
		}
		return nil // What cannot be read has no stamp.
	})
	return all.String()
}

// find adds an entry for the file of the plan with that name. Names without a file get none,
// since anyone may ask for any name.
func (l *Library) find(name string) (*entry, error) {
	if !isName(name) {
		return nil, l.Unknown(name)
	}
	if _, err := l.file(name); err != nil {
		return nil, err
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

// file returns the only file of the plan with that name.
func (l *Library) file(name string) (string, error) {
	var found []string
	for _, suffix := range [...]string{ArtifactSuffix, SourceSuffix} {
		_, err := fs.Stat(l.folder, name+suffix)
		switch {
		case err == nil:
			found = append(found, name+suffix)
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("plan %s: %w", name, err)
		}
	}
	switch len(found) {
	case 0:
		for _, suffix := range [...]string{ArtifactSuffix, SourceSuffix} {
			if _, err := fs.Lstat(l.folder, name+suffix); err == nil {
				return "", fmt.Errorf("%s: is a link to a file that does not exist", name+suffix)
			}
		}
		return "", l.Unknown(name)
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("plan %s: %s holds %s and %s; remove one of them", name, l.place, found[0], found[1])
	}
}

func (l *Library) load(name string) (*Graph, error) {
	file, err := l.file(name)
	if err != nil {
		return nil, err
	}
	artifact, err := l.artifact(file)
	if err != nil {
		return nil, err
	}
	if graph, ok := l.unchanged(name, artifact); ok {
		return graph, nil
	}
	graph, err := Load(file, artifact, l.ops, l.registry)
	if err == nil && graph.Name != name {
		// Without this check a request for one plan could run another.
		err = &Error{File: file, Field: "plan_name",
			Msg: fmt.Sprintf("is %s, must be %q as the name of the file says", errtext.Quote(graph.Name), name)}
	}
	if err != nil {
		return nil, err
	}
	return graph, nil
}

// unchanged returns the plan that the last library has loaded from the same artifact.
func (l *Library) unchanged(name string, artifact []byte) (graph *Graph, ok bool) {
	if l.last == nil {
		return nil, false
	}
	graph, err, ok := l.last.Loaded(name)
	return graph, ok && err == nil && graph.Digest == Digest(artifact)
}

// Artifact returns the text of the artifact of the plan with that name. It reads or compiles the
// file again. The error is the same as of Get.
func (l *Library) Artifact(name string) ([]byte, error) {
	if _, err := l.Get(name); err != nil {
		return nil, err
	}
	file, err := l.file(name)
	if err != nil {
		return nil, err
	}
	return l.artifact(file)
}

// artifact reads or compiles the artifact of one file.
func (l *Library) artifact(file string) ([]byte, error) {
	if !strings.HasSuffix(file, SourceSuffix) {
		artifact, err := fileio.Read(l.folder, file, MaxArtifactBytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return artifact, nil
	}
	if l.compile == nil {
		return nil, fmt.Errorf("%s: %w", file, ErrNoCompiler)
	}
	return l.compile(file)
}

// Unknown returns the error of Get for a name without a file, and does not look for the file. It names the place and the nearest
// plan.
func (l *Library) Unknown(name string) error {
	switch {
	case !validName.MatchString(name):
		return fmt.Errorf("%w, not %s", ErrBadName, errtext.Quote(name))
	case len(name) > nameLimit:
		return fmt.Errorf("%w %s in %s", ErrUnknown, errtext.Quote(name), l.place)
	}
	near, found := errtext.Nearest(name, l.listing())
	if !found {
		return fmt.Errorf("%w %s: there are no plans in %s", ErrUnknown, errtext.Quote(name), l.place)
	}
	if near == name { // The caller knows only those that were there before.
		return fmt.Errorf("%w %s: its file in %s is not loaded yet", ErrUnknown, errtext.Quote(name), l.place)
	}
	return fmt.Errorf("%w %s in %s; the nearest is %q", ErrUnknown, errtext.Quote(name), l.place, near)
}

// names returns the names of the plans in the folder, as many as can be read.
func (l *Library) names() []string {
	files, _ := fs.ReadDir(l.folder, ".")
	var names []string
	for _, file := range files {
		name, ok := NameOfFile(file.Name())
		if ok && isName(name) {
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}

// NameOfFile returns the name of the plan in a file of that name: "x" for "x.plan.json" and
// "x.plan.ts". False means that such a file holds no plan.
func NameOfFile(file string) (name string, ok bool) {
	if name, ok = strings.CutSuffix(file, ArtifactSuffix); ok {
		return name, true
	}
	return strings.CutSuffix(file, SourceSuffix)
}

// Listing is one file of a library: a plan, or the error that refused it. Immutable
// once built; any goroutine.
type Listing struct {
	Name  string // name of the file, without suffix
	Graph *Graph // nil if Err is set
	Err   error
}

// List loads all plans of the library, several at the same time, and returns them in the order of
// their names. It lists a plan that does not load with its error. List fails only if the folder
// cannot be read.
func (l *Library) List() ([]Listing, error) {
	files, err := fs.ReadDir(l.folder, ".")
	if err != nil {
		return nil, err
	}
	list := make([]Listing, 0, len(files))
	seen := make(map[string]bool)
	var loading sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, file := range files {
		name, ok := NameOfFile(file.Name())
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		list = append(list, Listing{Name: name})
		entry := &list[len(list)-1]
		slots <- struct{}{}
		loading.Go(func() {
			defer func() { <-slots }()
			entry.Graph, entry.Err = l.Get(name)
			if errors.Is(entry.Err, ErrBadName) || errors.Is(entry.Err, ErrUnknown) {
				entry.Err = fmt.Errorf("%s: %w", errtext.Name(file.Name()), entry.Err) // other errors name it themselves
			}
		})
	}
	loading.Wait()
	slices.SortFunc(list, func(a, b Listing) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// ListAfter is List for a library that replaces last, and that nobody else uses yet. It takes over the plans of last
// whose artifacts are unchanged. last has the same ops and the same registry.
func (l *Library) ListAfter(last *Library) ([]Listing, error) {
	l.last = last
	defer func() { l.last = nil }()
	return l.List()
}

// ReadFile returns the artifact in the file at path, which may be a pipe. A pipe can be read
// only once, but callers can load the artifact again with another registry.
func ReadFile(path string) ([]byte, error) {
	artifact, err := fileio.ReadPath(path, MaxArtifactBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", errtext.Name(path), err)
	}
	return artifact, nil
}
