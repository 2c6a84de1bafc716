package rankd

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/gbdt"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// generation is what was loaded together: the tables, the models, the plans that work with them, and what reads requests and shows answers by
// them. A request holds the generation that it began with, and so does its answer: the last of them lets it go. It shares with the generation
// before it what is the same. Immutable once it is the engine's, but for plans that were first asked for later; any goroutine.
type generation struct {
	number    uint64 // as Generation.Number
	loaded    time.Time
	tables    *registry.Registry // as they were read
	registry  *registry.Registry // tables, with the endpoints where the options move them, and the passwords
	models    *gbdt.Set          // nil: no folder of models is given
	tasks     *task.Catalog
	library   *plan.Library
	aliases   map[string]*plan.Alias // by name; nil: none
	plan      *plan.Graph            // for requests that name none; nil if there is none
	planName  string                 // of that plan, if it is in the library
	planText  []byte                 // of that plan, if it is not
	synthetic bool                   // without a plan, such a request has a synthetic answer
	requests  *request.Parser
	encoders  [2]*request.Encoder // by Format
	residents residents

	digest atomic.Pointer[string] // nil until all plans have been loaded
}

// load reads the tables, the models and the plans. last is the generation before; nil: there is none.
func (e *Engine) load(last *generation) (*generation, error) {
	o := &e.options
	g := &generation{loaded: time.Now(), synthetic: o.Synthetic, planName: o.Plan}
	err := e.loadTables(g, last)
	if err == nil {
		err = e.loadTasks(g, last)
	}
	if err != nil {
		return nil, err
	}
	if last != nil && g.registry == last.registry {
		g.requests, g.encoders = last.requests, last.encoders
	} else {
		g.requests = request.NewParser(g.registry)
		for _, f := range [...]Format{FormatFlat, FormatFields} {
			g.encoders[f] = request.NewEncoder(g.registry, f)
		}
	}
	folder := o.Plans
	if folder == nil {
		folder = artifacts.Plans()
	}
	g.library = plan.NewLibrary(folder, o.PlansName, g.tasks, g.registry, o.compile(folder, o.PlansDir, g.tasks, g.registry))
	if g.aliases, err = plan.ReadAliases(folder); err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(o.PlansName, "the folder of plans"), err)
	}
	switch {
	case g.aliases[o.Plan] != nil: // Each request has its own side.
	case o.PlanFile != "":
		if g.planText, err = e.readPlan(g, last); err != nil {
			break
		}
		if g.works(last) && last.plan.Digest == plan.Digest(g.planText) {
			g.plan = last.plan
		} else {
			g.plan, err = plan.Load(o.PlanFile, g.planText, g.tasks, g.registry)
		}
	case o.Plan != "" && last == nil: // Otherwise list does so.
		g.plan, err = g.library.Get(o.Plan)
	}
	if err == nil && last == nil {
		err = plan.Aliased(g.aliases, g.has)
	}
	return g, err
}

// has reports whether there is a file of a plan of that name.
func (g *generation) has(name string) bool {
	return g.plan != nil && g.planText != nil && name == g.plan.Name || g.library.Has(name)
}

// works reports whether plans of last work with g as they are.
func (g *generation) works(last *generation) bool {
	return last != nil && g.tasks == last.tasks && g.registry == last.registry
}

// loadTables fills in the tables. A later generation shares the endpoints that stay as they are, with the connections to them.
func (e *Engine) loadTables(g, last *generation) (err error) {
	if g.tables, err = e.readTables(); err != nil {
		return err
	}
	if last != nil && g.tables.Equal(last.tables) {
		g.tables, g.registry = last.tables, last.registry
		return nil
	}
	moved, err := e.moveEndpoints(g.tables)
	switch {
	case err != nil:
	case last == nil && e.options.NoSecrets:
		g.registry = moved
	case last == nil:
		g.registry, err = moved.ReadSecrets()
	default:
		stays := func(id string) bool { return g.tables.Succeeds(last.tables, id) }
		g.registry, err = moved.Adopt(last.registry, stays, e.newPlace, !e.options.NoSecrets)
	}
	if err == nil && last == nil {
		e.places = len(g.registry.Endpoints())
	}
	return err
}

// newPlace returns an index that no endpoint of the engine has had.
func (e *Engine) newPlace() int {
	e.places++
	return e.places - 1
}

// loadTasks fills in the models, and the tasks that use them.
func (e *Engine) loadTasks(g, last *generation) (err error) {
	o := &e.options
	if o.Models != nil {
		known := new(gbdt.Set)
		if last != nil {
			known = last.models
		}
		if g.models, err = known.Reread(o.Models, o.ModelsName); err != nil {
			return err
		}
	}
	if last != nil && g.models == last.models {
		g.tasks = last.tasks
		return nil
	}
	g.tasks, err = task.Engine(taskrun.Key{}).NewTrustingCatalog(builtin.SpecsWith(g.models), o.Tasks...)
	return err
}

// readPlan returns the artifact of Options.PlanFile or PlanText.
func (e *Engine) readPlan(g, last *generation) ([]byte, error) {
	o := &e.options
	if o.PlanText != nil {
		return o.PlanText, nil
	}
	if last != nil {
		if file, err := os.Stat(o.PlanFile); err == nil && !file.Mode().IsRegular() {
			return last.planText, nil // A pipe can be read only once.
		}
	}
	return o.readPlanFile(g.tasks, g.registry)
}

