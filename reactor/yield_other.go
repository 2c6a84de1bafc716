//go:build !linux

package reactor

import "runtime"

// yieldThread lets another goroutine run on this thread, if one wants to.
func yieldThread() { runtime.Gosched() }
