package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var runMutations = flag.Bool("mutations", false, "build the engine with each deliberate bug and let the simulation find it")

// mutationSeeds is the number of seeds within which the simulation has to find a bug.
const mutationSeeds = 20_000

const mutationDir = "testdata/mutations"

// A mutation is one deliberate bug: a piece of a package and its replacement. The anchor finds the piece,
// and the replacement takes the names that the anchor finds there.
//
//	# What the bug does.
//	=== scheduler State.Next
//	<<<
//	if s.err != nil {
//	>>>
//	if false {
//
// The simulation finds the bug, unless the place is followed by the package and the name of other tests that do:
//
//	=== resp conn.nextIsWanted resp TestClientStories
type mutation struct {
	name, doc string
	dir       string // of the package, from the root of the module
	anchor    anchor
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
		where, rest, ok2 := strings.Cut(rest, "\n<<<\n")
		words := strings.Fields(where)
		ok3 := len(words) == 2 || len(words) == 4
		piece, bug, ok4 := strings.Cut(rest, "\n>>>\n")
		require.True(t, ok1 && ok2 && ok3 && ok4 && strings.HasPrefix(doc, "# "), file)
		m := mutation{
			name: strings.TrimSuffix(filepath.Base(file), ".mutation"), doc: doc[2:], dir: words[0],
			anchor: anchor{words[1], piece}, bug: strings.TrimSuffix(bug, "\n"),
		}
		copy(m.tests[:], words[2:])
		list = append(list, m)
	}
	return list
}

// place finds the mutation's piece in the sources.
func (m *mutation) place(t *testing.T) *goPlace {
	dir, err := filepath.Abs(filepath.Join("..", m.dir))
	require.NoError(t, err)
	place, err := m.anchor.find(dir)
	require.NoError(t, err, "%s: bring it up to date with %s", m.name, m.dir)
	return place
}

// TestMutationsApply finds the place of each bug, and its name in the README. With -update it writes today's names
// into the mutations, so that renames do not add up.
func TestMutationsApply(t *testing.T) {
	if !*runMutations {
		t.Skip("CI checks it: -mutations")
	}
	readme, err := os.ReadFile(filepath.Join(mutationDir, "README.md"))
	require.NoError(t, err)
	for _, m := range readMutations(t) {
		t.Run(m.name, func(t *testing.T) {
			place := m.place(t)
			t.Log(place)
			if *update {
				where := strings.TrimSpace(strings.Join([]string{m.dir, place.function, m.tests[0], m.tests[1]}, " "))
				text := fmt.Sprintf("# %s\n=== %s\n<<<\n%s\n>>>\n%s\n", m.doc, where,
					place.translate(m.anchor.piece), place.translate(m.bug))
				require.NoError(t, os.WriteFile(filepath.Join(mutationDir, m.name+".mutation"), []byte(text), 0o644))
			}
			assert.Contains(t, string(readme), "`"+m.name+"`")
		})
	}
}

// TestMutationsAreCaught builds the simulation with each bug and lets it find the bug. With
// -update it writes the table of what was found into the README.
func TestMutationsAreCaught(t *testing.T) {
	if !*runMutations {
		t.Skip("takes minutes: -mutations")
	}
	var table strings.Builder
	for _, m := range readMutations(t) {
		t.Run(m.name, func(t *testing.T) {
			seed, violation := m.hunt(t)
			t.Logf("seed %s: %s", seed, violation)
			if len(violation) > 120 {
				violation = violation[:120] + "…"
			}
			fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m.name, m.doc, seed, violation)
		})
	}
	if *update && !t.Failed() {
		path := filepath.Join(mutationDir, "README.md")
		readme, err := os.ReadFile(path)
		require.NoError(t, err)
		head, _, ok := bytes.Cut(readme, []byte("| ---"))
		require.True(t, ok)
		text := string(head) + "| --- | --- | --- | --- |\n" + table.String()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

var foundViolation = regexp.MustCompile(`(?m)seed (\d+): (.*)$`)

// hunt runs the simulation with the bug until it is found.
func (m *mutation) hunt(t *testing.T) (seed, violation string) {
	dir := t.TempDir()
	place := m.place(t)
	mutated := filepath.Join(dir, "mutated.go")
	require.NoError(t, os.WriteFile(mutated, place.replace(m.bug), 0o644))
	spec, err := json.Marshal(map[string]map[string]string{"Replace": {place.file: mutated}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), spec, 0o644))

	binary := filepath.Join(dir, "mutant.test")
	tested, err := filepath.Abs(".")
	require.NoError(t, err)
	if m.tests[0] != "" {
		tested = filepath.Join(filepath.Dir(tested), m.tests[0])
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".")
	build.Dir = tested
	out, err := build.CombinedOutput()
	require.NoError(t, err, "the mutant does not build:\n%s", out)

	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if m.tests[0] != "" {
		return m.huntByTests(t, ctx, binary, tested)
	}
	// One processor: the shards then look at the seeds in order, and the first is found.
	run := exec.CommandContext(ctx, binary, "-test.run=^TestSimulation$", "-test.cpu=1", fmt.Sprintf("-seeds=%d", mutationSeeds))
	out, err = run.CombinedOutput()
	require.NoError(t, ctx.Err(), "the mutant hangs:\n%s", out)
	require.Error(t, err, "not caught within %d seeds", mutationSeeds)
	found := foundViolation.FindSubmatch(out)
	require.NotNil(t, found, "the mutant fails, but not by a violation:\n%s", out)
	return string(found[1]), string(found[2])
}

var failedTest = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

// huntByTests runs tests of another package with the bug until one fails.
func (m *mutation) huntByTests(t *testing.T, ctx context.Context, binary, dir string) (seed, violation string) {
	run := exec.CommandContext(ctx, binary, "-test.run=^"+m.tests[1]+"$")
	run.Dir = dir
	out, err := run.CombinedOutput()
	require.NoError(t, ctx.Err(), "the mutant hangs:\n%s", out)
	require.Error(t, err, "not caught by %s", m.tests[1])
	failed := failedTest.FindAllSubmatch(out, -1)
	require.NotEmpty(t, failed, "the mutant fails, but no test does:\n%s", out)
	return "–", string(failed[len(failed)-1][1])
}
