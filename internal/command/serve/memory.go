package serve

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memoryLeast is how much memory the process may take before Go's garbage collector works harder than usual. It has
// room for 10,000 idle connections and 1,000 slow ones.
const memoryLeast = 256 << 20

// memoryPeriod is how often the limit follows the heap. For that long, the collector may work too hard.
const memoryPeriod = time.Second

// memoryLimit returns the limit for a heap with so many live bytes. Twice as much lets the program allocate as many
// new bytes as live ones between collections.
func memoryLimit(live uint64) int64 { return max(memoryLeast, 2*int64(live)) }

// boundMemory keeps the memory limit of the process low, but well above the live heap, until stop is called. It
// leaves a limit from the environment alone.
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
