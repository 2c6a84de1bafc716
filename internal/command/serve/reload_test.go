package serve

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/serve/access"
)

// reloader returns a server that has only tokens, and the lines of its log.
func reloader(t *testing.T, tokens string) (*server, *bufio.Scanner) {
	t.Helper()
	store, err := access.Open(tokens)
	require.NoError(t, err)
	lines, log := io.Pipe()
	s := &server{store: store, log: slog.New(slog.NewTextHandler(log, nil))}
	r := s.startReloading(&options{tokens: tokens})
	t.Cleanup(func() {
		go func() { _, _ = io.Copy(io.Discard, lines) }() // a line that nobody reads must not delay the end
		r.stop()
		require.NoError(t, log.Close())
	})
	return s, bufio.NewScanner(lines)
}

func tokenFile(t *testing.T, path, name string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(servetest.Token(name, name, servetest.AllPlans)), 0o600))
}

// TestChangesThatAreSeen replaces a file of tokens in the ways of editors, of deployments and
// of Kubernetes.
func TestChangesThatAreSeen(t *testing.T) {
	for name, c := range map[string]struct {
		prepare, change func(t *testing.T, dir string)
	}{
		"written": {
			func(t *testing.T, dir string) { tokenFile(t, dir+"/tokens.toml", "old") },
			func(t *testing.T, dir string) { tokenFile(t, dir+"/tokens.toml", "new") },
		},
		"replaced": {
			func(t *testing.T, dir string) { tokenFile(t, dir+"/tokens.toml", "old") },
			func(t *testing.T, dir string) {
				tokenFile(t, dir+"/tokens.tmp", "new")
				require.NoError(t, os.Rename(dir+"/tokens.tmp", dir+"/tokens.toml"))
			},
		},
		"a mounted secret": {
			func(t *testing.T, dir string) {
				tokenFile(t, dir+"/..1/tokens.toml", "old")
				require.NoError(t, os.Symlink("..1", dir+"/..data"))
				require.NoError(t, os.Symlink("..data/tokens.toml", dir+"/tokens.toml"))
			},
			func(t *testing.T, dir string) {
				tokenFile(t, dir+"/..2/tokens.toml", "new")
				require.NoError(t, os.Symlink("..2", dir+"/..data_tmp"))
				require.NoError(t, os.Rename(dir+"/..data_tmp", dir+"/..data"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.prepare(t, dir)
			s, log := reloader(t, filepath.Join(dir, "tokens.toml"))
			assert.Equal(t, []string{"old"}, s.store.Names())
			c.change(t, dir)
			for log.Scan() && !strings.Contains(log.Text(), "tokens changed") {
			}
			assert.Equal(t, []string{"new"}, s.store.Names())
		})
	}
}

// TestReloadingWithoutFilesEnds: nothing is watched, and SIGHUP does not end the process.
func TestReloadingWithoutFilesEnds(t *testing.T) {
	caller, err := access.NewCaller(access.Rules{Name: access.Anonymous})
	require.NoError(t, err)
	s := &server{store: access.Anyone(caller), log: slog.New(slog.DiscardHandler)}
	r := s.startReloading(&options{})
	s.reload("SIGHUP")
	r.stop()
}
