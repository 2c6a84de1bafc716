package load

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/loop/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// held is a target whose requests the test answers.
type held struct{ sent chan sentRequest }

type sentRequest struct {
	user   int64
	answer func(error)
}

// inTurn yields the requests of the clients, total in all, first come, first served. It yields
// none before each client has sent its first request, since time must not pass while they
// start.
func (h *held) inTurn(clients, total int) iter.Seq[sentRequest] {
	return func(yield func(sentRequest) bool) {
		var waiting []sentRequest
		for range clients {
			waiting = append(waiting, <-h.sent)
		}
		for received := clients; len(waiting) > 0; {
			r := waiting[0]
			waiting = waiting[1:]
			if !yield(r) {
				return
			}
			if received < total {
				waiting = append(waiting, <-h.sent)
				received++
			}
		}
	}
}

func newHeld() *held { return &held{sent: make(chan sentRequest, 1000)} }

func (h *held) NewClient(answered func(error)) Client { return &heldClient{h, answered} }
func (h *held) Close()                                {}

type heldClient struct {
	target   *held
	answered func(error)
}

func (c *heldClient) Send(user int64) { c.target.sent <- sentRequest{user, c.answered} }

// serving is a target that answers by itself, on other goroutines, as answer says.
type serving struct {
	answer func(user int64) error
	live   sync.WaitGroup
}

func (s *serving) NewClient(answered func(error)) Client { return servingClient{s, answered} }
func (s *serving) Close()                                { s.live.Wait() }

type servingClient struct {
	target   *serving
	answered func(error)
}

func (c servingClient) Send(user int64) {
	c.target.live.Go(func() { c.answered(c.target.answer(user)) })
}

type outcome struct {
	result *Result
	err    error
}

func startLoad(ctx context.Context, d Driver, t Target, l Load) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		r, err := d.Run(ctx, t, l)
		done <- outcome{r, err}
	}()
	return done
}

func TestClosedLoopKeepsItsConcurrencyAndItsCount(t *testing.T) {
	target, now := newHeld(), clock.NewManual()
	done := startLoad(t.Context(), Driver{Clock: now}, target, Load{Users: []int64{7, 8}, Concurrency: 3, Requests: 10})
	var users []int64
	for r := range target.inTurn(3, 10) {
		users = append(users, r.user)
		assert.Empty(t, target.sent, "no more than three are in flight")
		now.Advance(time.Millisecond)
		r.answer(nil)
	}
	out := <-done
	require.NoError(t, out.err)
	assert.Empty(t, target.sent)
	assert.Equal(t, []int64{7, 8, 7, 8, 7, 8, 7, 8, 7, 8}, users, "in turn")
	assert.EqualValues(t, 10, out.result.Answered)
	assert.Equal(t, 10*time.Millisecond, out.result.Elapsed)
	assert.EqualValues(t, 10, out.result.Latency.TotalCount())
	assert.InEpsilon(t, 3*time.Millisecond, out.result.Latency.Max(), 0.001, "two others are answered before")
	assert.InEpsilon(t, 1000, out.result.PerSecond(), 1e-9)
	assert.Zero(t, out.result.Lag)
}

func TestClosedLoopEndsWithItsDuration(t *testing.T) {
	target, now := newHeld(), clock.NewManual()
	done := startLoad(t.Context(), Driver{Clock: now}, target, Load{Users: []int64{1}, Concurrency: 2, Duration: 5 * time.Millisecond})
	for r := range target.inTurn(2, 6) { // the sixth is sent before the end, answered after it
		now.Advance(time.Millisecond)
		r.answer(nil)
	}
	out := <-done
	require.NoError(t, out.err)
	assert.EqualValues(t, 6, out.result.Answered)
}

func TestFailuresAreCountedNotTimed(t *testing.T) {
	broken := errors.New("broken")
	target := &serving{answer: func(user int64) error {
		if user%3 == 0 {
			return broken
		}
		return nil
	}}
	r, err := Driver{}.Run(t.Context(), target, Load{Users: []int64{1, 2, 3}, Concurrency: 16, Requests: 3000})
	target.Close()
	require.NoError(t, err)
	assert.EqualValues(t, 3000, r.Answered)
	assert.EqualValues(t, 1000, r.Errors)
	assert.Equal(t, broken.Error(), r.FirstError)
	assert.EqualValues(t, 2000, r.Latency.TotalCount(), "over all shards")
	assert.InEpsilon(t, 2000/r.Elapsed.Seconds(), r.PerSecond(), 1e-9)
}

