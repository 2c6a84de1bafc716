package task

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPanicErrorIsShort(t *testing.T) {
	err := &PanicError{Value: "a\n" + strings.Repeat("x", 1<<20)}
	assert.EqualError(t, err, `task panicked: a\n`+strings.Repeat("x", 198)+"… (1048578 bytes)")
}
