package delay

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// An alarm wakes one goroutine at given instants, some 0.1 ms late on an idle machine. It is a
// descriptor that becomes readable when its time has come. Go waits for its own timers in whole
// milliseconds while nothing else happens. The delays to be simulated are no longer than that.
type alarm struct{ file *os.File }

func newAlarm() (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return alarm{}, os.NewSyscallError("timerfd_create", err)
	}
	return alarm{os.NewFile(uintptr(fd), "timerfd")}, nil
}

// wait returns true at t or after it. It returns false at once if the alarm is closed.
func (a alarm) wait(t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return true
	}
	raw, err := a.file.SyscallConn()
	if err != nil {
		return false
	}
	var setErr error
	err = raw.Control(func(fd uintptr) {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		setErr = unix.TimerfdSettime(int(fd), 0, &spec, nil)
	})
	if err != nil || setErr != nil {
		return false
	}
	var expirations [8]byte
	_, err = a.file.Read(expirations[:])
	return err == nil
}

// close ends all waiting. A second call does nothing. Any goroutine.
func (a alarm) close() { _ = a.file.Close() }