func TestRefusalsAreCountedAndTimedApart(t *testing.T) {
	target := &serving{answer: func(user int64) error {
		if user == 2 {
			return fmt.Errorf("OVERLOADED: %w", ErrRefused)
		}
		return nil
	}}
	r, err := Driver{}.Run(t.Context(), target, Load{Users: []int64{1, 2, 3}, Heavy: []int64{2}, Concurrency: 16, Requests: 3000})
	target.Close()
	require.NoError(t, err)
	assert.EqualValues(t, 2000, r.Answered)
	assert.Zero(t, r.Errors)
	assert.EqualValues(t, 1000, r.Refused.Answered)
	assert.EqualValues(t, 1000, r.Refused.Latency.TotalCount())
	assert.Zero(t, r.Heavy.Answered, "a refusal is nothing else")
}

// oversleeper is a clock and a sleep. The sleep takes longer once.
type oversleeper struct {
	*clock.Manual
	sleeps, overslept int
	by                time.Duration
}

func (o *oversleeper) sleep(d time.Duration) {
	if o.sleeps++; o.sleeps == o.overslept {
		d += o.by
	}
	o.Advance(d)
}

// instant is a target that answers inside of Send, which real targets must not do. In this test
// it makes time stand still meanwhile.
type instant struct{ users []int64 }

func (i *instant) NewClient(answered func(error)) Client { return &instantClient{i, answered} }
func (i *instant) Close()                                {}

type instantClient struct {
	target   *instant
	answered func(error)
}

func (c *instantClient) Send(user int64) {
	c.target.users = append(c.target.users, user)
	c.answered(nil)
}

func TestOpenLoopArrivesAtItsRate(t *testing.T) {
	o := &oversleeper{Manual: clock.NewManual()}
	target := new(instant)
	r, err := Driver{Clock: o, Sleep: o.sleep}.Run(t.Context(), target,
		Load{Users: []int64{1, 2, 3}, Concurrency: 1, Rate: 1000, Duration: 10 * time.Millisecond})
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 2, 3, 1, 2, 3, 1, 2, 3, 1}, target.users)
	assert.EqualValues(t, 10, r.Answered)
	assert.Zero(t, r.Latency.Max())
	assert.Zero(t, r.Lag.Max())
	assert.Zero(t, r.Shed)
}

// TestOpenLoopChargesForTheStall: nothing is sent for 5 ms, in which five arrivals are due.
// Each has waited since it was due, even if it is answered as soon as it is sent.
func TestOpenLoopChargesForTheStall(t *testing.T) {
	o := &oversleeper{Manual: clock.NewManual(), overslept: 3, by: 5 * time.Millisecond}
	r, err := Driver{Clock: o, Sleep: o.sleep}.Run(t.Context(), new(instant),
		Load{Users: []int64{1}, Concurrency: 1, Rate: 1000, Requests: 20})
	require.NoError(t, err)
	assert.EqualValues(t, 20, r.Latency.TotalCount())
	var late []int64
	for _, bar := range r.Latency.Distribution() {
		if bar.Count > 0 && bar.To > 0 {
			for range bar.Count {
				late = append(late, time.Duration(bar.To).Round(100*time.Microsecond).Milliseconds())
			}
		}
	}
	assert.Equal(t, []int64{1, 2, 3, 4, 5}, late[len(late)-5:])
	assert.EqualValues(t, r.Latency.Max(), r.Lag.Max(), "all of it is the driver's here, and it says so")
	assert.Equal(t, 19*time.Millisecond, r.Elapsed, "the rate is made up for")
}

// stalling answers nothing until it is released, and answers at once from then on. It belongs
// to the driver's goroutine.
type stalling struct {
	waiting  []func(error)
	most     int
	released bool
}

func (s *stalling) NewClient(answered func(error)) Client { return &stallingClient{s, answered} }
func (s *stalling) Close()                                {}

func (s *stalling) release() {
	s.released = true
	for _, answer := range s.waiting {
		answer(nil)
	}
}

type stallingClient struct {
	target   *stalling
	answered func(error)
}

func (c *stallingClient) Send(int64) {
	if c.target.released {
		c.answered(nil)
		return
	}
	c.target.waiting = append(c.target.waiting, c.answered)
	c.target.most = max(c.target.most, len(c.target.waiting))
}

