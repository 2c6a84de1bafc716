package isolation

import (
	"time"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
)

// search finds the rate of arrivals that an engine bears. A closed loop answers more: it needs no goroutine that sends,
// and always has as many requests in flight as an engine works on together. One goroutine.
type search struct {
	duration time.Duration // of a round of the scenario
	run      func(r *worker.Round) (*worker.Report, error)
	failure  error // why the engine cannot be measured
}

// inFlight is the concurrency of the closed loop from whose throughput the search goes down.
const inFlight = 64

// steps halve the interval in which the capacity is: it is then known to 1/64 of the closed loop's throughput.
const steps = 6

// bears is the median latency up to which an engine bears a rate. Beyond its capacity requests queue up: after a second
// of 1 % too many, half of them have waited for longer. A pause of the machine delays fewer than half.
const bears = 5 * time.Millisecond

// capacity returns the highest rate that the engine bears, at least 1/64 of what it answers in a closed loop. If it
// cannot be measured, capacity sets failure. The error is the end of its worker.
func (s *search) capacity() (rate float64, err error) {
	closed, err := s.measure(&worker.Round{Concurrency: inFlight, Warmup: s.duration / 10, Duration: s.duration / 4})
	if err != nil || s.failure != nil {
		return 0, err
	}
	low, high := 0.0, closed.PerSecond()
	for range steps {
		rate := (low + high) / 2
		r, err := s.measure(&worker.Round{Concurrency: backlog, Rate: rate, Requests: max(1, int64(rate*s.duration.Seconds()/8))})
		if err != nil || s.failure != nil {
			return 0, err
		}
		if r.Shed == 0 && time.Duration(r.Latency.ValueAtPercentile(50)) <= bears {
			low = rate
		} else {
			high = rate
		}
	}
	return max(low, closed.PerSecond()/(1<<steps)), nil
}

// measure runs a round. An error of a request is a failure.
func (s *search) measure(r *worker.Round) (*load.Result, error) {
	report, err := s.run(r)
	if err != nil {
		return nil, err
	}
	result, err := report.Result()
	if err == nil {
		err = result.FirstError
	}
	s.failure = err
	return result, nil
}
