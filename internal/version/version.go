// Package version says which build of rankd runs. It trusts what the build has recorded
// and nothing else: a checkout around the program may have moved on since.
package version

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Module is the path of rankd's module.
const Module = "github.com/rankd/rankd"

// Build is what a program says of its own build. Immutable once built; any goroutine.
type Build struct {
	// Module is the version of the main module: a tag, a pseudo-version, or "(devel)" for a
	// build in a checkout without tags.
	Module string
	// Commit is the commit, followed by " (modified)" if the checkout held changes. Where
	// the build did not record it, the text is "unknown" and why in parentheses.
	Commit string
	// Go is the toolchain, as in "go1.26.8 linux/amd64".
	Go string
}

// String returns the build in one line.
func (b Build) String() string {
	return fmt.Sprintf("%s, commit %s, %s", b.Module, b.Commit, b.Go)
}

// Read returns the build of the running program.
func Read() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return read(info)
}

// pseudoVersion matches the version of a module that was fetched by commit, such as
// v0.0.0-20261121150000-b93644e0c0de.
var pseudoVersion = regexp.MustCompile(`[.-]\d{14}-([0-9a-f]{12})(\+dirty)?$`)

func read(info *debug.BuildInfo) Build {
	b := Build{Module: info.Main.Version, Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	if b.Module == "" {
		b.Module = "(devel)"
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	modified := ""
	if settings["vcs.modified"] == "true" {
		modified = " (modified)"
	}
	pseudo := pseudoVersion.FindStringSubmatch(b.Module)
	switch {
	case settings["vcs.revision"] != "":
		b.Commit = settings["vcs.revision"] + modified
	case pseudo != nil:
		b.Commit = pseudo[1]
	case b.Module != "(devel)":
		b.Commit = "unknown (built from release " + b.Module + ")"
	default:
		b.Commit = "unknown (not recorded by the build: go run, -buildvcs=false or a git worktree)"
	}
	return b
}

// Published returns the version of rankd that runs, as a go.mod may require it. The error says why there is none that
// others can have.
func Published() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return published(info)
}

func published(info *debug.BuildInfo) (string, error) {
	rankd := &info.Main // a program with tasks of its own has rankd among what it requires
	for _, dep := range info.Deps {
		if dep.Path == Module {
			rankd = dep
		}
	}
	inClone := false
	for _, s := range info.Settings {
		inClone = inClone || s.Key == "vcs.revision" && rankd == &info.Main
	}
	switch {
	case rankd.Path != Module || rankd.Version == "" || rankd.Version == "(devel)":
		return "", errors.New("this build has no version that a module can require")
	case rankd.Replace != nil:
		return "", fmt.Errorf("this build has rankd from %s, which is no version that a module can require", cmp.Or(rankd.Replace.Path, "elsewhere"))
	case inClone && pseudoVersion.MatchString(rankd.Version) || strings.HasSuffix(rankd.Version, "+dirty"):
		return "", fmt.Errorf("this build is of a clone, %s, which nobody may have published", rankd.Version)
	}
	return rankd.Version, nil
}
