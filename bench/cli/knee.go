package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/rankd/rankd/bench/harness"
)

// kneeShare is the share of the best throughput that the knee has to reach. The rest is not
// worth the longer wait, and it is more than the rounds differ.
const kneeShare = 0.9

// knee is where throughput flattens over a sweep: the lowest concurrency whose throughput reaches 90 % of the best one of the sweep.
// Requests in flight beyond it mostly wait. Immutable once built.
type knee struct {
	conditions `json:"-"`
	Engine     string        `json:"engine"`
	Latency    time.Duration `json:"redis_latency_ns"`
	Writes     int           `json:"foreign_writes,omitempty"`

	At         int     `json:"concurrency"`
	Throughput float64 `json:"throughput_rps"` // there
	P99        float64 `json:"p99_us"`         // there

	Best     float64 `json:"best_throughput_rps"` // of the sweep
	BestAt   int     `json:"best_concurrency"`
	Last     int     `json:"last_concurrency"` // where the sweep ends
	LastRate float64 `json:"last_throughput_rps"`
	LastP99  float64 `json:"last_p99_us"`

	// Found is false if throughput has not flattened within the sweep: the knee is its last or only concurrency.
	Found bool `json:"found"`
}

// knees returns one knee per conditions and engine. A rate has none, and neither has a single concurrency.
func (c *comparison) knees() (knees []knee) {
	for _, under := range c.conditions() {
		for _, engine := range c.engines {
			if series := c.series(engine, under); len(series) > 1 && series[0].rate == 0 {
				if k, ok := findKnee(series); ok {
					knees = append(knees, k)
				}
			}
		}
	}
	return knees
}

// findKnee returns the knee of one engine's cells, which ascend in concurrency and differ in nothing else. It skips cells that failed;
// ok is false if none is left.
func findKnee(cells []cell) (k knee, ok bool) {
	sound := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return !c.measured() })
	if len(sound) == 0 {
		return knee{}, false
	}
	for _, c := range sound {
		if x := c.Value(throughput); x > k.Best {
			k.Best, k.BestAt = x, c.concurrency
		}
	}
	last := sound[len(sound)-1]
	at := sound[slices.IndexFunc(sound, func(c cell) bool { return c.Value(throughput) >= kneeShare*k.Best })]
	k.conditions, k.Engine, k.Latency, k.Writes = last.conditions, last.engine, last.latency, last.writes
	k.Last, k.LastRate, k.LastP99 = last.concurrency, last.Value(throughput), last.Value(p99)
	k.At, k.Throughput, k.P99 = at.concurrency, at.Value(throughput), at.Value(p99)
	k.Found = k.At < k.Last
	return k, true
}

// String describes the knee in one sentence.
func (k knee) String() string {
	where := k.Engine
	if special := k.conditions.String(); special != "" {
		where += ", " + special
	}
	if !k.Found {
		return fmt.Sprintf("%s: no knee up to %d in flight: throughput still rises, to %.0f requests/s with a p99 of %v there",
			where, k.Last, k.LastRate, harness.Micros(k.LastP99))
	}
	return fmt.Sprintf("%s: the knee is at %d in flight with %.0f requests/s and a p99 of %v; "+
		"at %d in flight it is %+.0f %% throughput for %.1f times the p99 (%v)",
		where, k.At, k.Throughput, harness.Micros(k.P99), k.Last, 100*(k.LastRate/k.Throughput-1), k.LastP99/k.P99, harness.Micros(k.LastP99))
}

// short says where the throughput flattens, as a part of a sentence.
func (k knee) short() string {
	if k.Found {
		return fmt.Sprintf("the throughput of %s flattens at %d in flight", k.Engine, k.At)
	}
	return fmt.Sprintf("the throughput of %s still rises at %d in flight", k.Engine, k.Last)
}
