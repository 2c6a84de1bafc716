package server

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/process"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/internal/testing/testworld"
)

// soakFor is the length of TestSoak. .ci/long asks for half an hour.
var soakFor = flag.Duration("soak", 12*time.Second, "how long TestSoak runs")

// TestSoak runs polite and rude clients on both fronts. Meanwhile Redis is killed, is stopped,
// and closes its connections. Each request of a polite client gets exactly one answer, in
// order, and its connection stays. Afterwards memory, goroutines and descriptors are what they
// were when the server was warm.
func TestSoak(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	redis := testworld.StartRedis(t)
	require.NoError(t, devredis.Load(t.Context(), redis.Addr))
	build := &programs.plain
	if raceDetector {
		build = &programs.raced
	}
	server := serve(t, build.get(t, raceDetector), []string{"GORACE=halt_on_error=1"}, "--redis", redis.Addr, "--deadline_ms", "2000", "--max_inflight", "32", "--max_queue", "16",
		"--read_timeout_ms", fmt.Sprint(cutAfter.Milliseconds()), "--write_timeout_ms", fmt.Sprint(cutAfter.Milliseconds()))
	s := &soak{redis: redis, fronts: frontsOf(server.RESP, server.HTTP)}

	s.run(t, *soakFor/3)
	warm := lookAfterRest(t, server, nil)
	s.run(t, *soakFor*2/3)
	rested := lookAfterRest(t, server, &warm)
	t.Logf("warm: %v; at the end: %v\n%s", warm, rested, s.counts())

	assert.True(t, rested.flat(&warm), "warm: %v; at the end: %v", warm, rested)
	for i := range s.fronts {
		w, err := dialWire(s.fronts[i].addr)
		require.NoError(t, err)
		require.Empty(t, s.fronts[i].rank(t, w, "complex_dag", 1, "end").code, "all is well again")
		require.NoError(t, w.Close())
		assert.Positive(t, s.answered[s.fronts[i].name+" success"], "some requests succeeded in between")
	}
}

// state is what the server holds while no client sends requests.
type state struct {
	goroutines, heap, resident int64
	descriptors                int
}

// String implements fmt.Stringer.
func (s state) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, heap %d KiB, resident %d KiB", s.goroutines, s.descriptors, s.heap>>10, s.resident>>10)
}

// flat reports whether s is not more than an earlier state. It allows for what settles late:
// connections to Redis, idle workers, and pages that the system has not taken back.
func (s *state) flat(earlier *state) bool {
	return s.goroutines <= earlier.goroutines+20 && s.descriptors <= earlier.descriptors+8 &&
		s.heap <= earlier.heap+earlier.heap/4+4<<20 && s.resident <= earlier.resident+earlier.resident/2+32<<20
}

// lookAfterRest returns the server's state when it has come to rest. The server then has the
// same number of descriptors and goroutines twice in a row. It is also flat compared with the
// earlier state, if there is one. After too long, it returns the last state.
func lookAfterRest(t *testing.T, server *process.Replica, earlier *state) (seen state) {
	t.Helper()
	look := func() (s state) {
		var err error
		s.goroutines, err = server.Goroutines(t.Context())
		require.NoError(t, err)
		s.heap, err = server.Heap(t.Context())
		require.NoError(t, err)
		s.resident, err = server.Resident()
		require.NoError(t, err)
		s.descriptors, err = server.Descriptors()
		require.NoError(t, err)
		return s
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		last := seen
		seen = look()
		if seen.descriptors == last.descriptors && seen.goroutines == last.goroutines && (earlier == nil || seen.flat(earlier)) {
			break
		}
	}
	return seen
}

// soak is the clients and the faults. Any goroutine.
type soak struct {
	redis  *testworld.Redis
	fronts []front

	mu       sync.Mutex
	answered map[string]int // by front, and by success or class
}

func (s *soak) count(f *front, r reply) {
	code := r.code
	if code == "" {
		code = "success"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered == nil {
		s.answered = map[string]int{}
	}
	s.answered[f.name+" "+code]++
}

func (s *soak) counts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.answered)
}

// run runs all clients and the faults for that long. It returns when they have ended and Redis
// is well.
func (s *soak) run(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var live sync.WaitGroup
	for i := range s.fronts {
		f := &s.fronts[i]
		for n := range 6 {
			live.Go(func() { s.polite(ctx, t, f, fmt.Sprintf("polite-%d", n)) })
		}
		for n := range 4 {
			live.Go(func() { s.rude(ctx, t, f, fmt.Sprintf("rude-%d", n)) })
		}
	}
	live.Go(func() { s.faults(ctx, t) })
	live.Wait()
}

