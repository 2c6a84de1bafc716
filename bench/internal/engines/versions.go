package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"testing/fstest"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// versions is the plan that reads the version of a user: see load.Versioned.
const versions = "bench_versions"

// versionPrefix is what the keys of versions begin with.
const versionPrefix = versions + ":"

// WithVersions returns options of an engine that reads versions besides its own plan, which PlanText has, and the artifacts of Plans. It asks the first endpoint that has a
// cache, or else the first of Redis. Without any, or with tables that are broken, the options stay as they are.
func WithVersions(o rankd.Options) rankd.Options {
	tables := o.Registry
	if tables == nil {
		tables = registry.DefaultTables()
	}
	reg, err := registry.Load(tables, cmp.Or(o.Env, "dev"))
	if err != nil {
		return o // Opening the engine says why.
	}
	isRedis := func(e *registry.Endpoint) bool { return e.Kind == registry.Redis }
	isKept := func(e *registry.Endpoint) bool { return isRedis(e) && e.Policy.Cache.Mode != registry.CacheOff }
	all := reg.Endpoints()
	at := slices.IndexFunc(all, isKept)
	if at < 0 {
		at = slices.IndexFunc(all, isRedis)
	}
	if at < 0 {
		return o
	}
	plans := fstest.MapFS{}
	if o.Plans != nil {
		files, _ := fs.Glob(o.Plans, "*"+plan.ArtifactSuffix) // The pattern is sound.
		for _, name := range files {
			text, err := fs.ReadFile(o.Plans, name)
			if err != nil {
				return o
			}
			plans[name] = &fstest.MapFile{Data: text}
		}
	}
	plans[versions+plan.ArtifactSuffix] = &fstest.MapFile{Data: fmt.Appendf(nil, `{"schema_version": 1, "plan_name": %q, "outputs": ["n"], "nodes": [
		{"node_id": "n", "op": "core::candidates", "inputs": [], "params": {"endpoint": %q, "key": %q, "limit": 1}}]}`, versions, all[at].ID, versionPrefix+"{user}")}
	o.Plans = plans
	return o
}

// VersionKey implements load.Versioned.
func (t *Target) VersionKey(user int64) string {
	var r rankd.Request
	t.setUser(&r, user)
	return versionPrefix + cmp.Or(r.UserIDText, strconv.FormatInt(r.UserID, 10))
}

// ReadVersion implements load.Versioned. It fails if the engine was opened without WithVersions.
func (t *Target) ReadVersion(user int64, done func(version int64, err error)) {
	r := rankd.Request{Plan: versions}
	t.setUser(&r, user)
	t.engine.Submit(context.Background(), r, func(a *rankd.Answer, err error) {
		if err != nil {
			done(0, err)
			return
		}
		for candidate := range a.Candidates() {
			done(candidate.ID(), nil)
			return
		}
		done(0, errNoVersion)
	})
}

var errNoVersion = errors.New("a version has no value")

var _ load.Versioned = (*Target)(nil)
