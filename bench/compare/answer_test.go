package compare

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// between is an estimate with an interval.
func between(low, median, high float64) Estimate { return Estimate{median, &low, &high} }

// closed is a cell of a closed loop; ratio compares its throughput with the first engine's.
func closed(engine string, inFlight int, throughput float64, ratio Estimate) Cell {
	return Cell{
		Engine: engine, Point: Point{Concurrency: inFlight}, Throughput: between(0.98*throughput, throughput, 1.01*throughput),
		Latency: Latencies{P99: 1340}, ThroughputRatio: ratio,
	}
}

// open is a cell of an open loop; ratio compares its p99 with the first engine's.
func open(engine string, rate float64, ratio Estimate) Cell {
	return Cell{
		Engine: engine, Point: Point{Concurrency: 1024, Rate: rate}, Throughput: between(rate, rate, rate),
		ThroughputRatio: between(1, 1, 1), P99Ratio: ratio,
	}
}

func later(c Cell, redis time.Duration) Cell {
	c.RedisLatency = redis
	return c
}

func failed(c Cell) Cell {
	return Cell{Engine: c.Engine, Point: c.Point, Failure: "out of descriptors"}
}

func TestAnswer(t *testing.T) {
	same := between(1, 1, 1)
	reactor := func(inFlight int) Cell { return closed("reactor", inFlight, 64_000, same) }
	pool := func(inFlight int, low, median, high float64) Cell {
		return closed("pool", inFlight, 64_000*median, between(low, median, high))
	}
	var out strings.Builder
	for _, tc := range []struct {
		name  string
		cells []Cell
	}{
		{"ahead, level at 1", []Cell{reactor(64), pool(64, 1/30.0, 1/27.0, 1/24.0), reactor(1), pool(1, 0.97, 1.01, 1.04)}},
		{"ahead at every point", []Cell{reactor(64), pool(64, 0.1, 0.11, 0.12), reactor(8), pool(8, 0.2, 0.21, 0.22), reactor(1), pool(1, 0.5, 0.51, 0.52)}},
		{"ahead at the only point", []Cell{reactor(64), pool(64, 0.1, 0.11, 0.12)}},
		{"ahead, level at 16, behind at 1", []Cell{
			reactor(1), pool(1, 1.3, 1.4, 1.5), reactor(16), pool(16, 0.9, 1, 1.1), reactor(64), pool(64, 0.1, 0.11, 0.12)}},
		{"behind", []Cell{reactor(64), pool(64, 1.4, 1.5, 1.6)}},
		{"level", []Cell{reactor(64), pool(64, 0.95, 0.99, 1.02)}},
		{"level, ahead at 1", []Cell{reactor(64), pool(64, 0.95, 0.99, 1.02), reactor(1), pool(1, 0.4, 0.5, 0.6)}},
		{"level at every point", []Cell{reactor(64), pool(64, 0.95, 0.99, 1.02), reactor(1), pool(1, 0.9, 1, 1.1)}},
		{"a lead that the digits do not show", []Cell{reactor(64), pool(64, 0.997, 0.998, 0.999)}},
		{"a lag that the digits do not show", []Cell{reactor(64), pool(64, 1.001, 1.002, 1.003)}},
		{"interval ends at 1", []Cell{reactor(64), pool(64, 0.8, 0.9, 1)}},
		{"one round", []Cell{reactor(64), closed("pool", 64, 6400, Estimate{Median: 0.1}), reactor(1), closed("pool", 1, 9000, Estimate{Median: 1})}},
		{"interval from 0", []Cell{reactor(64), pool(64, 0, 0.5, 1.2)}},
		{"three engines", []Cell{
			reactor(64), pool(64, 0.1, 0.11, 0.12), closed("peer:rueidis", 64, 64_000, between(1.1, 1.2, 1.3)),
			reactor(1), pool(1, 0.9, 1, 1.1), closed("peer:rueidis", 1, 64_000, between(1.1, 1.15, 1.2))}},
		{"Redis latencies", []Cell{
			reactor(64), pool(64, 0.1, 0.11, 0.12), later(reactor(64), 5*time.Millisecond), later(pool(64, 0.98, 1, 1.01), 5*time.Millisecond)}},
		{"first Redis latency failed", []Cell{
			failed(reactor(64)), pool(64, 0, 0, 0), later(reactor(64), 5*time.Millisecond), later(pool(64, 0.1, 0.11, 0.12), 5*time.Millisecond)}},
		{"the other failed at the highest loads", []Cell{
			reactor(8), pool(8, 0.1, 0.11, 0.12), reactor(64), failed(pool(64, 0, 0, 0)), reactor(256), failed(pool(256, 0, 0, 0))}},
		{"the other answered nothing", []Cell{reactor(64), {Engine: "pool", Point: Point{Concurrency: 64}, Errors: 9}}},
		{"the first failed", []Cell{failed(reactor(64)), closed("pool", 64, 6400, Estimate{})}},
		{"the other failed", []Cell{reactor(64), failed(pool(64, 0, 0, 0))}},
		{"all failed", []Cell{failed(reactor(64)), failed(pool(64, 0, 0, 0)), failed(reactor(1)), failed(pool(1, 0, 0, 0))}},
		{"one engine", []Cell{reactor(1), reactor(64)}},
		{"one engine, one round", []Cell{{Engine: "reactor", Point: Point{Concurrency: 64}, Throughput: Estimate{Median: 5000}}}},
		{"one engine failed", []Cell{failed(reactor(64))}},
		{"nothing", nil},
		{"open loop, ahead", []Cell{
			open("reactor", 20_000, same), open("pool", 20_000, between(4, 5, 6)), open("reactor", 100, same), open("pool", 100, between(0.9, 1, 1.1))}},
		{"open loop, behind", []Cell{open("reactor", 20_000, same), open("pool", 20_000, between(0.4, 0.5, 0.6))}},
		{"open loop, level", []Cell{open("reactor", 20_000, same), open("pool", 20_000, between(0.8, 1, 1.2))}},
		{"open loop, one round", []Cell{open("reactor", 20_000, Estimate{Median: 1}), open("pool", 20_000, Estimate{Median: 3})}},
	} {
		fmt.Fprintf(&out, "%s:\n\t%s\n", tc.name, (&Comparison{Cells: tc.cells}).Answer())
	}
	sweep := &Comparison{Cells: []Cell{
		reactor(1), closed("pool", 1, 60_000, between(0.9, 0.94, 1.1)),
		closed("reactor", 64, 640_000, same), closed("pool", 64, 61_000, between(0.09, 0.095, 0.1))}}
	sweep.FindKnees()
	fmt.Fprintf(&out, "sweep:\n\t%s\n", sweep.Answer())
	sweep = &Comparison{Cells: []Cell{reactor(1), reactor(64)}}
	sweep.FindKnees()
	fmt.Fprintf(&out, "sweep of one engine:\n\t%s\n", sweep.Answer())
	assertGolden(t, "answers.txt", out.String())
}
