package resp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A server may answer with 64 KiB of error; what quotes it stays short.
func TestServerErrorIsShort(t *testing.T) {
	err := &ServerError{Message: "ERR " + strings.Repeat("x", 64<<10)}
	assert.EqualError(t, err, "ERR "+strings.Repeat("x", 196)+"… (65540 bytes)")
	assert.Equal(t, "ERR", err.Code())
	assert.EqualError(t, &ServerError{Message: "ERR a\tb\x1b"}, `ERR a\tb\x1b`)
}
