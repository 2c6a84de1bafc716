package compare

import (
	"fmt"
	"time"
)

// kneeShare is the share of the best throughput that the knee has to reach. The rest is not
// worth the longer wait, and it is more than the rounds differ.
const kneeShare = 0.9

// Knee is where throughput flattens over a sweep. Immutable once built.
type Knee struct {
	Engine string `json:"engine"`
	Conditions
	// At is the lowest concurrency whose throughput is at least 90 % of the best.
	At         int     `json:"concurrency"`
	Throughput float64 `json:"throughput_rps"` // there
	P99        float64 `json:"p99_us"`         // there

	Best     float64 `json:"best_throughput_rps"` // of the sweep
	BestAt   int     `json:"best_concurrency"`
	Last     int     `json:"last_concurrency"` // where the sweep ends
	LastRate float64 `json:"last_throughput_rps"`
	LastP99  float64 `json:"last_p99_us"`

	// Found is false if throughput has not flattened within the sweep: the knee is its last
	// or only concurrency.
	Found bool `json:"found"`
}

// FindKnee returns the knee of one engine's cells, which ascend in concurrency and differ in
// nothing else. It skips cells that failed; ok is false if none is left.
func FindKnee(cells []Cell) (k Knee, ok bool) {
	var sound []Cell
	for _, c := range cells {
		if c.Failure == "" && c.Throughput.Median > 0 {
			sound = append(sound, c)
		}
	}
	if len(sound) == 0 {
		return Knee{}, false
	}
	for _, c := range sound {
		if c.Throughput.Median > k.Best {
			k.Best, k.BestAt = c.Throughput.Median, c.Concurrency
		}
	}
	last := sound[len(sound)-1]
	k.Engine, k.Last, k.LastRate, k.LastP99 = last.Engine, last.Concurrency, last.Throughput.Median, last.Latency.P99
	for _, c := range sound {
		if c.Throughput.Median >= kneeShare*k.Best {
			k.At, k.Throughput, k.P99 = c.Concurrency, c.Throughput.Median, c.Latency.P99
			break
		}
	}
	k.Found = k.At < k.Last
	return k, true
}

// String describes the knee in one sentence.
func (k Knee) String() string {
	if !k.Found {
		return fmt.Sprintf("%s: no knee up to %d in flight: throughput still rises, to %.0f requests/s with a p99 of %v there",
			k.where(), k.Last, k.LastRate, duration(k.LastP99))
	}
	return fmt.Sprintf("%s: the knee is at %d in flight with %.0f requests/s and a p99 of %v; "+
		"at %d in flight it is %+.0f %% throughput for %.1f times the p99 (%v)",
		k.where(), k.At, k.Throughput, duration(k.P99), k.Last, 100*(k.LastRate/k.Throughput-1), k.LastP99/k.P99, duration(k.LastP99))
}

func (k Knee) where() string {
	if special := k.Conditions.String(); special != "" {
		return k.Engine + ", " + special
	}
	return k.Engine
}

// duration turns microseconds into a duration that reads well.
func duration(us float64) time.Duration {
	d := time.Duration(us * float64(time.Microsecond))
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	default:
		return d.Round(100 * time.Nanosecond)
	}
}
