package cmdline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func all(string) bool { return true }

func watch(t *testing.T, paths ...string) *Watcher {
	t.Helper()
	w, err := NewWatcher()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	require.NoError(t, w.Add(paths...))
	return w
}

func TestChanged(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(path string) error
	}{
		{"written", func(path string) error { return os.WriteFile(path, []byte("new"), 0o644) }},
		{"replaced by rename", func(path string) error {
			return errors.Join(os.WriteFile(path+"~", nil, 0o644), os.Rename(path+"~", path))
		}},
		{"removed", os.Remove},
		{"removed and made", func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o644)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.ts")
			require.NoError(t, os.WriteFile(path, nil, 0o644))
			w := watch(t, path)
			require.NoError(t, c.change(path), "before Changed is called")
			changed, err := w.Changed(t.Context(), func(p string) bool { return p == path })
			require.NoError(t, err)
			assert.Equal(t, map[string]bool{path: true}, changed)
		})
	}
}

// A burst of changes is one change. Changes that do not count wake nobody.
func TestChangedWaitsUntilQuiet(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, dir, filepath.Join(dir, "a.ts"))
	for _, name := range []string{"note.txt", "a.ts", "b.ts", "a.ts"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
	}
	changed, err := w.Changed(t.Context(), func(p string) bool { return filepath.Ext(p) == ".ts" })
	require.NoError(t, err)
	assert.Contains(t, changed, filepath.Join(dir, "a.ts"))
	assert.NotContains(t, changed, filepath.Join(dir, "note.txt"))
}

func TestChangedEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	_, err := watch(t, t.TempDir()).Changed(ctx, all)
	assert.ErrorIs(t, err, stop)
}

func TestAddNamesTheFolder(t *testing.T) {
	w := watch(t)
	missing := filepath.Join(t.TempDir(), "none", "a.ts")
	assert.ErrorContains(t, w.Add(missing), filepath.Dir(missing))
}
