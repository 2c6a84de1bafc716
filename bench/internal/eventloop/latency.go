package eventloop

import (
	"fmt"
	"runtime"
	"time"

	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/reactor"
)

// Latency summarizes durations, in microseconds. Immutable.
type Latency struct {
	Min   float64 `json:"min_us"`
	Max   float64 `json:"max_us"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	Count int64   `json:"count"`
}

// String returns the main percentiles.
func (l Latency) String() string {
	return fmt.Sprintf("p50 %v, p90 %v, p99 %v, max %v", harness.Micros(l.P50), harness.Micros(l.P90), harness.Micros(l.P99), harness.Micros(l.Max))
}

// summarize reads a histogram.
func summarize(h load.Histogram) Latency {
	us := harness.InMicros[int64]
	return Latency{
		Min: us(h.Min()), Max: us(h.Max()), Mean: h.Mean() / float64(time.Microsecond),
		P50: h.Micros(50), P90: h.Micros(90), P99: h.Micros(99),
		Count: h.TotalCount(),
	}
}

// Memory is the resident memory of the process before and after a measurement. Immutable.
type Memory struct {
	StartKB uint64 `json:"rss_start_kb"`
	EndKB   uint64 `json:"rss_end_kb"`
}

func residentKB() uint64 { return load.ReadUsage().RSSBytes >> 10 }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// perSecond returns n divided by d, 0 if no time has passed.
func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// start starts a loop hosted by gnet. stop ends it and waits for its end.
func start() (host *reactor.Reactor, stop func(), err error) {
	runtime.GC() // no measurement pays for the garbage of another
	host = reactor.New(reactor.Config{})
	if err := host.Start(); err != nil {
		return nil, nil, fmt.Errorf("start the event loop: %w", err)
	}
	return host, func() {
		host.Stop()
		<-host.Loop().Done()
	}, nil
}
