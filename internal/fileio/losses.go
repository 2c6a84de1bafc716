package fileio

import "sync/atomic"

// Losses says once that something is lost, and once that no more is. Any goroutine.
type Losses struct {
	To   func(error) bool // returns false if it could not take the report; nil: nobody wants it
	lost atomic.Bool      // To has had the last error
}

// Report notes how the last try ended. To gets the error if the one before had none, and nil if it had one.
func (l *Losses) Report(err error) {
	lost := err != nil
	if l.lost.Swap(lost) != lost && l.To != nil && !l.To(err) {
		l.lost.Store(!lost)
	}
}
