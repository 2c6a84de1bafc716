package serve

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The memory limit is 256 MiB, or twice what lives on if that is more.
func TestMemoryLimit(t *testing.T) {
	for live, want := range map[uint64]int64{0: 256 << 20, 5 << 20: 256 << 20, 128 << 20: 256 << 20, 1 << 30: 2 << 30} {
		assert.Equal(t, want, memoryLimit(live))
	}
}

func TestTheMemoryLimitIsGivenBack(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1) // reads it
	stop := boundMemory()
	assert.EqualValues(t, memoryLeast, debug.SetMemoryLimit(-1))
	stop()
	assert.Equal(t, before, debug.SetMemoryLimit(-1))
}

func TestALimitInTheEnvironmentStays(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "1GiB")
	before := debug.SetMemoryLimit(-1)
	stop := boundMemory()
	assert.Equal(t, before, debug.SetMemoryLimit(-1))
	stop()
	assert.Equal(t, before, debug.SetMemoryLimit(-1))
}
