package fileio

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, content := range []string{"long content", "short", ""} {
		require.NoError(t, Replace(path, []byte(content)))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, content, string(got))
	}
	assert.Equal(t, []string{"a.json"}, names(t, dir))
	for _, mode := range []os.FileMode{0o644, 0o600} {
		require.NoError(t, os.Chmod(path, mode))
		require.NoError(t, Replace(path, []byte("secret")))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode())
	}
}

func TestReplaceLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "folder", "file"), 0o755))
	assert.ErrorContains(t, Replace(filepath.Join(dir, "folder"), []byte("x")), "folder")
	assert.ErrorContains(t, Replace(filepath.Join(dir, "none", "a.json"), []byte("x")), "none")
	assert.Equal(t, []string{"folder"}, names(t, dir))
}

func names(t *testing.T, dir string) (names []string) {
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}
