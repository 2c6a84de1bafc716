package scheduler

import (
	"os"
	"runtime"
	"runtime/debug"
)

// gcPercent trades memory for fewer collections. A request leaves about 2 KB
// of short-lived garbage, and next to nothing lives on: at Go's default a process of a few
// MB collects every 4 MB, some 20 times a second under load, and the sweeping alone showed as
// 8 % of the CPU time; at 800 it collects every 32 MB and the share is lost in the
// noise, for at most some 30 MB more of memory while the live heap is small.
const gcPercent = 800

// gcMemoryLimit bounds what gcPercent may cost when the live heap is not small:
// beyond it the collector runs as often as it must.
const gcMemoryLimit = 2 << 30

// TuneRuntime sets the process up for a reactor engine with that many CPU
// workers. It is for main to call, once, before the engine is opened; what the
// environment sets (GOMAXPROCS, GOGC, GOMEMLIMIT) stays as it is.
//
// GOMAXPROCS: the loop is one goroutine among the CPU workers'. With as many
// busy workers as Ps it would wait for a P, up to the scheduler's preemption slice of
// 10 ms, each time it wakes up. One P more than workers is for the loop, and one for
// the runtime's timers and the goroutines that read and write the request stream.
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
