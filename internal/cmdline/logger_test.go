package cmdline

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLoggerWritesAsTheProgramDoes(t *testing.T) {
	var stderr bytes.Buffer
	log := Logger(&stderr)
	log.Error("panic on the loop", "panic", "boom", "stack", "goroutine 1\n")
	log.Warn("careful")
	assert.Equal(t, "rankd: panic on the loop: boom\ngoroutine 1\nrankd: careful\n", stderr.String())
}
