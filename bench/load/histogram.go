package load

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram has latencies in nanoseconds; the zero value has none and cannot record any. As text it is in the V2 compressed encoding of
// HdrHistogram. One goroutine at a time.
type Histogram struct{ *hdrhistogram.Histogram }

// latencyMax is the longest latency of a histogram. Longer latencies count as latencyMax.
const latencyMax = 10 * time.Minute

// NewHistogram returns an empty histogram.
func NewHistogram() Histogram { return Histogram{hdrhistogram.New(1, int64(latencyMax), 3)} }

// Record adds a latency. A negative one counts as zero.
func (h Histogram) Record(d time.Duration) {
	_ = h.RecordValue(int64(min(max(d, 0), latencyMax))) // fails only out of range
}

// Micros returns a percentile in µs; 100 is the greatest.
func (h Histogram) Micros(percent float64) float64 {
	return float64(h.ValueAtPercentile(percent)) / float64(time.Microsecond)
}

// MarshalText implements encoding.TextMarshaler.
func (h Histogram) MarshalText() ([]byte, error) {
	if h.Histogram == nil {
		return nil, nil
	}
	text, err := h.EncodeV2()
	if err != nil {
		return nil, fmt.Errorf("encode latencies: %w", err)
	}
	return text, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Histogram) UnmarshalText(text []byte) (err error) {
	if h.Histogram = nil; len(text) == 0 {
		return nil
	}
	if h.Histogram, err = hdrhistogram.Decode(text); err != nil {
		return fmt.Errorf("decode latencies: %w", err)
	}
	return nil
}
