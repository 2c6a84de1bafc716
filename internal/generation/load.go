package generation

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// Source says from what generations are loaded: options of an engine, with the same names and meanings. Immutable.
type Source struct {
	Redis         string
	RedisAgrees   string
	NoSecrets     bool
	EmbeddedRedis func() (addr string, stop func(), err error)
	Env           string
	Registry      fs.FS
	RegistryName  string
	Cache         registry.CacheMode

	Models     fs.FS
	ModelsName string

	Plans     fs.FS
	PlansName string
	PlansDir  string
	Plan      string
	PlanFile  string
	PlanText  []byte
	Synthetic bool
	Tasks     []task.Spec
	Compile   func(folder fs.FS, dir, file string, tasks *task.Catalog, reg *registry.Registry) ([]byte, error) // nil: artifacts only
}

// Loader loads generations, one after the other. One goroutine at a time.
type Loader struct {
	from             Source
	server, embedded *registry.Server // that the source gives; nil: none, or not yet
	stopEmbedded     func()           // nil if no server was started
	places           int              // of endpoints, so far: the next one's Index
	piped            []byte           // the plan, if it came through a pipe, which can be read only once
}

// readTries bounds how often a generation is read anew because files have changed meanwhile.
const readTries = 5

// errUnsteady: files kept changing.
var errUnsteady = errors.New("the files of plans, tables or models have changed while they were read, again and again: reload once they stay as they are")

// steady calls read until files have stayed the same meanwhile, so that what it reads is of one time. A link that is
// replaced changes them, too. The error is that of read, or errUnsteady.
func (l *Loader) steady(read func() error) error {
	before := l.stamp()
	for range readTries {
		err := read()
		after := l.stamp()
		if after == before {
			return err
		}
		before = after
	}
	return errUnsteady
}

// stamp returns a text that changes when a file changes that a generation may be read from.
func (l *Loader) stamp() string {
	o := &l.from
	var folders []fs.FS
	for _, folder := range []fs.FS{o.Registry, o.Models, o.Plans} {
		if folder != nil {
			folders = append(folders, folder)
		}
	}
	if strings.HasSuffix(o.PlanFile, plan.SourceSuffix) {
		folders = append(folders, os.DirFS(filepath.Dir(o.PlanFile)))
	}
	return fileio.Stamp(func(name string) bool {
		return filepath.Ext(name) == "" || slices.Contains([]string{".toml", ".lock", ".json", ".lightgbm", ".ts"}, filepath.Ext(name))
	}, folders...)
}

// load reads the tables, the models and the plans. last is the previous generation; nil: there is none.
func (l *Loader) load(last *Generation) (*Generation, error) {
	o := &l.from
	g := &Generation{Loaded: time.Now(), synthetic: o.Synthetic, planName: o.Plan}
	err := l.loadTables(g, last)
	if err == nil {
		err = l.loadTasks(g, last)
	}
	if err != nil {
		return nil, err
	}
	if last != nil && g.Registry == last.Registry {
		g.Requests, g.Encoders = last.Requests, last.Encoders
	} else {
		g.Requests = request.NewParser(g.Registry)
		for _, f := range [...]request.Format{request.Flat, request.Fields} {
			g.Encoders[f] = request.NewEncoder(g.Registry, f)
		}
	}
	folder := o.Plans
	if folder == nil {
		folder = demo.Plans()
	}
	g.Library = plan.NewLibrary(folder, o.PlansName, g.tasks, g.Registry, o.compileIn(folder, o.PlansDir, g.tasks, g.Registry))
	if g.Aliases, err = plan.ReadAliases(folder); err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(o.PlansName, "the folder of plans"), err)
	}
	switch {
	case g.Aliases[o.Plan] != nil: // Each request has its own side.
	case o.PlanFile != "":
		if g.planText, err = l.readPlan(g); err != nil {
			break
		}
		if g.works(last) && last.plan.Digest == plan.Digest(g.planText) {
			g.plan = last.plan
		} else {
			g.plan, err = plan.Load(o.PlanFile, g.planText, g.tasks, g.Registry)
		}
	case o.Plan != "" && last == nil: // Otherwise list does so.
		g.plan, err = g.Library.Get(o.Plan)
	}
	if err == nil && last == nil {
		err = plan.Aliased(g.Aliases, g.has)
	}
	if err == nil && last == nil && g.plan != nil {
		_, err = g.Choose("")
	}
	return g, err
}

