package generation

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// Generation is what was loaded together: the tables, the models, their plans, and the parser and encoder for them. A
// request holds the generation that it began with, and so does its answer; the last of them releases it. A generation
// shares unchanged parts with the one before it. Immutable once the engine has it, except for plans that are first
// requested later; any goroutine.
type Generation struct {
	Number    uint64 // counts the generations that the engine has begun requests with, from 1
	Loaded    time.Time
	tables    *registry.Registry // as they were read
	Registry  *registry.Registry // tables, with the endpoints where the source moves them, and the passwords
	models    *gbdt.Set          // nil: no folder of models is given
	tasks     *task.Catalog
	Library   *plan.Library
	Aliases   map[string]*plan.Alias // by name; nil: none
	plan      *plan.Graph            // for requests without a plan; nil if there is none
	planName  string                 // of that plan, if it is in the library
	planText  []byte                 // of that plan, if it is not
	synthetic bool                   // without a plan, such a request has a synthetic answer
	Requests  *request.Parser
	Encoders  [2]*request.Encoder // by request.Format
	residents residents

	digests atomic.Pointer[digests] // nil until all plans have been loaded
}

// ErrNoPlan: a request does not name a plan, and the engine has no default.
var ErrNoPlan = errors.New("plan is missing, and the engine has none of its own")

// digests are those of a generation. Immutable.
type digests struct {
	all   string
	parts map[string]string
}

// Digest returns the hex SHA-256 of what the tables, the models and the plans say, "" until all plans have been loaded.
func (g *Generation) Digest() string {
	if d := g.digests.Load(); d != nil {
		return d.all
	}
	return ""
}

// Parts returns what Digest covers: the digest of each part, by its kind and name. It is nil until all plans have been loaded. The caller
// must not change the map.
func (g *Generation) Parts() map[string]string {
	if d := g.digests.Load(); d != nil {
		return d.parts
	}
	return nil
}

// ModelDigests returns the digest of each model, by name. The caller must not change the map.
func (g *Generation) ModelDigests() map[string]string { return g.models.Digests() }

// Own returns the name of the plan, or of the alias, for requests that do not name one; "": there is none.
func (g *Generation) Own() string {
	if a := g.Alias(""); a != nil {
		return a.Name
	}
	if g.plan != nil {
		return g.plan.Name
	}
	return ""
}

// Artifact returns the text of the artifact of a plan, as for Choose.
func (g *Generation) Artifact(name string) ([]byte, error) {
	graph, err := g.Choose(name)
	switch {
	case err != nil:
		return nil, err
	case graph == nil:
		return nil, ErrNoPlan
	case graph == g.plan && g.planText != nil:
		return g.planText, nil
	}
	return g.Library.Artifact(graph.Name)
}

// Version returns the version of a run of graph, which is not nil. a is the alias that was asked for, nil if it was none, and side is its side.
func (g *Generation) Version(graph *plan.Graph, a *plan.Alias, side string) plan.Version {
	v := plan.Version{Plan: graph.Name, Digest: graph.Digest, Side: side, Generation: g.Number, GenerationDigest: g.Digest()}
	if a != nil {
		v.Alias = a.Name
	}
	return v
}

// has reports whether there is a file of a plan of that name.
func (g *Generation) has(name string) bool {
	return g.plan != nil && g.planText != nil && name == g.plan.Name || g.Library.Has(name)
}

// works reports whether g can use plans of last unchanged.
func (g *Generation) works(last *Generation) bool {
	return last != nil && g.tasks == last.tasks && g.Registry == last.Registry
}

// List loads all plans of the folder, including the chosen one, and notes the digest. last is the previous
// generation; nil: there is none, or it does not matter.
func (g *Generation) List(last *Generation) (listing []plan.Listing, err error) {
	if g.works(last) {
		listing, err = g.Library.ListAfter(last.Library)
	} else {
		listing, err = g.Library.List()
	}
	if err == nil && g.planName != "" && g.plan == nil && g.Aliases[g.planName] == nil {
		g.plan, err = g.Library.Get(g.planName)
	}
	for i := range listing {
		if l := &listing[i]; l.Err == nil {
			if _, refused := g.Choose(l.Name); refused != nil {
				l.Graph, l.Err = nil, refused
			}
		}
	}
	if err == nil && g.digests.Load() == nil {
		g.digests.Store(g.digestsWith(listing))
	}
	return listing, err
}

