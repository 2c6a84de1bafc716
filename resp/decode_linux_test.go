package resp

import (
	"math"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDecodeRejectsMoreThanOffsetsHold: the data is only address space, which nothing touches.
func TestDecodeRejectsMoreThanOffsetsHold(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("no slice is that long")
	}
	size := int64(math.MaxUint32) + 1
	data, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(data)) }()
	d := NewDecoder(Limits{})
	d.Reset(1)
	_, _, err = d.Decode(data)
	assert.ErrorContains(t, err, "larger than 4 GiB")
	d.Reset(1)
	_, _, err = d.Decode(data[:size-1])
	assert.ErrorContains(t, err, "unknown type byte")
}
