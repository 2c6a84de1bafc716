package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
)

// TestDefaultThreads: the program has the library's default of CPU workers, and four I/O workers. The default
// is in the help, where each flag is a line.
func TestDefaultThreads(t *testing.T) {
	o := run(t, nil, "--help")
	require.Equal(t, exitOK, o.status)
	for flag, workers := range map[string]int{"cpu_threads": rankd.DefaultCPUThreads(), "io_threads": 4} {
		assert.Regexp(t, fmt.Sprintf(`(?m)--%s number .*\(default %d\)$`, flag, workers), o.stdout)
	}
}
