// Package bounds has the ranges of the numbers of rankd.Options: the same for flags and for embedding programs. Any
// goroutine.
package bounds

import (
	"math"
	"strconv"
	"time"

	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
)

// MSMax is the longest limit of time in milliseconds: some 24 days.
const MSMax = math.MaxInt32

// Range is the numbers that an option takes. Immutable.
type Range struct {
	// Least is the least number of a flag. In Options zero may mean a default.
	Least, Most int64
	Unit        time.Duration // of a time; 0: it is a plain number
}

// Max returns the most, of a time in nanoseconds.
func (r Range) Max() int64 { return r.Most * max(1, int64(r.Unit)) }

// Show writes a number, of a time in nanoseconds.
func (r Range) Show(n int64) string {
	if r.Unit > 0 {
		return time.Duration(n).String()
	}
	return strconv.FormatInt(n, 10)
}

// Option returns the range of a number of rankd.Options, by its path there: "Scheduling.MaxInlineDepth". It returns false if there is none.
func Option(path string) (Range, bool) {
	r, ok := map[string]Range{
		"CPUThreads":                 {Least: 1, Most: 1 << 10},
		"IOThreads":                  {Least: 1, Most: 1 << 14},
		"RedisConnections":           {Most: 1 << 12},
		"Timeout":                    {Most: MSMax, Unit: time.Millisecond},
		"NodeTimeout":                {Most: MSMax, Unit: time.Millisecond},
		"MaxInflight":                {Least: 1, Most: 1 << 20},
		"MaxQueue":                   {Most: 1 << 24},
		"MaxRows":                    {Least: 1, Most: task.MaxRowsLimit},
		"MaxReplyBytes":              {Least: 1, Most: resp.MaxReplyBytesLimit},
		"BusyPoll":                   {Most: 100_000, Unit: time.Microsecond}, // In Options a negative one says never.
		"Scheduling.InlineThreshold": {Least: 1, Most: int64(time.Second), Unit: time.Nanosecond},
		"Scheduling.MaxInlineDepth":  {Least: 1, Most: 1 << 16},
		"Scheduling.InlineBudget":    {Most: MSMax, Unit: time.Millisecond}, // without a flag
		"TraceSample":                {Least: 1, Most: 1 << 30},
	}[path]
	return r, ok
}
