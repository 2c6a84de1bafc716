package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// Load describes the requests to send. Immutable while it runs.
type Load struct {
	// Users are the users of the requests, in rotation. At least one.
	Users []int64 `json:"users"`
	// Heavy are users whose answers are measured apart: large requests beside small ones.
	Heavy []int64 `json:"heavy,omitempty"`
	// Concurrency is the number of clients of a closed loop. In an open loop it bounds the
	// requests in flight; arrivals beyond it are shed. At least one.
	Concurrency int `json:"concurrency"`
	// Rate is the number of arrivals per second of an open loop. Zero means a closed loop.
	Rate float64 `json:"rate,omitempty"`
	// Requests and Duration end the load, whichever comes first; zero means no
	// bound. One of them is set.
	Requests int64         `json:"requests,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
}

// Check returns an error if the load is invalid.
func (l *Load) Check() error {
	switch {
	case len(l.Users) == 0:
		return fmt.Errorf("load: no users")
	case l.Concurrency < 1:
		return fmt.Errorf("load: concurrency is %d, not positive", l.Concurrency)
	case l.Rate < 0 || math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0):
		return fmt.Errorf("load: rate is %v", l.Rate)
	case l.Requests < 0 || l.Duration < 0 || l.Requests == 0 && l.Duration == 0:
		return fmt.Errorf("load: neither a number of requests nor a duration")
	default:
		return nil
	}
}

// Tally is the measurement of some of the requests of a load. Immutable once returned.
type Tally struct {
	Answered   int64     `json:"answered"` // requests sent, including failures
	Errors     int64     `json:"errors"`   // failures
	FirstError string    `json:"first_error,omitempty"`
	Latency    Histogram `json:"latency"` // of successes
}

// Result is the measurement of a load. Its Tally leaves out Heavy and Refused. Immutable once returned.
type Result struct {
	Tally
	Elapsed time.Duration `json:"elapsed"`        // from the first request to the last answer
	Shed    int64         `json:"shed,omitempty"` // arrivals not sent because Concurrency requests were in flight; open loop only
	// Heavy is the measurement of Load.Heavy. Nil without any.
	Heavy *Tally `json:"heavy,omitempty"`
	// Refused is the measurement of the requests that the target refused (ErrRefused): their number, and the times until the refusals. Nil without any.
	Refused *Tally `json:"refused,omitempty"`
	// Lag is how late arrivals were sent: the driver's own share in the latencies of an
	// open loop. Empty in a closed loop.
	Lag Histogram `json:"lag,omitzero"`
}

// ErrRefused is in the error of a request that the target turned away because it has too much to do. A refusal is
// neither an answer nor a failure.
var ErrRefused = errors.New("refused")

// PerSecond returns the successes per second.
func (r *Result) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Answered-r.Errors) / r.Elapsed.Seconds()
}

// Driver runs loads. The zero value works, in real time. Any goroutine.
type Driver struct {
	Clock clock.Clock
	// Sleep waits between the arrivals of an open loop. It may return early.
	Sleep func(time.Duration)
	// Begin is called right before the first request, after the driver has built its own
	// data; End is called right after the last answer. They read counters.
	Begin, End func()
}

// Run puts the load on the target and returns when all requests sent are answered. When ctx
// ends it sends no more; the result covers the requests sent.
func (d Driver) Run(ctx context.Context, target Target, l Load) (*Result, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if d.Clock == nil {
		d.Clock = clock.NewReal()
	}
	if d.Sleep == nil {
		d.Sleep = sleep
	}
	r := &run{ctx: ctx, clock: d.Clock, load: l, most: l.Requests}
	if r.most == 0 {
		r.most = math.MaxInt64
	}
	for i := range r.shards {
		r.shards[i].Latency = NewHistogram()
	}
	r.heavy.Latency, r.refused.Latency = NewHistogram(), NewHistogram()
	send := r.closed(target)
	if l.Rate > 0 {
		send = r.open(target, d.Sleep)
	}
	if d.Begin != nil {
		d.Begin()
	}
	r.began = r.clock.Now()
	if l.Duration > 0 {
		r.until = r.began.Add(l.Duration)
	}
	send()
	r.live.Wait()
	elapsed := r.clock.Now().Sub(r.began)
	if d.End != nil {
		d.End()
	}
	return r.result(elapsed), nil
}

// run is a load under way. Callbacks touch only atomic fields and the shards, which have locks.
type run struct {
	ctx   context.Context
	clock clock.Clock
	load  Load
	most  int64      // requests in all
	began clock.Time // of the load
	until clock.Time // no request starts later; zero means no bound

	shed int64     // open loop; only the sending goroutine touches it
	lag  Histogram // likewise

	sent    atomic.Int64
	live    sync.WaitGroup // closed: clients; open: requests in flight
	shards  [8]shard
	heavy   shard // of Load.Heavy
	refused shard
}

// shard records the answers of some of the clients. A histogram per client would take a
// quarter of a megabyte each, and one for all would be a lock for all. Any goroutine.
type shard struct {
	mu sync.Mutex
	Tally
	_ [64]byte // apart from the next one's lock
}

func (s *shard) record(took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Answered++
	if err == nil {
		s.Latency.Record(took)
		return
	}
	s.Errors++
	if s.FirstError == "" {
		s.FirstError = err.Error()
	}
}

// record counts the answer to a request for user.
func (r *run) record(user int64, s *shard, took time.Duration, err error) {
	switch {
	case errors.Is(err, ErrRefused):
		s, err = &r.refused, nil
	case slices.Contains(r.load.Heavy, user):
		s = &r.heavy
	}
	s.record(took, err)
}

// user returns the user of the n-th request, counted from 1.
func (r *run) user(n int64) int64 { return r.load.Users[(n-1)%int64(len(r.load.Users))] }

func (r *run) result(elapsed time.Duration) *Result {
	res := &Result{Elapsed: elapsed, Shed: r.shed, Lag: r.lag}
	for i := range r.shards {
		s := &r.shards[i].Tally
		if i > 0 {
			res.Latency.Merge(s.Latency.Histogram)
		} else {
			res.Latency = s.Latency
		}
		res.Answered += s.Answered
		res.Errors += s.Errors
		res.FirstError = cmp.Or(res.FirstError, s.FirstError)
	}
	if len(r.load.Heavy) > 0 {
		res.Heavy = &r.heavy.Tally
	}
	if r.refused.Answered > 0 {
		res.Refused = &r.refused.Tally
	}
	return res
}
