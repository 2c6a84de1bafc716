package main

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDefaultThreads: the program has a CPU worker for each CPU, at most eight, and four I/O workers. The default
// is in the help, where each flag is a line.
func TestDefaultThreads(t *testing.T) {
	o := run(t, nil, "--help")
	require.Equal(t, exitOK, o.status)
	for flag, workers := range map[string]int{"cpu_threads": min(runtime.NumCPU(), 8), "io_threads": 4} {
		assert.Regexp(t, fmt.Sprintf(`(?m)--%s number .*\(default %d\)$`, flag, workers), o.stdout)
	}
}
