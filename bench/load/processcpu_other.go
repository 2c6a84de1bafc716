//go:build !linux

package load

import (
	"errors"
	"time"
)

// ProcessCPU fails: only Linux has a processor clock for each process.
func ProcessCPU(int) (time.Duration, error) {
	return 0, errors.New("the CPU time of another process can be read on Linux only")
}