// digestsWith returns the digests of a generation that has these plans.
func (g *Generation) digestsWith(listing []plan.Listing) *digests {
	parts := map[string]string{"tables": g.tables.Digest()}
	for name, digest := range g.models.Digests() {
		parts["model "+name] = digest
	}
	for name, a := range g.Aliases {
		parts["alias "+name] = fmt.Sprintf("%q %q %v %q", a.A, a.B, a.BShare, a.Salt)
	}
	if g.plan != nil {
		parts["own plan"] = g.plan.Name + " " + g.plan.Digest
	}
	for _, l := range listing {
		if l.Err == nil {
			parts["plan "+l.Name] = l.Graph.Digest
		}
	}
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		fmt.Fprintf(hash, "%q %q\n", name, parts[name])
	}
	return &digests{hex.EncodeToString(hash.Sum(nil)), parts}
}

// Alias returns the alias of a name, or of the plan for requests that name none; nil: the name is not an alias.
func (g *Generation) Alias(name string) *plan.Alias {
	if name == "" {
		name = g.planName
	}
	return g.Aliases[name]
}

// Choose returns the plan for a request with that name, or for one without a name (""), and side a of an alias. A nil
// plan without error means the synthetic answer. A plan whose Fallback cannot answer is refused.
func (g *Generation) Choose(name string) (*plan.Graph, error) {
	if a := g.Alias(name); a != nil {
		name = a.A
	}
	graph, err, _ := g.choose(name, func(name string) (*plan.Graph, error, bool) {
		if graph, err, ok := g.loaded(name); ok {
			return graph, err, true
		}
		graph, err := g.Library.Get(name)
		return graph, err, true
	})
	return graph, err
}

// LookUp is Choose without waiting. It reports false if the library has not loaded the plan yet, or its Fallback.
func (g *Generation) LookUp(name string) (graph *plan.Graph, err error, ok bool) {
	return g.choose(name, g.loaded)
}

func (g *Generation) choose(name string, get func(string) (*plan.Graph, error, bool)) (graph *plan.Graph, err error, ok bool) {
	graph, err, ok = get(name)
	if err == nil && graph != nil && graph.Below.Plan() != "" {
		fallback, refused, known := get(graph.Below.Plan())
		return graph, g.fits(graph, fallback, refused), known
	}
	return graph, err, ok
}

// loaded returns the plan for a request with that name, or for one without a name (""). It never waits, and reports
// false if the library has not loaded the plan yet.
func (g *Generation) loaded(name string) (graph *plan.Graph, err error, ok bool) {
	switch {
	case name == "" && g.plan == nil && !g.synthetic:
		return nil, ErrNoPlan, true
	case name == "" || g.plan != nil && name == g.plan.Name:
		return g.plan, nil, true
	}
	return g.Library.Loaded(name)
}

// Fallback returns the plan that answers in place of one that Choose has returned, nil if none does.
func (g *Generation) Fallback(graph *plan.Graph) *plan.Graph {
	if graph == nil || graph.Below.Plan() == "" {
		return nil
	}
	fallback, _, _ := g.loaded(graph.Below.Plan())
	return fallback
}

// fits returns why fallback, which was loaded with the error refused, cannot answer in place of graph; nil: it can.
func (g *Generation) fits(graph, fallback *plan.Graph, refused error) error {
	name := graph.Below.Plan()
	if a := g.Aliases[name]; a != nil {
		refused = errors.New("that is an alias, and must be a plan: name " + a.A)
	} else if refused == nil && fallback != nil { // Otherwise nobody has loaded it yet.
		refused = graph.CheckFallback(fallback)
	}
	if refused == nil {
		return nil
	}
	return fmt.Errorf("plan %s: below: plan %s cannot answer in its place: %v", graph.Name, name, refused) // no unknown plan: it is this one
}

// refuses reports whether the plan of that name is there, and Choose refuses it.
func (g *Generation) refuses(name string) bool {
	if graph, _, _ := g.Library.Loaded(name); graph == nil {
		return g.Library.Refused(name)
	}
	_, err := g.Choose(name)
	return err != nil
}

// Plans returns the plans that are loaded, each once, by name.
func (g *Generation) Plans() []*plan.Graph {
	graphs := g.Library.Graphs()
	if g.plan != nil {
		graphs = append(graphs, g.plan)
	}
	slices.SortFunc(graphs, func(a, b *plan.Graph) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(graphs)
}
