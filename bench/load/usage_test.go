package load

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var kept []byte // on the heap

func TestUsageCountsAllocationsExactly(t *testing.T) {
	before := ReadUsage()
	for range 100 {
		kept = make([]byte, 4096)
	}
	used := ReadUsage().Since(before)
	assert.GreaterOrEqual(t, used.Allocs, uint64(100))
	assert.Less(t, used.Allocs, uint64(1000), "little else is going on")
	assert.GreaterOrEqual(t, used.AllocBytes, uint64(100*4096))
}

func TestUsageOfThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc, and the processor clocks of Linux")
	}
	assert.Positive(t, ReadUsage().CPU)
	assert.Greater(t, ReadUsage().RSSBytes, uint64(1<<20))
	runtime.GC()
	assert.Greater(t, ReadUsage().LiveBytes, uint64(1<<10))
	_, err := ProcessCPU(-1)
	assert.Error(t, err)
}

func TestProcessCPUAgreesWithTheProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the processor clocks of Linux")
	}
	before := ReadUsage().CPU
	used, err := ProcessCPU(os.Getpid())
	require.NoError(t, err)
	after := ReadUsage().CPU
	const tick = 20 * time.Millisecond // getrusage may scale its two parts by ticks
	assert.GreaterOrEqual(t, used, before-tick)
	assert.LessOrEqual(t, used, after+tick)
}

func TestTrafficSub(t *testing.T) {
	assert.Equal(t, Traffic{1, 5, 2, 3, 4, nil}, Traffic{11, 55, 22, 33, 44, nil}.Sub(Traffic{10, 50, 20, 30, 40, nil}))
	assert.Equal(t, &Cache{1, 5, 2, 3, 44, 0.5}, Traffic{Cache: &Cache{11, 55, 22, 33, 44, 5.5}}.Sub(Traffic{Cache: &Cache{10, 50, 20, 30, 40, 5}}).Cache, "the bytes are those of the end")
}
