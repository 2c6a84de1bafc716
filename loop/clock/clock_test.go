package clock_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/loop/clock"
)

func TestAddStaysWithinRealInstants(t *testing.T) {
	const none, second = clock.Time(0), clock.Time(time.Second)
	for name, tc := range map[string]struct {
		t    clock.Time
		d    time.Duration
		want clock.Time
	}{
		"forward":              {second, time.Second, 2 * second},
		"not at all":           {second, 0, second},
		"back":                 {2 * second, -time.Second, second},
		"back to the origin":   {second, -time.Second, clock.First},
		"back beyond it":       {second, -time.Hour, clock.First},
		"back by all there is": {second, math.MinInt64, clock.First},
		"too far":              {second, math.MaxInt64, clock.Never},
		"none":                 {none, time.Second, none},
		"none, back":           {none, -time.Second, none},
		"never":                {clock.Never, -time.Second, clock.Never},
	} {
		assert.Equal(t, tc.want, tc.t.Add(tc.d), name)
	}
}

func TestManualClock(t *testing.T) {
	var zero clock.Manual
	for name, c := range map[string]*clock.Manual{"zero value": &zero, "new": clock.NewManual()} {
		assert.Equal(t, clock.Time(time.Second), c.Now(), name)
		c.Advance(time.Millisecond)
		assert.Equal(t, time.Millisecond, c.Now().Sub(clock.Time(time.Second)), name)
	}
}
