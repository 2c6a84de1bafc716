package scheduler

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	runMutations   = flag.Bool("mutations", false, "build the engine with each deliberate bug and let the simulation find it")
	mutationsSince = flag.String("mutations_since", "", "with -mutations: only those whose package, or that of their tests, differs from this `commit`")
)

// mutationSeeds is the number of seeds within which the simulation must find a bug.
const mutationSeeds = 20_000

const mutationDir = "testdata/mutations"

// A mutation is one deliberate bug. It breaks a promise of a function:
//
//	# What the bug does.
//	=== scheduler bounds.over
//	call deadline.Passed
//	>>>
//	false && $
//
// The simulation finds the bug, unless the place is followed by the package and the name of other tests that do:
//
//	=== resp conn.nextIsWanted resp TestClientStories
type mutation struct {
	name, doc string
	dir       string // of the package, from the root of the module
	promise   promise
	bug       string
	tests     [2]string // package and name of the tests that find it; empty: the simulation
}

func readMutations(t *testing.T) (list []mutation) {
	files, err := filepath.Glob(filepath.Join(mutationDir, "*.mutation"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		doc, rest, ok1 := strings.Cut(string(text), "\n=== ")
		where, rest, ok2 := strings.Cut(rest, "\n")
		words := strings.Fields(where)
		ok3 := len(words) == 2 || len(words) == 4
		require.True(t, ok1 && ok2 && ok3 && strings.HasPrefix(doc, "# "), file)
		line, bug, replaces := strings.Cut(strings.TrimSuffix(rest, "\n"), "\n>>>\n")
		p, ok := parsePromise(words[1], line)
		require.True(t, ok && replaces == (p.kind != "without"), file)
		m := mutation{name: strings.TrimSuffix(filepath.Base(file), ".mutation"), doc: doc[2:], dir: words[0], promise: p, bug: bug}
		copy(m.tests[:], words[2:])
		list = append(list, m)
	}
	return list
}

// place finds where the bug goes in the sources.
func (m *mutation) place(t *testing.T) *goPlace {
	dir, err := filepath.Abs(filepath.Join("..", m.dir))
	require.NoError(t, err)
	place, err := m.promise.find(dir)
	require.NoError(t, err, "%s: bring it up to date with %s", m.name, m.dir)
	return place
}

// TestMutationsApply finds the place of each bug, and its name in the README.
func TestMutationsApply(t *testing.T) {
	if !*runMutations {
		t.Skip("CI checks it: -mutations")
	}
	readme, err := os.ReadFile(filepath.Join(mutationDir, "README.md"))
	require.NoError(t, err)
	for _, m := range readMutations(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Log(m.place(t))
			assert.True(t, strings.Contains(string(readme), "`"+m.name+"`"), "README.md lacks it")
		})
	}
}

// knownSeeds returns the seed that found a bug, by the bug's name, as the README's table has it.
func knownSeeds(t *testing.T) map[string]string {
	known := map[string]string{}
	readme, err := os.ReadFile(filepath.Join(mutationDir, "README.md"))
	require.NoError(t, err)
	for _, row := range rowWithSeed.FindAllSubmatch(readme, -1) {
		known[string(row[1])] = string(row[2])
	}
	return known
}

var rowWithSeed = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|.*\\| (\\d+) \\| [^|]*\\|$")

