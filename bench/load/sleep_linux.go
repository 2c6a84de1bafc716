package load

import (
	"syscall"
	"time"
)

// sleep waits in the kernel instead of in the Go runtime, whose timers, on an idle
// machine, wait in epoll_wait and so are up to a millisecond late: that would be most of
// the latency that an open loop measures. It may return early, when a signal comes.
func sleep(d time.Duration) {
	wait := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&wait, nil) // fails only if interrupted
}
