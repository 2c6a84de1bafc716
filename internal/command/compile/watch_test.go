package compile

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// watching is a running "rankd compile --watch plans".
type watching struct {
	t     *testing.T
	lines *bufio.Scanner // of stderr
	stop  func() error
}

// watchFolder starts the command in a folder with these files.
func watchFolder(t *testing.T, files map[string]string) *watching {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	t.Chdir(dir)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := execute(ctx, io.Discard, w, []string{"compile", "--watch", "plans"})
		_ = w.Close()
		ended <- err
	}()
	stop := func() error {
		cancel()
		_, _ = io.Copy(io.Discard, r)
		return <-ended
	}
	return &watching{t: t, lines: bufio.NewScanner(r), stop: stop}
}

// until reads stderr to a line that contains the text.
func (w *watching) until(text string) {
	w.t.Helper()
	for w.lines.Scan() {
		if strings.Contains(w.lines.Text(), text) {
			return
		}
	}
	require.Fail(w.t, "the command ended", "before it wrote %q", text)
}

// save replaces a file as editors do.
func (w *watching) save(name, text string) {
	w.t.Helper()
	assert.NoError(w.t, os.WriteFile(name+".new", []byte(text), 0o644))
	assert.NoError(w.t, os.Rename(name+".new", name))
}

func (w *watching) artifact(name string) int {
	return rowCount(w.t, filepath.Join("artifacts/plans", name+".plan.json"))
}

func TestWatch(t *testing.T) {
	w := watchFolder(t, map[string]string{"plans/a.plan.ts": source("a", 1), "plans/b.plan.ts": source("b", 1)})
	w.until("compiled 2 plans")
	w.save("plans/a.plan.ts", source("a", 2))
	w.until("compiled 1 plan ")
	assert.Equal(t, 2, w.artifact("a"), "only what changed is compiled")

	w.save("plans/a.plan.ts", strings.Replace(source("a", 3), "fixedSource", "fixdSource", 1))
	w.until("error:")
	w.until("compiled 0 plans")
	assert.Equal(t, 2, w.artifact("a"), "the artifact of the last good state")
	w.save("plans/a.plan.ts", source("a", 3))
	w.until("compiled 1 plan ")
	assert.Equal(t, 3, w.artifact("a"))

	w.save("plans/c.plan.ts", source("c", 4))
	w.until("compiled 1 plan ")
	assert.Equal(t, 4, w.artifact("c"), "a new plan")
	require.NoError(t, os.Remove("plans/c.plan.ts"))
	w.save("plans/a.plan.ts", source("a", 5))
	w.until("compiled 1 plan ")
	assert.NoError(t, w.stop(), "a signal is the way to end it")
}

// Two plans with one name are refused until one is renamed, even if they are compiled one after
// another.
func TestWatchRefusesTwins(t *testing.T) {
	w := watchFolder(t, map[string]string{"plans/a.plan.ts": source("a", 1)})
	w.until("compiled 1 plan ")
	w.save("plans/b.plan.ts", source("a", 2))
	w.until("2 files with errors")
	assert.Equal(t, 1, w.artifact("a"))
	w.save("plans/b.plan.ts", source("b", 2))
	w.until("compiled 2 plans")
	assert.Equal(t, 2, w.artifact("b"))
	assert.NoError(t, w.stop())
}

func TestWatchFollowsImports(t *testing.T) {
	const plan = `import { definePlan } from "@ranking-dsl/runtime";
import { rows } from "./shared/rows";
export default definePlan({ name: "a", build: (ctx) => ctx.fixedSource({ rowCount: rows }) });
`
	w := watchFolder(t, map[string]string{"plans/a.plan.ts": plan, "plans/b.plan.ts": source("b", 1)})
	w.until("compiled 1 plan ") // b only; the import of a is missing
	require.NoError(t, os.Mkdir("plans/shared", 0o755))
	require.NoError(t, os.WriteFile("plans/shared/rows.ts", []byte("export const rows = 7;"), 0o644))
	w.save("plans/a.plan.ts", plan+"// the import is there\n")
	w.until("compiled 1 plan ")
	assert.Equal(t, 7, w.artifact("a"))
	w.save("plans/shared/rows.ts", "export const rows = 8;")
	w.until("compiled 1 plan ")
	assert.Equal(t, 8, w.artifact("a"))
	assert.NoError(t, w.stop())
}

// TestWatchCopiesAliases: a change of the aliases alone counts.
func TestWatchCopiesAliases(t *testing.T) {
	w := watchFolder(t, map[string]string{"plans/a.plan.ts": source("a", 1)})
	w.until("compiled 1 plan ")
	for _, aliases := range []string{"home = \"a\"", "start = \"a\""} {
		w.save("plans/aliases.toml", aliases)
		w.until("compiled 0 plans ")
		text, err := os.ReadFile("artifacts/plans/aliases.toml")
		require.NoError(t, err)
		assert.Equal(t, aliases, string(text))
	}
	assert.NoError(t, w.stop())
}

// Somebody saves a file in another state while one state is compiled. In the end the artifact
// belongs to the last state.
func TestWatchTheLastStateWins(t *testing.T) {
	const states = 40
	w := watchFolder(t, map[string]string{"plans/a.plan.ts": source("a", 0)})
	w.until("compiled 1 plan ")
	saved := make(chan struct{})
	go func() {
		defer close(saved)
		for i := range states {
			w.save("plans/a.plan.ts", source("a", i+1))
		}
	}()
	for w.artifact("a") != states {
		w.until("compiled")
	}
	<-saved
	assert.NoError(t, w.stop())
}
