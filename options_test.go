package rankd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/trace"
)

func TestErrorsOfOptionsQuoteLittle(t *testing.T) {
	_, err := rankd.Open(rankd.Options{Model: rankd.Model(strings.Repeat("x", 1<<20)), Redis: strings.Repeat("y", 1<<20)})
	assert.ErrorContains(t, err, `Model must be reactor, pool or sequential, not "xxx`)
	assert.ErrorContains(t, err, "Redis must be host:port or a URL: host or port is missing")
	assert.Less(t, len(err.Error()), 700)
}

func TestTraceOptionsAreChecked(t *testing.T) {
	sink := trace.SinkFunc(func(*trace.Recording) {})
	for want, o := range map[string]rankd.Options{
		"TraceSample and TraceSink need each other": {TraceSample: 1},
		"TraceSink need each other":                 {TraceSink: sink},
		"TraceSample must not be negative":          {TraceSample: -1},
		"TraceDetail must be a level of detail":     {TraceDetail: trace.Full + 1},
	} {
		_, err := rankd.Open(o)
		assert.ErrorContains(t, err, want)
	}
}
