package fileio

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAFullDiskLeavesWholeLines: what does not fit is cut out, or the next line begins a file.
func TestAFullDiskLeavesWholeLines(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("this system has no /dev/full")
	}
	require.NoError(t, err)
	f := &Files{dir: t.TempDir(), name: "served-", max: 1 << 20, file: full, whole: func(p []byte) int { return bytes.LastIndexByte(p, '\n') + 1 }}
	n, err := f.Write([]byte("line\n"))
	require.Error(t, err)
	assert.Zero(t, n)
	require.True(t, f.Full())
	require.NoError(t, f.Next(), "the next line goes to a file of its own")
	n, err = f.Write([]byte("line\n"))
	require.NoError(t, err)
	assert.Equal(t, 5, n)
}
