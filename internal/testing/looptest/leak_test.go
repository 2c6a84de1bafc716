package looptest

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLeakedDescriptorsAreFound(t *testing.T) {
	before := openDescriptors()
	if len(before) == 0 {
		t.Skip("this system does not list descriptors")
	}
	require.NoError(t, leakedDescriptors(before))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	assert.ErrorContains(t, leakedDescriptors(before), "2 leaked descriptors: ")
	require.NoError(t, r.Close())
	// A descriptor that is closed a little later is not a leak.
	timer := time.AfterFunc(10*time.Millisecond, func() { _ = w.Close() })
	defer timer.Stop()
	assert.NoError(t, leakedDescriptors(before))
}

func TestLeakedGoroutinesAreFound(t *testing.T) {
	require.NoError(t, leakedGoroutines())
	end := make(chan struct{})
	go func() { <-end }()
	err := leakedGoroutines()
	close(end)
	require.ErrorContains(t, err, "leak_test.go")
	assert.NoError(t, leakedGoroutines())
}

func TestReport(t *testing.T) {
	assert.Zero(t, report(nil, nil))
	assert.Equal(t, 1, report(nil, assert.AnError))
}
