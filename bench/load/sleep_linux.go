package load

import (
	"syscall"
	"time"
)

// sleep waits in the kernel instead of in the Go runtime. The runtime's timers wait in
// epoll_wait on an idle machine and are up to a millisecond late, which would be most of
// the latency that an open loop measures. A signal may end sleep early.
func sleep(d time.Duration) {
	wait := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&wait, nil) // fails only if interrupted
}