// TestMutationsAreCaught builds the simulation with each bug and has it find the bug. With
// -update it writes the table of its findings into the README.
func TestMutationsAreCaught(t *testing.T) {
	if !*runMutations {
		t.Skip("takes minutes: -mutations")
	}
	list := slices.DeleteFunc(readMutations(t), unchanged(t, *mutationsSince))
	if len(list) == 0 {
		t.Logf("no package of a bug or of its tests differs from %s", *mutationsSince)
		return
	}
	mutants := buildMutants(t, list)
	known := knownSeeds(t)
	finds := make([]string, len(list))
	t.Run("bug", func(t *testing.T) {
		for i, m := range list {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				seed, violation := m.hunt(t, mutants, known[m.name])
				t.Logf("seed %s: %s", seed, violation)
				if len(violation) > 120 {
					violation = violation[:120] + "…"
				}
				finds[i] = fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.name, m.doc, seed, violation)
			})
		}
	})
	if *update && *mutationsSince == "" && !t.Failed() {
		path := filepath.Join(mutationDir, "README.md")
		readme, err := os.ReadFile(path)
		require.NoError(t, err)
		head, _, ok := bytes.Cut(readme, []byte("| ---"))
		require.True(t, ok)
		text := string(head) + "| --- | --- | --- | --- |\n" + strings.Join(finds, "")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// unchanged reports of a bug whether its package and that of its tests are as they were at a commit. An empty commit,
// and one that the repository lacks, stand for a time without either.
func unchanged(t *testing.T, commit string) func(m mutation) bool {
	if commit == "" || exec.Command("git", "cat-file", "-e", commit+"^{commit}").Run() != nil {
		return func(mutation) bool { return false }
	}
	out, err := exec.Command("git", "-C", "..", "diff", "--name-only", commit).Output()
	require.NoError(t, err)
	changed := map[string]bool{}
	for file := range strings.Lines(string(out)) {
		dir, _, _ := strings.Cut(filepath.ToSlash(filepath.Dir(strings.TrimSpace(file))), "/testdata")
		changed[dir] = true
	}
	return func(m mutation) bool { return !changed[m.dir] && !changed[cmp.Or(m.tests[0], "scheduler")] }
}

var foundViolation = regexp.MustCompile(`(?m)seed (\d+): (.*)$`)

// tested returns the folder of the package whose tests look for the bug.
func (m *mutation) tested(t *testing.T) string {
	folder, err := filepath.Abs(filepath.Join("..", cmp.Or(m.tests[0], "scheduler")))
	require.NoError(t, err)
	return folder
}

// hunt runs the tests that look for the bug until it is found. The simulation first plays the seed that the README
// names, if any: the engine may have changed since, and then the hunt begins at 0.
func (m *mutation) hunt(t *testing.T, mutants *mutants, known string) (seed, violation string) {
	// With one processor, the shards of the simulation look at the seeds in order, and the
	// first bad seed is found.
	args := []string{"-test.run=^TestSimulation$", "-test.cpu=1", fmt.Sprintf("-seeds=%d", mutationSeeds)}
	switch {
	case m.tests[0] != "":
		args = []string{"-test.run=^" + m.tests[1] + "$"}
	case known != "":
		out, err := m.play(t, mutants, []string{"-test.run=^TestSimulation$/^seeds$/^shard", "-test.cpu=1", "-seeds=1", "-first_seed=" + known})
		if found := foundViolation.FindSubmatch(out); err != nil && found != nil {
			return string(found[1]), string(found[2])
		}
		t.Logf("seed %s no longer finds it; -update writes the one that does", known)
	}
	out, err := m.play(t, mutants, args)
	require.Error(t, err, "not caught")
	if m.tests[0] != "" {
		failed := failedTest.FindAllSubmatch(out, -1)
		require.NotEmpty(t, failed, "the mutant fails, but no test does:\n%s", out)
		return "–", string(failed[len(failed)-1][1])
	}
	found := foundViolation.FindSubmatch(out)
	require.NotNil(t, found, "the mutant fails, but not by a violation:\n%s", out)
	return string(found[1]), string(found[2])
}

// play runs tests with the bug, and returns what they print.
func (m *mutation) play(t *testing.T, mutants *mutants, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	folder := m.tested(t)
	run := exec.CommandContext(ctx, mutants.binaries[folder], args...)
	run.Dir = folder
	run.Env = append(os.Environ(), bugVariable+"="+m.name)
	out, err := run.CombinedOutput()
	require.NoError(t, ctx.Err(), "the mutant hangs:\n%s", out)
	return out, err
}

var failedTest = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