// faults harms Redis in one way after another, and leaves it well.
func (s *soak) faults(ctx context.Context, t *testing.T) {
	pause := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		pause(200 * time.Millisecond)
		w, err := dialWire(s.redis.Addr)
		if assert.NoError(t, err) {
			_, err = w.Write(servetest.Command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
			assert.NoError(t, err)
			_ = w.Close()
		}
		pause(200 * time.Millisecond)
		assert.NoError(t, s.redis.Process().Signal(syscall.SIGSTOP))
		pause(300 * time.Millisecond)
		assert.NoError(t, s.redis.Process().Signal(syscall.SIGCONT))
		pause(200 * time.Millisecond)
		s.redis.Kill()
		pause(100 * time.Millisecond)
		assert.NoError(t, s.redis.Again())
		assert.NoError(t, devredis.Load(context.WithoutCancel(ctx), s.redis.Addr))
	}
}

// sound reports whether a reply is allowed for request id.
func sound(t *testing.T, r reply, id string) bool {
	switch r.code {
	case "TIMEOUT", "OVERLOADED", "UNAVAILABLE":
		return true
	case "", "502", "503", "504":
		var a answer
		return assert.NoError(t, json.Unmarshal([]byte(r.text), &a), r.text) && assert.Equal(t, id, a.RequestID)
	default:
		return assert.Fail(t, "unexpected failure", "%s: %s", r.code, r.text)
	}
}

// cutAfter is how long a client of the soak may take for a request, and for reading an answer.
const cutAfter = 2 * time.Second

// depth is the largest number of requests that a client pipelines.
const depth = 8

// soakPlans are the plans that clients ask for: small ones, one that computes, one that sleeps.
var soakPlans = []string{"simple_viewer", "concat_plan", "complex_dag", "reels_plan_a"}

// burst returns requests and their ids.
func (f *front) burst(random *rand.Rand, name string, n int) (requests []byte, ids []string) {
	for range n {
		id := fmt.Sprintf("%s-%d", name, random.Uint64())
		ids = append(ids, id)
		requests = append(requests, f.ask(soakPlans[random.IntN(len(soakPlans))], 1+random.IntN(devredis.Users), id)...)
	}
	return requests, ids
}

// answers reads the replies to a burst.
func (s *soak) answers(t *testing.T, f *front, w *wire, ids []string) bool {
	for i, id := range ids {
		r, err := f.read(w)
		if !assert.NoError(t, err, "%s: answer %d of %d", f.name, i+1, len(ids)) || !sound(t, r, id) {
			return false
		}
		s.count(f, r)
	}
	return assert.Zero(t, w.in.Buffered(), "%s: more than one answer to a request", f.name)
}

// polite sends requests and reads each answer, on one connection that stays.
func (s *soak) polite(ctx context.Context, t *testing.T, f *front, name string) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	w, err := dialWire(f.addr)
	if !assert.NoError(t, err) {
		return
	}
	defer w.Close()
	for ctx.Err() == nil {
		requests, ids := f.burst(random, name, 1+random.IntN(depth))
		if _, err := w.Write(requests); !assert.NoError(t, err, f.name) || !s.answers(t, f, w, ids) {
			return
		}
		if random.IntN(10) == 0 && !s.many(t, f, 1+random.IntN(depth)) {
			return
		}
	}
}

// many sends several users in one command or batch, and reads an answer for each. It uses a new
// connection, because HTTP closes it after a batch.
func (s *soak) many(t *testing.T, f *front, n int) bool {
	w, err := dialWire(f.addr)
	if !assert.NoError(t, err) {
		return false
	}
	defer w.Close()
	_, err = w.Write(f.askMany("simple_viewer", n))
	if !assert.NoError(t, err, f.name) {
		return false
	}
	answers, err := f.readMany(w)
	if !assert.NoError(t, err, f.name) || !assert.Len(t, answers, n, f.name) {
		return false
	}
	for i, r := range answers {
		var a answer
		if f.name == "RESP" && r.code != "" {
			if !sound(t, r, "") {
				return false
			}
		} else if !assert.NoError(t, json.Unmarshal([]byte(r.text), &a), r.text) {
			return false
		}
		if len(a.Candidates) > 0 && !assert.EqualValues(t, i+1, a.Candidates[0]["id"], "%s: in order", f.name) {
			return false
		}
		s.count(f, reply{code: r.code})
	}
	return true
}

// rude behaves badly in one way after another, each time on a new connection.
func (s *soak) rude(ctx context.Context, t *testing.T, f *front, name string) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 2))
	ways := []func(context.Context, *testing.T, *front, *wire, *rand.Rand, string){
		s.halfClose, s.leave, s.reset, s.writeSlowly, s.readSlowly, s.stopHalfway, s.talkNonsense,
	}
	for n := random.IntN(len(ways)); ctx.Err() == nil; n++ {
		w, err := dialWire(f.addr)
		if !assert.NoError(t, err) {
			return
		}
		ways[n%len(ways)](ctx, t, f, w, random, name)
		_ = w.Close()
	}
}

