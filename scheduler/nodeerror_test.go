package scheduler

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNodeErrorQuotesLittleOfTheID(t *testing.T) {
	err := &NodeError{Node: "a\n" + strings.Repeat("x", 1<<20), Op: "core::take", Err: errors.New("boom")}
	assert.EqualError(t, err, `node a\n`+strings.Repeat("x", 198)+"… (1048578 bytes) (core::take): boom")
}
