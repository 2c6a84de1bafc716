package cli

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memoryLeast is what the process may take before the collector of Go works harder than usual. It has room for
// 10,000 idle connections and 1,000 slow ones.
const memoryLeast = 256 << 20

// memoryPeriod is how often the limit follows the heap. The collector may work too hard for as long.
const memoryPeriod = time.Second

// memoryLimit returns the limit for a heap of which so many bytes live on. Twice as much leaves the collector idle for as many
// new bytes as live ones.
func memoryLimit(live uint64) int64 { return max(memoryLeast, 2*int64(live)) }

// boundMemory keeps the memory limit of the process low, but well above what lives on, until stop is called. A limit in the
// environment stays as it is.
func boundMemory() (stop func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(memoryLeast)
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		tick := time.NewTicker(memoryPeriod)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				metrics.Read(live)
				debug.SetMemoryLimit(memoryLimit(live[0].Value.Uint64()))
			case <-ending:
				return
			}
		}
	}()
	return func() {
		close(ending)
		<-ended
		debug.SetMemoryLimit(before)
	}
}
