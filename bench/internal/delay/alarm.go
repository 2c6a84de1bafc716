//go:build !linux

package delay

import (
	"sync"
	"time"
)

// An alarm wakes one goroutine at given instants. On systems other than Linux it is as exact as
// Go's timers.
type alarm interface {
	// wait returns true at t or after it. It returns false at once if the alarm is closed.
	wait(t time.Time) bool
	// close ends all waiting. A second call does nothing. Any goroutine.
	close()
}

type timerAlarm struct {
	once sync.Once
	done chan struct{}
}

func newAlarm() (alarm, error) { return &timerAlarm{done: make(chan struct{})}, nil }

func (a *timerAlarm) wait(t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.done:
		return false
	}
}

func (a *timerAlarm) close() { a.once.Do(func() { close(a.done) }) }
