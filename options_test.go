package rankd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd"
)

func TestErrorsOfOptionsQuoteLittle(t *testing.T) {
	_, err := rankd.Open(rankd.Options{Model: rankd.Model(strings.Repeat("x", 1<<20)), Redis: strings.Repeat("y", 1<<20)})
	assert.ErrorContains(t, err, `Model must be reactor, pool or sequential, not "xxx`)
	assert.ErrorContains(t, err, "Redis must be host:port or a URL: host or port is missing")
	assert.Less(t, len(err.Error()), 700)
}
