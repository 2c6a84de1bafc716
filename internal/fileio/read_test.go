package fileio_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/fileio"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("file"), []byte("12345678"), 0o600))
	require.NoError(t, os.WriteFile(at("large"), []byte("123456789"), 0o600))
	require.NoError(t, os.Symlink("file", at("link")))
	require.NoError(t, os.Symlink("/dev/zero", at("device")))
	require.NoError(t, os.Symlink("nothing", at("dangling")))
	require.NoError(t, os.WriteFile(at("marked"), []byte("\ufeff12345678"), 0o600))
	require.NoError(t, os.Mkdir(at("folder"), 0o700))
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Symlink("pipe", at("link to pipe")))
	socket, err := net.Listen("unix", at("socket"))
	require.NoError(t, err)
	defer socket.Close()

	for name, want := range map[string]string{
		"file": "", "link": "",
		"large":        "larger than 8 bytes",
		"folder":       "is a folder, must be a regular file",
		"device":       "is a device, must be a regular file",
		"pipe":         "is a named pipe, must be a regular file",
		"link to pipe": "is a named pipe, must be a regular file",
		"socket":       "is a socket, must be a regular file",
		"dangling":     "no such file or directory",
		"missing":      "no such file or directory",
	} {
		t.Run(name, func(t *testing.T) {
			text, err := fileio.Read(os.DirFS(dir), name, 8)
			if want == "" {
				require.NoError(t, err)
				assert.Equal(t, "12345678", string(text))
				return
			}
			assert.EqualError(t, err, want)
			assert.Nil(t, text)
		})
	}
	text, err := fileio.Read(os.DirFS(dir), "marked", 11)
	require.NoError(t, err)
	assert.Equal(t, "12345678", string(text), "a byte order mark is no content")
	text, err = fileio.ReadPath(at("marked"), 11)
	require.NoError(t, err)
	assert.Equal(t, "12345678", string(text))
	_, err = fileio.Read(os.DirFS(dir), "missing", 8)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestReadPathTakesAPipeAndBoundsIt(t *testing.T) {
	for size, want := range map[int]string{8: "", 9: "larger than 8 bytes", 1 << 20: "larger than 8 bytes"} {
		path := filepath.Join(t.TempDir(), "pipe")
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		written := make(chan struct{})
		go func() {
			defer close(written)
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if assert.NoError(t, err) {
				_, _ = f.WriteString(strings.Repeat("x", size)) // fails when nobody reads any more
				_ = f.Close()
			}
		}()
		text, err := fileio.ReadPath(path, 8)
		if want == "" {
			require.NoError(t, err)
			assert.Len(t, text, size)
		} else {
			assert.EqualError(t, err, want)
		}
		<-written
	}
	_, err := fileio.ReadPath("/dev/zero", 1<<16)
	assert.EqualError(t, err, "larger than 65536 bytes")
	_, err = fileio.ReadPath(t.TempDir(), 8)
	assert.EqualError(t, err, "is a directory")
	_, err = fileio.ReadPath("/nowhere/at/all", 8)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}