// halfClose sends requests and then closes its side. Each request still gets its answer.
func (s *soak) halfClose(_ context.Context, t *testing.T, f *front, w *wire, random *rand.Rand, name string) {
	requests, ids := f.burst(random, name, 1+random.IntN(depth))
	_, err := w.Write(requests)
	if !assert.NoError(t, err) || !assert.NoError(t, w.Conn.(interface{ CloseWrite() error }).CloseWrite()) {
		return
	}
	s.answers(t, f, w, ids)
	s.drain(t, f, w, nil)
}

// drain reads what is left until the server closes the connection. It accepts one answer to
// each of ids at most, in order.
func (s *soak) drain(t *testing.T, f *front, w *wire, ids []string) {
	for n := 0; ; n++ {
		r, err := f.read(w)
		if err != nil {
			return
		}
		if !assert.Less(t, n, len(ids), "%s: one answer to a request: %s", f.name, r.text) {
			return
		}
		s.count(f, r)
	}
}

// leave goes away without reading.
func (s *soak) leave(_ context.Context, t *testing.T, f *front, w *wire, random *rand.Rand, name string) {
	requests, _ := f.burst(random, name, 1+random.IntN(depth))
	_, err := w.Write(requests)
	assert.NoError(t, err)
}

// reset goes away without closing properly: the server sees a reset.
func (s *soak) reset(ctx context.Context, t *testing.T, f *front, w *wire, random *rand.Rand, name string) {
	s.leave(ctx, t, f, w, random, name)
	assert.NoError(t, w.Conn.(interface{ SetLinger(int) error }).SetLinger(0))
}

// writeSlowly sends a request in pieces. It gets its answer, unless a busy machine has made it
// too slow.
func (s *soak) writeSlowly(_ context.Context, t *testing.T, f *front, w *wire, random *rand.Rand, name string) {
	request, ids := f.burst(random, name, 1)
	const pieces = 10
	began := time.Now()
	for i := range pieces {
		_, _ = w.Write(request[i*len(request)/pieces : (i+1)*len(request)/pieces]) // reading tells
		time.Sleep(5 * time.Millisecond)                                           // this is the pace, not a wait for a condition
	}
	took := time.Since(began)
	if r, err := f.read(w); err == nil && r.code != "408" {
		s.count(f, r)
		sound(t, r, ids[0])
	} else {
		assert.GreaterOrEqual(t, took, cutAfter, "%s: a request that came in time was cut off: %v", f.name, err)
	}
}

// readSlowly sends many requests and reads nothing for a while. Then it gets the answers in
// order, or its connection was cut.
func (s *soak) readSlowly(ctx context.Context, t *testing.T, f *front, w *wire, random *rand.Rand, name string) {
	assert.NoError(t, w.Conn.(interface{ SetReadBuffer(int) error }).SetReadBuffer(4096))
	var ids []string
	for range 20 {
		requests, more := f.burst(random, name, depth)
		_ = w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // the server may stop reading
		if _, err := w.Write(requests); err != nil {
			break
		}
		ids = append(ids, more...)
	}
	select {
	case <-time.After(time.Duration(random.IntN(1000)) * time.Millisecond): // the pace
	case <-ctx.Done():
	}
	for _, id := range ids {
		r, err := f.read(w)
		if err != nil {
			return // cut off
		}
		if !sound(t, r, id) {
			return
		}
		s.count(f, r)
	}
}

// stopHalfway sends half a request and falls silent. The server closes the connection. Over
// HTTP it sends a response first. It answers nothing else.
func (s *soak) stopHalfway(ctx context.Context, t *testing.T, f *front, w *wire, random *rand.Rand, name string) {
	request, _ := f.burst(random, name, 1)
	_, err := w.Write(request[:len(request)/2])
	assert.NoError(t, err)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for {
			r, err := f.read(w)
			if err != nil {
				assert.False(t, os.IsTimeout(err), "%s: the server lets half a request stay", f.name)
				return
			}
			assert.NotEmpty(t, r.code, "half a request has no answer")
		}
	}()
	select {
	case <-closed:
	case <-ctx.Done():
		_ = w.Close()
		<-closed
	}
}

// talkNonsense sends what no client would send. The server says so, or closes the connection.
// It does not wait forever.
func (s *soak) talkNonsense(_ context.Context, t *testing.T, f *front, w *wire, random *rand.Rand, _ string) {
	nonsense := []string{"*99999999\r\n", "*2\r\n$-5\r\n", "*1\r\n$9\r\nNO\r\n\r\n\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "POST /v1/rank HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00"}
	said := nonsense[random.IntN(len(nonsense))]
	_, err := w.Write([]byte(said))
	assert.NoError(t, err)
	_ = w.Conn.(interface{ CloseWrite() error }).CloseWrite() // may be closed
	for {
		r, err := f.read(w)
		if err != nil {
			assert.False(t, os.IsTimeout(err), "%s: the server lets %q stay", f.name, said)
			return
		}
		assert.NotEmpty(t, r.code, "%s: %q has no answer, but got %q", f.name, said, r.text)
	}
}