// loadTables fills in the tables. A later generation shares unchanged endpoints and their connections.
func (l *Loader) loadTables(g, last *Generation) (err error) {
	if g.tables, err = l.readTables(); err != nil {
		return err
	}
	if last != nil && g.tables.Equal(last.tables) {
		g.tables, g.Registry = last.tables, last.Registry
		return nil
	}
	moved, err := l.moveEndpoints(g.tables)
	switch {
	case err != nil:
	case last == nil && l.from.NoSecrets:
		g.Registry = moved
	case last == nil:
		g.Registry, err = moved.ReadSecrets()
	default:
		stays := func(id string) bool { return g.tables.Succeeds(last.tables, id) }
		g.Registry, err = moved.Adopt(last.Registry, stays, l.newPlace, !l.from.NoSecrets)
	}
	if err == nil && last == nil {
		l.places = len(g.Registry.Endpoints())
	}
	return err
}

// newPlace returns an index that no endpoint of the engine has had.
func (l *Loader) newPlace() int {
	l.places++
	return l.places - 1
}

// loadTasks fills in the models, and the tasks that use them.
func (l *Loader) loadTasks(g, last *Generation) (err error) {
	o := &l.from
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
func (l *Loader) readPlan(g *Generation) ([]byte, error) {
	o := &l.from
	if o.PlanText != nil {
		return o.PlanText, nil
	}
	if l.piped != nil {
		return l.piped, nil
	}
	text, err := o.readPlanFile(g.tasks, g.Registry)
	if file, statErr := os.Stat(o.PlanFile); statErr == nil && !file.Mode().IsRegular() {
		l.piped = text
	}
	return text, err
}

// compileIn returns how plans of a folder are compiled, nil if there is no compiler. dir is the path of the folder, "" if it has none.
func (o *Source) compileIn(folder fs.FS, dir string, tasks *task.Catalog, reg *registry.Registry) plan.Compile {
	if o.Compile == nil {
		return nil
	}
	return func(file string) ([]byte, error) { return o.Compile(folder, dir, file, tasks, reg) }
}

// readPlanFile returns the artifact of PlanFile. It compiles a source.
func (o *Source) readPlanFile(tasks *task.Catalog, reg *registry.Registry) ([]byte, error) {
	path := o.PlanFile
	if !strings.HasSuffix(path, plan.SourceSuffix) {
		return plan.ReadFile(path)
	}
	dir, file := filepath.Dir(path), filepath.Base(path)
	compile := o.compileIn(os.DirFS(dir), dir, tasks, reg)
	if compile == nil {
		return nil, fmt.Errorf("%s: %w", errtext.Name(path), plan.ErrNoCompiler)
	}
	return compile(file)
}

// readTables reads the tables.
func (l *Loader) readTables() (*registry.Registry, error) {
	o := &l.from
	if o.Registry == nil {
		return registry.Default(o.Env)
	}
	reg, err := registry.Load(o.Registry, o.Env)
	if err != nil { // one problem a line, each with its file
		return nil, registry.InFolder(o.RegistryName, err)
	}
	return reg.Named(o.RegistryName), nil
}

// moveEndpoints moves endpoints to the servers named in the options.
func (l *Loader) moveEndpoints(reg *registry.Registry) (*registry.Registry, error) {
	o := &l.from
	switch {
	case o.Redis != "" || l.server != nil:
		if l.server == nil {
			server, err := registry.ParseServer(o.Redis)
			if err != nil {
				return nil, err
			}
			l.server, o.Redis = &server, "" // The engine keeps no second copy of the password.
		}
		if err := reg.RedisElsewhere(*l.server); err != nil && o.RedisAgrees != "" {
			return nil, fmt.Errorf("%s: redis: %w", o.RedisAgrees, err)
		}
		if err := reg.RedisProblem(*l.server); err != nil && !o.NoSecrets {
			return nil, err
		}
		reg = reg.WithRedis(*l.server)
	case o.EmbeddedRedis != nil && reg.HasEmbedded():
		if l.embedded == nil {
			addr, stop, err := o.EmbeddedRedis()
			if err != nil {
				return nil, fmt.Errorf("embedded redis: %w", err)
			}
			l.stopEmbedded = stop
			server, err := registry.ParseServer(addr)
			if err != nil {
				return nil, fmt.Errorf("embedded redis: %w", err)
			}
			l.embedded = &server
		}
		reg = reg.WithEmbedded(*l.embedded)
	}
	if o.Cache != registry.CacheOff {
		reg = reg.WithCache(o.Cache)
	}
	return reg, nil
}
