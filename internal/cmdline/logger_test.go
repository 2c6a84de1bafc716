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
	log.Warn("entries are not ids", "plan", "q", "label", "", "malformed", 9, "first", " 2", "stack", "s\n")
	assert.Equal(t, "rankd: panic on the loop: boom\ngoroutine 1\nrankd: careful\nrankd: entries are not ids: plan=q malformed=9 first=\" 2\"\ns\n", stderr.String())
}