func TestOpenLoopShedsBeyondItsBound(t *testing.T) {
	for _, bound := range []int{3, readyClients + 3} {
		t.Run(strconv.Itoa(bound), func(t *testing.T) {
			target := new(stalling)
			o := &oversleeper{Manual: clock.NewManual()}
			sleep := func(d time.Duration) {
				o.sleep(d)
				if o.sleeps == bound+5 { // of the arrivals all but two have been
					target.release()
				}
			}
			r, err := Driver{Clock: o, Sleep: sleep}.Run(t.Context(), target,
				Load{Users: []int64{1}, Concurrency: bound, Rate: 1000, Requests: int64(bound) + 7})
			require.NoError(t, err)
			assert.Equal(t, bound, target.most)
			assert.EqualValues(t, bound+2, r.Answered)
			assert.EqualValues(t, 5, r.Shed)
			assert.InEpsilon(t, time.Duration(bound+5)*time.Millisecond, r.Latency.Max(), 0.001, "the first waited from its arrival to the release")
		})
	}
}

func TestCancelEndsALoad(t *testing.T) {
	for name, l := range map[string]Load{
		"Closed": {Users: []int64{1}, Concurrency: 2, Duration: time.Hour},
		"Open":   {Users: []int64{1}, Concurrency: 2, Rate: 1e6, Duration: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			target := newHeld()
			ctx, cancel := context.WithCancel(t.Context())
			done := startLoad(ctx, Driver{}, target, l)
			first, second := <-target.sent, <-target.sent
			cancel()
			first.answer(nil)
			second.answer(nil)
			for answered := 2; ; answered++ {
				select {
				case r := <-target.sent: // was on its way
					r.answer(nil)
				case out := <-done:
					require.NoError(t, out.err)
					assert.EqualValues(t, answered, out.result.Answered)
					return
				}
			}
		})
	}
}

func TestBeginAndEndAreAroundTheRequests(t *testing.T) {
	var events []string
	target := &instant{}
	d := Driver{
		Begin: func() { events = append(events, "begin"); assert.Empty(t, target.users) },
		End:   func() { events = append(events, "end"); assert.Len(t, target.users, 5) },
	}
	_, err := d.Run(t.Context(), target, Load{Users: []int64{1}, Concurrency: 1, Requests: 5})
	require.NoError(t, err)
	assert.Equal(t, []string{"begin", "end"}, events)
}

func TestLoadIsChecked(t *testing.T) {
	sound := Load{Users: []int64{1}, Concurrency: 1, Requests: 1}
	require.NoError(t, sound.Check())
	for name, spoil := range map[string]func(*Load){
		"no users":    func(l *Load) { l.Users = nil },
		"concurrency": func(l *Load) { l.Concurrency = 0 },
		"rate":        func(l *Load) { l.Rate = math.NaN() },
		"duration":    func(l *Load) { l.Requests = 0 },
	} {
		l := sound
		spoil(&l)
		_, err := Driver{}.Run(t.Context(), &instant{}, l)
		assert.ErrorContains(t, err, name)
	}
}

func TestLatenciesBeyondTheHistogramCountAsItsLongest(t *testing.T) {
	h := NewHistogram()
	h.Record(time.Hour)
	h.Record(-time.Second)
	assert.EqualValues(t, 2, h.TotalCount())
	assert.InEpsilon(t, latencyMax, h.Max(), 0.001)
	assert.Zero(t, h.Min())
}

func TestNothingInNoTimeIsNoThroughput(t *testing.T) { assert.Zero(t, (&Result{}).PerSecond()) }

// BenchmarkClosedLoop measures the cost of the driver itself per request. Its target hands each
// request to a goroutine.
func BenchmarkClosedLoop(b *testing.B) {
	target := make(echo, 1)
	defer close(target)
	b.ReportAllocs()
	_, err := Driver{}.Run(b.Context(), target, Load{Users: []int64{1}, Concurrency: 1, Requests: int64(b.N)})
	require.NoError(b, err)
}

// echo answers the requests of its one client.
type echo chan int64

func (e echo) Close()          {}
func (e echo) Send(user int64) { e <- user }
func (e echo) NewClient(answered func(error)) Client {
	go func() {
		for range e {
			answered(nil)
		}
	}()
	return e
}

// TestOpenLoopInRealTime runs with the clock and the sleep that benchmarks use.
func TestOpenLoopInRealTime(t *testing.T) {
	target := &serving{answer: func(int64) error { return nil }}
	r, err := Driver{}.Run(t.Context(), target, Load{Users: []int64{1}, Concurrency: 100, Rate: 2000, Requests: 50})
	target.Close()
	require.NoError(t, err)
	assert.EqualValues(t, 50, r.Answered+r.Shed)
	assert.GreaterOrEqual(t, r.Elapsed, 24*time.Millisecond, "the last arrives 24.5 ms after the first")
	assert.EqualValues(t, r.Answered, r.Lag.TotalCount())
}
