package cli

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/artifacts"
	"github.com/rankd/rankd/plan"
)

// A plan may come from a pipe, which can be read once. compare does not wait or read without
// bound, whatever the file is.
func TestArtifact(t *testing.T) {
	text, err := fs.ReadFile(artifacts.Plans(), "simple_viewer.plan.json")
	require.NoError(t, err)
	dir := t.TempDir()
	pipe, huge := filepath.Join(dir, "pipe.plan.json"), filepath.Join(dir, "huge.plan.json")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(huge, bytes.Repeat([]byte(" "), plan.MaxArtifactBytes+1), 0o600))

	_, _, err = (&compareOptions{planDir: dir, planName: "pipe"}).artifact(nil)
	assert.ErrorContains(t, err, "pipe.plan.json: is a named pipe, must be a regular file")
	for _, o := range []*compareOptions{{plan: huge}, {planDir: dir, planName: "huge"}} {
		_, _, err = o.artifact(nil)
		assert.ErrorContains(t, err, fmt.Sprintf("larger than %d bytes", plan.MaxArtifactBytes))
	}

	ended := make(chan struct{})
	go func() { // A writer never ends: compare stops reading at the limit.
		defer close(ended)
		if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); assert.NoError(t, err) {
			_, err = io.Copy(f, endless{})
			assert.ErrorIs(t, err, syscall.EPIPE)
			assert.NoError(t, f.Close())
		}
	}()
	_, _, err = (&compareOptions{plan: pipe}).artifact(nil)
	assert.ErrorContains(t, err, fmt.Sprintf("larger than %d bytes", plan.MaxArtifactBytes))
	<-ended

	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, text, 0) }()
	name, got, err := (&compareOptions{plan: pipe}).artifact(nil)
	require.NoError(t, err)
	require.NoError(t, <-written)
	assert.Equal(t, "simple_viewer", name)
	assert.Equal(t, text, got)
}

// endless is a document that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
