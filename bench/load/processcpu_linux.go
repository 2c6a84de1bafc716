package load

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessCPU returns the CPU time that another process has used since its start, user and system, in nanoseconds. It
// reads the processor clock of the process, which counts the same as getrusage does inside it.
func ProcessCPU(pid int) (time.Duration, error) {
	if pid <= 0 {
		return 0, fmt.Errorf("processor clock of process %d: %w", pid, unix.ESRCH)
	}
	const schedulerClock = 2 // CPUCLOCK_SCHED of the kernel: all time on a CPU
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedulerClock), &t); err != nil {
		return 0, fmt.Errorf("processor clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
