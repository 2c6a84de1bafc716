package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/scheduler"
)

const (
	// loadInflight requests are in flight at any time.
	loadInflight = 64
	// recoveryMax bounds the time from the return of Redis to the last failure. On an idle
	// machine it takes a second. On a busy one, failures must at least not go on forever.
	recoveryMax = 20 * time.Second
	// defaultPolicy is for what takes longer than its bounds: both timeouts are 1 s.
	defaultPolicy = ""
	// calm is how long the load goes on without a failure. It is longer than any bound of
	// defaultPolicy and any pause between two attempts to connect. So a failure that is still
	// to come is seen.
	calm = 1500 * time.Millisecond
)

// A load keeps loadInflight requests for concat_plan in flight. Each is for another user, which
// shows whether a reply comes to the wrong request. Any goroutine.
type load struct {
	engine engine
	graph  *plan.Graph
	want   [loadInflight][]row // by user-1; nil: not compared
	stop   chan struct{}
	done   sync.WaitGroup

	mu        sync.Mutex
	changed   sync.Cond
	successes []time.Time
	failures  []failure
	wrong     []string
	requests  []*atomic.Int32 // one for each request: how often it was answered
}

type failure struct {
	at  time.Time
	err error
}

func newLoad(t *testing.T, e engine, g *plan.Graph) *load {
	l := &load{engine: e, graph: g, stop: make(chan struct{})}
	l.changed.L = &l.mu
	for i := range l.want {
		r, _ := run(e, g, int64(i)+1, 0)
		l.want[i] = rows(t, r)
	}
	return l
}

func (l *load) start() {
	for i := range loadInflight {
		l.done.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
					l.request(int64(i) + 1)
				}
			}
		})
	}
}

func (l *load) request(user int64) {
	answers := new(atomic.Int32)
	results := make(chan *scheduler.Result, 2)
	l.engine.Submit(&scheduler.Execution{Graph: l.graph, UserID: user}, func(r *scheduler.Result) {
		answers.Add(1)
		results <- r
	})
	r := <-results
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, answers)
	if r.Err != nil {
		l.failures = append(l.failures, failure{time.Now(), r.Err})
	} else {
		l.successes = append(l.successes, time.Now())
		if want := l.want[user-1]; want != nil && !slices.Equal(want, plainRows(r)) {
			l.wrong = append(l.wrong, fmt.Sprintf("user %d: want %v, got %v", user, want, plainRows(r)))
		}
	}
	l.changed.Broadcast()
}

// await waits until that many more requests have succeeded, and that many more have failed.
func (l *load) await(t *testing.T, successes, failures int) {
	t.Helper()
	late := time.AfterFunc(30*time.Second, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})
	defer late.Stop()
	end := time.Now().Add(30 * time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	successes += len(l.successes)
	failures += len(l.failures)
	for len(l.successes) < successes || len(l.failures) < failures {
		require.True(t, time.Now().Before(end), "%d succeeded, %d failed", len(l.successes), len(l.failures))
		l.changed.Wait()
	}
}

// goOnUntilCalm returns when no request has failed for the time calm. It returns at the latest
// when recoveryMax is over.
func (l *load) goOnUntilCalm(back time.Time) {
	for last := back; time.Since(last) < calm && time.Since(back) < recoveryMax+calm; {
		time.Sleep(calm - time.Since(last)) // the test needs the time to pass
		l.mu.Lock()
		if n := len(l.failures); n > 0 && l.failures[n-1].at.After(last) {
			last = l.failures[n-1].at
		}
		l.mu.Unlock()
	}
}

// recovery returns how long after back it took until requests succeeded and none failed
// any more.
func (l *load) recovery(t *testing.T, back time.Time) time.Duration {
	first := slices.IndexFunc(l.successes, func(at time.Time) bool { return at.After(back) })
	require.NotEqual(t, -1, first, "nothing succeeded after Redis was back")
	well := l.successes[first]
	if n := len(l.failures); n > 0 && l.failures[n-1].at.After(well) {
		well = l.failures[n-1].at
	}
	return well.Sub(back)
}

// control sends commands to a server and is one of its clients.
type control struct {
	t      *testing.T
	client *blocking.Client
}

func newControl(t *testing.T, addr string) control {
	c := blocking.NewClient(clock.NewReal(), resp.Options{Addr: addr, RequestTimeout: 10 * time.Second})
	t.Cleanup(c.Close)
	return control{t, c}
}

func (c control) do(command string) {
	c.t.Helper()
	var b resp.Batch
	b.Cmd(strings.Fields(command)...)
	require.NoError(c.t, c.client.Do(&b, 0, func(r resp.Replies) error { return r.At(0).Err() }))
}

