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

// mutationSeeds is within how many seeds the simulation has to find a bug.
const mutationSeeds = 20_000

const mutationDir = "testdata/mutations"

// mutation is one deliberate bug: some text of the sources replaced by another.
//
//	# What the bug is.
//	=== scheduler/state.go
//	<<<
//	text that stands once in the file
//	>>>
//	text in its place
type mutation struct {
	name, doc string
	edits     []mutationEdit
}

type mutationEdit struct{ file, from, to string }

func readMutations(t *testing.T) (list []mutation) {
	files, err := filepath.Glob(filepath.Join(mutationDir, "*.mutation"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		doc, edits, ok := strings.Cut(string(text), "\n=== ")
		require.True(t, ok && strings.HasPrefix(doc, "# "), file)
		m := mutation{name: strings.TrimSuffix(filepath.Base(file), ".mutation"), doc: doc[2:]}
		for _, edit := range strings.Split(edits, "\n=== ") {
			path, body, ok1 := strings.Cut(edit, "\n<<<\n")
			from, to, ok2 := strings.Cut(body, "\n>>>\n")
			require.True(t, ok1 && ok2, file)
			m.edits = append(m.edits, mutationEdit{path, from, strings.TrimSuffix(to, "\n")})
		}
		list = append(list, m)
	}
	return list
}

// apply returns the mutated files by their absolute path.
func (m *mutation) apply(t *testing.T) map[string][]byte {
	mutated := map[string][]byte{}
	for _, edit := range m.edits {
		path, err := filepath.Abs(filepath.Join("..", edit.file))
		require.NoError(t, err)
		source := mutated[path]
		if source == nil {
			source, err = os.ReadFile(path)
			require.NoError(t, err)
		}
		require.Equal(t, 1, bytes.Count(source, []byte(edit.from)),
			"%s: its text has to stand in %s once; bring it up to date with the source", m.name, edit.file)
		mutated[path] = bytes.Replace(source, []byte(edit.from), []byte(edit.to), 1)
	}
	return mutated
}

// TestMutationsApply: each bug fits the sources as they are, and the README names it.
func TestMutationsApply(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(mutationDir, "README.md"))
	require.NoError(t, err)
	for _, m := range readMutations(t) {
		assert.NotEmpty(t, m.apply(t))
		assert.Contains(t, string(readme), "`"+m.name+"`")
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
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, source := range m.apply(t) {
		overlay.Replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay.Replace)))
		require.NoError(t, os.WriteFile(overlay.Replace[path], source, 0o644))
	}
	spec, err := json.Marshal(overlay)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), spec, 0o644))

	binary := filepath.Join(dir, "mutant.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "the mutant does not build:\n%s", out)

	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	// One processor: the shards then look at the seeds in order, and the first is found.
	run := exec.CommandContext(ctx, binary, "-test.run=^TestSimulation$", "-test.cpu=1", fmt.Sprintf("-seeds=%d", mutationSeeds))
	out, err = run.CombinedOutput()
	require.NoError(t, ctx.Err(), "the mutant hangs:\n%s", out)
	require.Error(t, err, "not caught within %d seeds", mutationSeeds)
	found := foundViolation.FindSubmatch(out)
	require.NotNil(t, found, "the mutant fails, but not by a violation:\n%s", out)
	return string(found[1]), string(found[2])
}