// compile returns how plans of a folder are compiled, nil if there is no compiler. dir is the path of the folder, "" if it has none.
func (o *Options) compile(folder fs.FS, dir string, tasks *task.Catalog, reg *registry.Registry) plan.Compile {
	c := o.Compiler
	if c == nil {
		return nil
	}
	return func(file string) ([]byte, error) { return c.Compile(folder, dir, file, tasks, reg) }
}

// readPlanFile returns the artifact of PlanFile. It compiles a source.
func (o *Options) readPlanFile(tasks *task.Catalog, reg *registry.Registry) ([]byte, error) {
	path := o.PlanFile
	if !strings.HasSuffix(path, plan.SourceSuffix) {
		return plan.ReadFile(path)
	}
	dir, file := filepath.Dir(path), filepath.Base(path)
	compile := o.compile(os.DirFS(dir), dir, tasks, reg)
	if compile == nil {
		return nil, fmt.Errorf("%s: %w", errtext.Name(path), plan.ErrNoCompiler)
	}
	return compile(file)
}

// readTables reads the tables.
func (e *Engine) readTables() (*registry.Registry, error) {
	o := &e.options
	if o.Registry == nil {
		return registry.Default(o.Env)
	}
	reg, err := registry.Load(o.Registry, o.Env)
	if err != nil { // one problem a line, each with its file
		return nil, registry.InFolder(o.RegistryName, err)
	}
	return reg.Named(o.RegistryName), nil
}

// moveEndpoints moves endpoints to the servers that the options give.
func (e *Engine) moveEndpoints(reg *registry.Registry) (*registry.Registry, error) {
	o := &e.options
	switch {
	case o.Redis != "" || e.server != nil:
		if e.server == nil {
			server, err := registry.ParseServer(o.Redis)
			if err != nil {
				return nil, err
			}
			e.server, o.Redis = &server, "" // The engine keeps no second copy of the password.
		}
		reg = reg.WithRedis(*e.server)
	case o.EmbeddedRedis != nil && reg.HasEmbedded():
		if e.embedded == nil {
			addr, stop, err := o.EmbeddedRedis()
			if err != nil {
				return nil, fmt.Errorf("embedded redis: %w", err)
			}
			e.stopEmbedded = stop
			server, err := registry.ParseServer(addr)
			if err != nil {
				return nil, fmt.Errorf("embedded redis: %w", err)
			}
			e.embedded = &server
		}
		reg = reg.WithEmbedded(*e.embedded)
	}
	if o.Cache != registry.CacheOff {
		reg = reg.WithCache(o.Cache)
	}
	return reg, nil
}

// list loads all plans of the folder, the chosen one among them, and notes the digest. last is as for load.
func (g *generation) list(last *generation) (listing []plan.Listing, err error) {
	if g.works(last) {
		listing, err = g.library.ListAfter(last.library)
	} else {
		listing, err = g.library.List()
	}
	if err == nil && g.planName != "" && g.plan == nil && g.aliases[g.planName] == nil {
		g.plan, err = g.library.Get(g.planName)
	}
	if err == nil && g.digest.Load() == nil {
		digest := g.digestWith(listing)
		g.digest.Store(&digest)
	}
	return listing, err
}

// digestWith returns the digest of a generation that has these plans.
func (g *generation) digestWith(listing []plan.Listing) string {
	hash := sha256.New()
	fmt.Fprintln(hash, "registry", g.tables.Digest())
	models := g.models.Digests()
	for _, name := range slices.Sorted(maps.Keys(models)) {
		fmt.Fprintf(hash, "model %q %s\n", name, models[name])
	}
	for _, name := range slices.Sorted(maps.Keys(g.aliases)) {
		a := g.aliases[name]
		fmt.Fprintf(hash, "alias %q %q %q %v %q\n", name, a.A, a.B, a.BShare, a.Salt)
	}
	if g.plan != nil {
		fmt.Fprintf(hash, "own plan %q %s\n", g.plan.Name, g.plan.Digest)
	}
	for _, l := range listing {
		if l.Err == nil {
			fmt.Fprintf(hash, "plan %q %s\n", l.Name, l.Graph.Digest)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// alias returns the alias of a name, or of the plan for requests that name none; nil: the name is not an alias.
func (g *generation) alias(name string) *plan.Alias {
	if name == "" {
		name = g.planName
	}
	return g.aliases[name]
}

// choose returns the plan for a request that asks for name, "" if it asks for none, and side a of an alias. A nil plan
// without error means the synthetic answer.
func (g *generation) choose(name string) (*plan.Graph, error) {
	if a := g.alias(name); a != nil {
		name = a.A
	}
	if graph, err, ok := g.lookUp(name); ok {
		return graph, err
	}
	return g.library.Get(name)
}

// lookUp is choose without a wait. It reports false if the library has not loaded the plan yet.
func (g *generation) lookUp(name string) (graph *plan.Graph, err error, ok bool) {
	switch {
	case name == "" && g.plan == nil && !g.synthetic:
		return nil, errNoPlan, true
	case name == "" || g.plan != nil && name == g.plan.Name:
		return g.plan, nil, true
	}
	return g.library.Loaded(name)
}

// plans returns the plans that are loaded, each once, by name.
func (g *generation) plans() []*plan.Graph {
	graphs := g.library.Graphs()
	if g.plan != nil {
		graphs = append(graphs, g.plan)
	}
	slices.SortFunc(graphs, func(a, b *plan.Graph) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(graphs)
}
