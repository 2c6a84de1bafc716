package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// app is the program put together. Any goroutine, except open and close.
type app struct {
	opts    *options
	tasks   *task.Catalog
	reg     *registry.Registry
	library *plan.Library
	plan    *plan.Graph // chosen by the flags; nil if they choose none

	artifact []byte // of --plan, once read

	clock    clock.Clock
	engine   scheduler.Engine
	embedded *devredis.Server // nil if none was started
}

// newApp reads registry and plans, without starting anything.
func newApp(o *options) (*app, error) {
	a := &app{opts: o, tasks: builtin.Catalog(), clock: clock.NewReal()}
	var err error
	if a.reg, err = openRegistry(o); err != nil {
		return nil, err
	}
	if o.redis != "" {
		a.reg = a.reg.WithRedis(o.redisHost, o.redisPort)
	}
	return a, a.loadPlans()
}

// openRegistry reads the tables that the flags choose.
func openRegistry(o *options) (*registry.Registry, error) {
	if o.registryDir == "" {
		return registry.Default(o.env)
	}
	tables, err := openFolder("--registry_dir", o.registryDir)
	if err != nil {
		return nil, err
	}
	reg, err := registry.Load(tables, o.env)
	if err != nil { // of one problem a line, each of which names its file
		return nil, fmt.Errorf("--registry_dir %s:\n%w", o.registryDir, err)
	}
	return reg, nil
}

// planFolder returns where plans are looked for by name, and what errors call it.
func planFolder(o *options) (folder fs.FS, place string, err error) {
	if o.planDir == "" {
		return artifacts.Plans(), "the built-in examples", nil
	}
	if folder, err = openFolder("--plan_dir", o.planDir); err != nil {
		return nil, "", err
	}
	files, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, "", fmt.Errorf("--plan_dir: %w", err)
	}
	isPlan := func(f fs.DirEntry) bool { return !f.IsDir() && strings.HasSuffix(f.Name(), ".plan.json") }
	if !slices.ContainsFunc(files, isPlan) {
		return nil, "", fmt.Errorf("--plan_dir: %s holds no plan, which is a file <name>.plan.json", excerpt.Name(o.planDir))
	}
	return folder, "folder " + excerpt.Name(o.planDir), nil
}

// openFolder returns the folder that a flag names. The error names both.
func openFolder(flag, path string) (fs.FS, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s: %s is not a folder", flag, path)
	}
	return os.DirFS(path), nil
}

// loadPlans loads what the flags choose. A plan knows its endpoints, so this is done
// again when an endpoint moves.
func (a *app) loadPlans() error {
	o := a.opts
	folder, place, err := planFolder(o)
	if err != nil {
		return err
	}
	a.library = plan.NewLibrary(folder, place, a.tasks, a.reg)
	switch {
	case o.plan != "":
		if a.artifact == nil { // only once: it may be a pipe
			if a.artifact, err = plan.ReadFile(o.plan); err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					err = fmt.Errorf("--plan: %w%s", err, a.nameHint(o.plan))
				}
				return err
			}
		}
		a.plan, err = plan.Load(o.plan, a.artifact, a.tasks, a.reg)
	case o.planName != "":
		a.plan, err = a.library.Get(o.planName)
	case o.planDir != "" && !o.listPlans:
		// All of them are on offer, so all of them have to be sound.
		var all []plan.Listing
		all, err = a.library.List()
		for _, p := range all {
			if err == nil {
				err = p.Err
			}
		}
	}
	return err
}

// nameHint says so if what was given for a file names a plan.
func (a *app) nameHint(file string) string {
	if _, err := a.library.Get(file); err != nil {
		return ""
	}
	return "; --plan_name " + file + " names a plan"
}

// open starts what running plans takes: the embedded Redis if it is wanted, and
// the engine. What it did that one might wonder about it says on stderr.
func (a *app) open(stderr io.Writer) error {
	o := a.opts
	if o.env == "dev" && a.reg.HasEmbedded() {
		redis, err := devredis.Start()
		if err != nil {
			return err
		}
		a.embedded = redis
		fmt.Fprintf(stderr, "rankd: using an embedded Redis with demo data of %d users on %s (--redis host:port for your own)\n",
			devredis.Users, redis.Addr())
		a.reg = a.reg.WithEmbedded("127.0.0.1", redis.Port())
		if err := a.loadPlans(); err != nil {
			a.close()
			return err
		}
	}
	engine, err := engines.Open(engines.Spec{Kind: engines.Kind(o.engine)}, scheduler.Config{
		Registry: a.reg, CPUThreads: o.cpuThreads, IOThreads: o.ioThreads, RedisConnections: o.redisPool, Clock: a.clock,
		MaxRows: o.maxRows, NodeTimeout: o.nodeTimeout, OnPanic: reportPanic(stderr),
	})
	if err != nil {
		a.close()
		return err
	}
	a.engine = engine
	return nil
}

// reportPanic returns what an engine calls when a callback on its loop panicked.
func reportPanic(stderr io.Writer) func(recovered any, stack []byte) {
	return func(recovered any, stack []byte) {
		fmt.Fprintf(stderr, "rankd: panic on the loop: %v\n%s", recovered, stack)
	}
}

// closeAfter has the engine refuse new requests as soon as ctx ends, and fail what is in
// flight when the grace is over. To be called off before close.
func (a *app) closeAfter(ctx context.Context) (callOff func()) {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		a.engine.Close(a.opts.shutdownGrace)
		close(closed)
	})
	return func() {
		if !stop() {
			<-closed
		}
	}
}

// close stops what open started.
func (a *app) close() {
	if a.engine != nil {
		a.engine.Close(scheduler.Forever)
	}
	if a.embedded != nil {
		a.embedded.Close()
	}
}
