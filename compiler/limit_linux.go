package compiler

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dataSlack is how far beyond its limit a child may go before the kernel refuses. It gives the watchdog, which can
// name the line, time to notice a single large allocation.
const dataSlack = 1 << 30

// limitData is a safety net below the watchdog: the kernel refuses a child memory far beyond its limit, and Go ends
// the process. It counts from the memory mapped now, which is a lot under the race detector.
func limitData(memoryBytes int64) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 6 {
		return
	}
	pages, err := strconv.ParseInt(fields[5], 10, 64)
	if err != nil {
		return
	}
	bound := uint64(pages*int64(os.Getpagesize()) + 2*memoryBytes + dataSlack)
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: bound, Max: bound}) // the watchdog works without
}