// TestRedisUnderLoad disturbs a redis-server in the middle of a load.
func TestRedisUnderLoad(t *testing.T) {
	for _, tc := range []struct {
		name string
		// disturb returns when Redis is well again. It returns that instant.
		disturb func(t *testing.T, redis *testworld.Redis, ctl control, l *load) time.Time
		policy  string // of the endpoint
		empties bool   // Redis has no data afterwards
		// wantErr: each failure is one of these; none: each request must succeed.
		wantErr []error
		// wantText: at least one failure contains each of these. (Chance decides whether any
		// commands are in flight when a connection ends.)
		wantText []string
		// reconnects is how often the engine must connect again, at least.
		reconnects uint64
	}{
		{
			name:    "kill -9 and restart",
			policy:  longPolicy,
			empties: true,
			disturb: func(t *testing.T, redis *testworld.Redis, ctl control, l *load) time.Time {
				redis.Kill()
				l.await(t, 0, 2*loadInflight)
				redis.Restart(t) // empty
				return time.Now()
			},
			wantErr:  []error{resp.ErrConnectionLost, resp.ErrConnect},
			wantText: []string{"connection refused"},
		},
		{
			name:   "SIGSTOP for 2 s and SIGCONT",
			policy: defaultPolicy,
			disturb: func(t *testing.T, redis *testworld.Redis, ctl control, l *load) time.Time {
				require.NoError(t, redis.Process().Signal(syscall.SIGSTOP))
				time.Sleep(2 * time.Second) // the test needs a server that is away for that time
				require.NoError(t, redis.Process().Signal(syscall.SIGCONT))
				return time.Now()
			},
			wantErr:  []error{resp.ErrTimeout, resp.ErrConnectionLost, resp.ErrConnect},
			wantText: []string{"timeout: no byte within 1s"},
		},
		{
			name:   "CLIENT KILL, five times",
			policy: longPolicy,
			disturb: func(t *testing.T, redis *testworld.Redis, ctl control, l *load) time.Time {
				var back time.Time
				for range 5 {
					l.await(t, 10*loadInflight, 0)
					back = time.Now()
					ctl.do("CLIENT KILL TYPE normal") // all but ctl
				}
				l.await(t, 10*loadInflight, 0)
				return back
			},
			wantErr:    []error{resp.ErrConnectionLost},
			reconnects: 5,
		},
		{
			name:   "CLIENT PAUSE, shorter than the request timeout",
			policy: longPolicy,
			disturb: func(t *testing.T, redis *testworld.Redis, ctl control, l *load) time.Time {
				back := time.Now().Add(300 * time.Millisecond)
				ctl.do("CLIENT PAUSE 300 ALL")
				time.Sleep(time.Until(back)) // as long as Redis was told
				return back
			},
		},
		{
			name:   "CLIENT PAUSE, longer than the request timeout",
			policy: defaultPolicy,
			disturb: func(t *testing.T, redis *testworld.Redis, ctl control, l *load) time.Time {
				back := time.Now().Add(1500 * time.Millisecond)
				ctl.do("CLIENT PAUSE 1500 ALL")
				time.Sleep(time.Until(back)) // as long as Redis was told
				return back
			},
			wantErr:  []error{resp.ErrTimeout},
			wantText: []string{"timeout: no byte within 1s"},
		},
		{
			name:   "maxclients reached",
			policy: longPolicy,
			disturb: func(t *testing.T, redis *testworld.Redis, ctl control, l *load) time.Time {
				ctl.do("CONFIG SET maxclients 1") // which is ctl
				ctl.do("CLIENT KILL TYPE normal")
				l.await(t, 0, 3*loadInflight)
				ctl.do("CONFIG SET maxclients 100")
				return time.Now()
			},
			wantErr:  []error{resp.ErrConnectionLost, resp.ErrConnect},
			wantText: []string{"max number of clients reached"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			redis := testworld.StartRedis(t)
			require.NoError(t, devredis.Load(t.Context(), redis.Addr))
			reg := registryAt(t, redis.Addr, tc.policy)
			e := openAsync(t, scheduler.Config{Registry: reg})
			l := newLoad(t, e, examplePlan(t, reg, "concat_plan"))
			if tc.empties {
				clear(l.want[:])
			}
			ctl := newControl(t, redis.Addr)
			ctl.do("PING") // it must have its connection before there are none left
			l.start()
			l.await(t, 10*loadInflight, 0)
			back := tc.disturb(t, redis, ctl, l)
			l.await(t, loadInflight, 0)
			l.goOnUntilCalm(back)
			close(l.stop)
			l.done.Wait()
			m := e.Metrics()
			assert.GreaterOrEqual(t, m.Redis[0].Reconnects, tc.reconnects)
			e.Close(scheduler.Forever)

			for i, answers := range l.requests {
				require.Equal(t, int32(1), answers.Load(), "answers to request %d", i)
			}
			assert.Empty(t, l.wrong)
			assertFailures(t, l.failures, redis.Addr, tc.wantErr, tc.wantText)
			recovered := l.recovery(t, back)
			assert.LessOrEqual(t, recovered, recoveryMax)
			t.Logf("%d requests succeeded, %d failed; well again %v after Redis was back",
				len(l.successes), len(l.failures), recovered.Round(100*time.Microsecond))
		})
	}
}

func assertFailures(t *testing.T, failures []failure, addr string, wantErr []error, wantText []string) {
	t.Helper()
	said := make(map[string]int)
	for _, f := range failures {
		matches := slices.ContainsFunc(wantErr, func(want error) bool { return errors.Is(f.err, want) })
		require.True(t, matches, "unexpected: %v", f.err)
		require.ErrorIs(t, f.err, errRedis)
		require.ErrorContains(t, f.err, addr)
		_, why, _ := strings.Cut(f.err.Error(), addr+": ")
		said[why]++
	}
	for _, want := range wantText {
		found := false
		for why := range said {
			found = found || strings.Contains(why, want)
		}
		assert.True(t, found, "no failure says %q", want)
	}
	for why, n := range said {
		t.Logf("%6d × %s", n, why)
	}
}
