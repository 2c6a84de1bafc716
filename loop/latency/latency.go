// Package latency, which is not covered by the compatibility promise, counts durations in buckets, so that
// their quantiles cost a few nanoseconds and a fixed amount of memory, however many there are.
package latency

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// steps is how many buckets there are per doubling: a quantile is at most an eighth too high.
const steps = 8

// buckets reach from 0 to 2^42 ns, which is more than an hour.
const buckets = 40 * steps

// A Histogram counts durations. The zero value is empty. One goroutine at a time calls Add; any
// goroutine reads it.
type Histogram struct {
	counts [buckets]atomic.Uint32
	max    atomic.Int64 // ns; written by Add alone
}

// Add counts one duration. A negative one counts as zero.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucket(d)].Add(1)
	if int64(d) > h.max.Load() {
		h.max.Store(int64(d))
	}
}

// AddN counts n equal durations. It is a call of Add.
func (h *Histogram) AddN(d time.Duration, n uint64) {
	if n > 0 {
		h.counts[bucket(d)].Add(uint32(n))
		h.max.Store(max(h.max.Load(), int64(d)))
	}
}

// Merge adds all that other has counted. It is a call of Add to h.
func (h *Histogram) Merge(other *Histogram) {
	for i := range other.counts {
		if n := other.counts[i].Load(); n > 0 { // most buckets are empty, and an atomic sum costs more than a look
			h.counts[i].Add(n)
		}
	}
	h.max.Store(max(h.max.Load(), other.max.Load()))
}

// bucket returns the index of a duration's bucket: the position of its highest bit, and the
// three bits below it.
func bucket(d time.Duration) int {
	ns := uint64(max(d, 0))
	if ns < steps {
		return int(ns)
	}
	exp := bits.Len64(ns) - 4
	return min(exp*steps+int(ns>>exp), buckets-1)
}

// upper returns the largest duration of a bucket.
func upper(i int) time.Duration {
	if i < steps {
		return time.Duration(i)
	}
	exp := i/steps - 1
	return time.Duration((uint64(i%steps)+steps+1)<<exp - 1)
}

// Quantiles say how durations are distributed. Each is at most an eighth above the true one, that of the
// nearest rank, as in hdrhistogram. Immutable.
type Quantiles struct {
	Count               uint64
	P50, P99, P999, Max time.Duration
}

// Of returns the distribution of what these histograms have counted together.
func Of(hs ...*Histogram) Quantiles {
	var q Quantiles
	var counts [buckets]uint64
	for _, h := range hs {
		for i := range h.counts {
			n := uint64(h.counts[i].Load())
			counts[i] += n
			q.Count += n
		}
		q.Max = max(q.Max, time.Duration(h.max.Load()))
	}
	at := func(thousandths uint64) time.Duration {
		rank, seen := (thousandths*q.Count+500)/1000, uint64(0)
		for i, n := range counts {
			if seen += n; seen >= rank {
				return min(upper(i), q.Max)
			}
		}
		return q.Max
	}
	q.P50, q.P99, q.P999 = at(500), at(990), at(999)
	return q
}
