package rankd_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/bounds"
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

// A program that embeds the engine may use the same numbers as the flags take, and zero.
func TestNumbersHaveTheRangesOfTheFlags(t *testing.T) {
	var o rankd.Options
	var want []string
	var fill func(of reflect.Value, prefix string)
	fill = func(of reflect.Value, prefix string) {
		for field, value := range of.Fields() {
			if value.Kind() == reflect.Struct {
				fill(value, field.Name+".")
			} else if value.CanInt() {
				r, ok := bounds.Option(prefix + field.Name)
				require.True(t, ok, "internal/bounds has no range of %s%s", prefix, field.Name)
				value.SetInt(r.Max() + 1)
				want = append(want, fmt.Sprintf("%s%s must be at most %s, not %s", prefix, field.Name, r.Show(r.Max()), r.Show(r.Max()+1)))
			}
		}
	}
	fill(reflect.ValueOf(&o).Elem(), "")
	require.Contains(t, want, "Timeout must be at most 596h31m23.647s, not 596h31m23.647000001s")
	require.Contains(t, want, "Scheduling.MaxInlineDepth must be at most 65536, not 65537")
	_, err := rankd.Open(o)
	require.Error(t, err)
	for _, each := range want {
		assert.Contains(t, strings.Split(strings.TrimPrefix(err.Error(), "rankd: options: "), "\n"), each)
	}
}
