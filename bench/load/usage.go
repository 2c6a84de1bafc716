package load

import (
	"bytes"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"syscall"
	"time"
)

// Usage is the resource usage of a process since its start. Immutable.
type Usage struct {
	CPU        time.Duration `json:"cpu"`    // user and system
	Allocs     uint64        `json:"allocs"` // heap objects
	AllocBytes uint64        `json:"alloc_bytes"`
	RSSBytes   uint64        `json:"rss_bytes"`            // resident now
	LiveBytes  uint64        `json:"live_bytes,omitempty"` // of the heap, what the last garbage collection found in use
}

// Since returns the usage between two readings, with the RSSBytes and LiveBytes of the later one.
func (u Usage) Since(before Usage) Usage {
	u.CPU -= before.CPU
	u.Allocs -= before.Allocs
	u.AllocBytes -= before.AllocBytes
	return u
}

// ReadUsage reads the usage of this process. RSSBytes is 0 where /proc is missing.
func ReadUsage() Usage {
	var u Usage
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		u.CPU = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	// ReadMemStats stops the world, unlike package runtime/metrics. So it sees what each P
	// has allocated since it last took a span, which is most of the allocations of a few
	// hundred requests.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.Allocs, u.AllocBytes = m.Mallocs, m.TotalAlloc
	u.RSSBytes = residentBytes()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	u.LiveBytes = live[0].Value.Uint64()
	return u
}

func residentBytes() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
