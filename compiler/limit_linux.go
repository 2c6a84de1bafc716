package compiler

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limitData is a net below the watchdog: the kernel refuses a child memory far beyond its limit, and
// Go ends the process. It counts from what the process has mapped now, which is a lot under the race
// detector.
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
	bound := uint64(pages*int64(os.Getpagesize()) + 2*memoryBytes)
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: bound, Max: bound}) // the watchdog works without
}
