package version

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRead(t *testing.T) {
	const revision = "b93644e75ac4138feccf3556865fb0a009597909"
	for name, c := range map[string]struct {
		module          string
		settings        []debug.BuildSetting
		version, commit string
	}{
		"a build in a clone": {"v0.0.0-20261121103105-b93644e75ac4",
			[]debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "false"}},
			"v0.0.0-20261121103105-b93644e75ac4", revision},
		"with changes": {"v0.0.0-20261121103105-b93644e75ac4+dirty",
			[]debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "true"}},
			"v0.0.0-20261121103105-b93644e75ac4+dirty", revision + " (modified)"},
		"installed by commit":      {"v0.0.0-20261121103105-b93644e75ac4", nil, "v0.0.0-20261121103105-b93644e75ac4", "b93644e75ac4"},
		"installed after a tag":    {"v1.2.4-0.20261121103105-b93644e75ac4", nil, "v1.2.4-0.20261121103105-b93644e75ac4", "b93644e75ac4"},
		"installed by tag":         {"v1.2.3", nil, "v1.2.3", "unknown (built from release v1.2.3)"},
		"go run, or -buildvcs=off": {"(devel)", nil, "(devel)", "unknown (not recorded by the build: go run, -buildvcs=false or a git worktree)"},
		"no build information":     {"", nil, "(devel)", "unknown (not recorded by the build: go run, -buildvcs=false or a git worktree)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := read(&debug.BuildInfo{Main: debug.Module{Version: c.module}, Settings: c.settings})
			assert.Equal(t, c.version, b.Module)
			assert.Equal(t, c.commit, b.Commit)
			assert.Equal(t, c.version+", commit "+c.commit+", "+b.Go, b.String())
		})
	}
	assert.NotEmpty(t, Read().Module)
	assert.Contains(t, Read().Go, "go1.")
}

// A module can require a version that others can have.
func TestPublished(t *testing.T) {
	inClone := []debug.BuildSetting{{Key: "vcs.revision", Value: "b93644e75ac4138feccf3556865fb0a009597909"}}
	rankd := func(version string) debug.Module { return debug.Module{Path: Module, Version: version} }
	own := debug.Module{Path: "example.com/own", Version: "v7.0.0"}
	required, replaced := rankd("v0.2.0"), rankd("v0.0.0")
	replaced.Replace = &debug.Module{Path: "../rankd"}
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string // a version, or a part of the error
	}{
		"installed by tag":                  {debug.BuildInfo{Main: rankd("v0.2.0")}, "v0.2.0"},
		"installed by commit":               {debug.BuildInfo{Main: rankd("v0.0.0-20261121103105-b93644e75ac4")}, "v0.0.0-20261121103105-b93644e75ac4"},
		"a clone at a tag":                  {debug.BuildInfo{Main: rankd("v0.2.0"), Settings: inClone}, "v0.2.0"},
		"a clone at a commit":               {debug.BuildInfo{Main: rankd("v0.0.0-20261121103105-b93644e75ac4"), Settings: inClone}, "this build is of a clone, v0.0.0-20261121103105-b93644e75ac4, which"},
		"a clone with changes":              {debug.BuildInfo{Main: rankd("v0.2.0+dirty"), Settings: inClone}, "this build is of a clone, v0.2.0+dirty, which"},
		"go run":                            {debug.BuildInfo{Main: rankd("(devel)")}, "this build has no version"},
		"no build information":              {debug.BuildInfo{}, "this build has no version"},
		"a program that requires a version": {debug.BuildInfo{Main: own, Deps: []*debug.Module{&required}, Settings: inClone}, "v0.2.0"},
		"a program with a checkout":         {debug.BuildInfo{Main: own, Deps: []*debug.Module{&replaced}}, "this build has rankd from ../rankd, which"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := published(&c.info)
			if err != nil {
				got = err.Error()
			}
			assert.Equal(t, c.want[0] == 'v', err == nil)
			assert.Contains(t, got, c.want)
		})
	}
}
