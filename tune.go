package rankd

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/rankd/rankd/scheduler"
)

// gcPercent trades memory for fewer collections. A request leaves about 2 KB of short-lived
// garbage, and next to nothing lives on. At Go's default a process of a few MB collects every
// 4 MB, some 20 times a second under load; the sweeping alone took 8 % of the CPU time. At 800 it
// collects every 32 MB, and the share is lost in the noise. The price is at most some 30 MB more
// of memory while the live heap is small.
const gcPercent = 800

// gcMemoryLimit, in bytes, bounds the price of gcPercent when the live heap is not small: beyond
// it the collector runs as often as it must.
const gcMemoryLimit = 2 << 30

// DefaultCPUThreads returns the number of CPU workers of an engine whose Options name none: one fewer
// than the machine has cores, at least 2 and at most 8.
func DefaultCPUThreads() int { return scheduler.DefaultCPUThreads(runtime.NumCPU()) }

// TuneRuntime sets the process up for a Reactor engine with that many CPU workers. main calls
// it, once, before Open; no other function of this package changes settings of the process.
// Settings of the environment (GOMAXPROCS, GOGC, GOMEMLIMIT) stay as they are.
//
// GOMAXPROCS becomes cpuThreads + 2. The loop is one goroutine beside the CPU workers. With as
// many busy workers as Ps it would wait for a P each time it wakes up, as long as the scheduler's
// preemption slice of 10 ms. One more P is for the loop, and one for the runtime's timers and the
// goroutines that read and write the request stream.
func TuneRuntime(cpuThreads int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(cpuThreads + 2)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(gcMemoryLimit)
	}
}
