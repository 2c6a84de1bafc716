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
