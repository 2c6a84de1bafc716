package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// NewThreadCPU returns the processor clock of threads. A reading takes two system calls, some
// 0.3 to 0.5 µs.
func NewThreadCPU() ThreadCPU { return threadCPU }

func threadCPU() (thread int, used time.Duration) {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // Every Linux that Go runs on has this clock.
	return unix.Gettid(), time.Duration(t.Nano())
}
