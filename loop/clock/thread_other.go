//go:build !linux

package clock

// NewThreadCPU returns nil: Go reaches the processor clock of a thread on Linux only. macOS has one
// as well, but only its C library reads it.
func NewThreadCPU() ThreadCPU { return nil }
