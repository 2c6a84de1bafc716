package reactor

import "golang.org/x/sys/unix"

// yieldThread lets another thread run on this processor, if one wants to.
func yieldThread() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
