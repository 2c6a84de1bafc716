package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
)

// heldEngine completes requests when the test says so. Any goroutine.
type heldEngine struct {
	submitted chan heldRequest
}

type heldRequest struct {
	*scheduler.Execution
	done func(*scheduler.Result)
}

func (e *heldEngine) Metrics() scheduler.Metrics { return scheduler.Metrics{} }

func (e *heldEngine) Submit(req *scheduler.Execution, done func(*scheduler.Result)) {
	e.submitted <- heldRequest{req, done}
}

func (e *heldEngine) Close(time.Duration) {}

// succeed completes a request with one candidate: the user.
func (r heldRequest) succeed() {
	r.done(&scheduler.Result{Outputs: []rowset.RowSet{rowset.Dense(&rowset.Batch{IDs: []int64{r.UserID}})}})
}

// heldApp is an app on a held engine whose requests all run some plan.
func heldApp(t *testing.T, maxInflight int) (*app, *heldEngine) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	e := &heldEngine{submitted: make(chan heldRequest, 1000)}
	return &app{
		opts: &options{maxInflight: maxInflight, response: "flat"},
		reg:  reg, plan: &plan.Graph{Name: "held"}, clock: clock.NewManual(), engine: e,
	}, e
}

func requests(n int) string {
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, "{\"user_id\": %d, \"request_id\": \"r%d\"}\n", i+1, i+1)
	}
	return in.String()
}

func TestAnswersComeInInputOrder(t *testing.T) {
	const n = 100
	a, e := heldApp(t, n)
	var held []heldRequest
	var stdout bytes.Buffer
	served := make(chan error, 1)
	go func() { served <- a.serve(context.Background(), strings.NewReader(requests(n)), &stdout) }()
	for range n {
		held = append(held, <-e.submitted)
	}
	for i := range held {
		held[n-1-i].succeed() // the last one first
	}
	require.NoError(t, <-served)
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	require.Len(t, lines, n)
	for i, line := range lines {
		a := decode(t, line)
		assert.Equal(t, fmt.Sprintf("r%d", i+1), a.RequestID)
		assert.EqualValues(t, i+1, a.Candidates[0]["id"])
	}
}

func TestInflightIsBoundedBehindASlowRequest(t *testing.T) {
	const bound, n = 4, 20
	a, e := heldApp(t, bound)
	served := make(chan error, 1)
	go func() { served <- a.serve(context.Background(), strings.NewReader(requests(n)), io.Discard) }()
	slow := <-e.submitted
	var others []heldRequest
	for range bound - 1 {
		others = append(others, <-e.submitted)
	}
	for _, r := range others {
		r.succeed() // complete, but not written: they stand behind the slow one
	}
	select {
	case r := <-e.submitted:
		t.Fatalf("user %d was started beyond the bound", r.UserID)
	default:
	}
	slow.succeed()
	for range n - bound {
		(<-e.submitted).succeed()
	}
	require.NoError(t, <-served)
}

func TestAnAnswerIsNotHeldBack(t *testing.T) {
	a, e := heldApp(t, 8)
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- a.serve(context.Background(), stdin, stdout) }()
	lines := bufio.NewScanner(out)
	for i := range 3 { // a dialogue: the next request comes after the answer
		_, err := fmt.Fprintf(in, "{\"user_id\": %d}\n", i+1)
		require.NoError(t, err)
		(<-e.submitted).succeed()
		require.True(t, lines.Scan())
		assert.EqualValues(t, i+1, decode(t, lines.Text()).Candidates[0]["id"])
	}
	require.NoError(t, in.Close())
	assert.NoError(t, <-served)
}

func TestCancelAnswersWhatIsInFlight(t *testing.T) {
	a, e := heldApp(t, 8)
	stdin, in := io.Pipe()
	defer in.Close() // lets the reader goroutine go
	ctx, cancel := context.WithCancel(context.Background())
	var stdout bytes.Buffer
	served := make(chan error, 1)
	go func() { served <- a.serve(ctx, stdin, &stdout) }()
	_, err := io.WriteString(in, requests(2))
	require.NoError(t, err)
	first, second := <-e.submitted, <-e.submitted
	cancel()
	second.succeed()
	first.succeed()
	require.NoError(t, <-served)
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	require.Len(t, lines, 2)
	assert.Equal(t, "r1", decode(t, lines[0]).RequestID)
	assert.Equal(t, "r2", decode(t, lines[1]).RequestID)
}

func TestCancelWhileIdle(t *testing.T) {
	a, _ := heldApp(t, 1)
	stdin, in := io.Pipe()
	defer in.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout bytes.Buffer
	assert.NoError(t, a.serve(ctx, stdin, &stdout))
	assert.Empty(t, stdout.String())
}

func TestCancelRacesWithReading(t *testing.T) {
	// Whatever was submitted is answered, wherever the cancel falls.
	for range 200 {
		a, e := heldApp(t, 8)
		ctx, cancel := context.WithCancel(context.Background())
		var stdout bytes.Buffer
		served := make(chan error, 1)
		go func() { served <- a.serve(ctx, strings.NewReader(requests(20)), &stdout) }()
		go cancel()
		submitted := 0
		for done := false; !done; {
			select {
			case r := <-e.submitted:
				submitted++
				r.succeed()
			case err := <-served:
				require.NoError(t, err)
				done = true
			}
		}
		assert.Empty(t, e.submitted)
		assert.Equal(t, submitted, strings.Count(stdout.String(), "\n"))
	}
}

func TestBrokenStdoutEndsTheRun(t *testing.T) {
	a, e := heldApp(t, 8)
	stdin, in := io.Pipe()
	defer in.Close() // stdin goes on for ever
	served := make(chan error, 1)
	go func() { served <- a.serve(context.Background(), stdin, brokenWriter{}) }()
	_, err := io.WriteString(in, requests(2))
	require.NoError(t, err)
	(<-e.submitted).succeed()
	(<-e.submitted).succeed()
	err = <-served
	var runtime *runtimeError
	require.ErrorAs(t, err, &runtime)
	assert.ErrorIs(t, err, errBroken)
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestBrokenStdinIsAnswered(t *testing.T) {
	a, e := heldApp(t, 8)
	var stdout bytes.Buffer
	served := make(chan error, 1)
	stdin := io.MultiReader(strings.NewReader(requests(1)), brokenReader{})
	go func() { served <- a.serve(context.Background(), stdin, &stdout) }()
	(<-e.submitted).succeed()
	assert.ErrorIs(t, <-served, errFailed)
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	require.Len(t, lines, 2)
	assert.Contains(t, decode(t, lines[1]).Detail, errBroken.Error())
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func TestRequestsReachTheEngineAsAsked(t *testing.T) {
	a, e := heldApp(t, 8)
	a.opts.trace = true
	var stdout bytes.Buffer
	served := make(chan error, 1)
	stdin := strings.NewReader(`{"user_id": "77", "param_overrides": {"weight": 0.5}, "deadline_ms": 40}` + "\n" + `{"user_id": 1}`)
	go func() { served <- a.serve(context.Background(), stdin, &stdout) }()
	r := <-e.submitted
	assert.Same(t, a.plan, r.Graph)
	assert.EqualValues(t, 77, r.UserID)
	assert.True(t, r.Trace)
	assert.Equal(t, a.clock.Now(), r.Arrived)
	assert.Equal(t, r.Arrived.Add(40*time.Millisecond), r.Deadline)
	weight, ok := r.Params.Float(4)
	assert.True(t, ok)
	assert.Equal(t, 0.5, weight)
	other := <-e.submitted
	assert.Zero(t, other.Deadline)
	_, ok = other.Params.Float(4)
	assert.False(t, ok, "nothing of one request is seen by the next")
	r.done(&scheduler.Result{Err: &scheduler.NodeError{Node: "n5", Op: "core::vm", Err: errors.New("no luck")}})
	other.done(&scheduler.Result{Err: scheduler.ErrShuttingDown})
	assert.ErrorIs(t, <-served, errFailed)
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	require.Len(t, lines, 2)
	first, second := decode(t, lines[0]), decode(t, lines[1])
	assert.Equal(t, []string{errorNode, "no luck", "n5", "core::vm"}, []string{first.Error, first.Detail, first.Node, first.Op})
	assert.Equal(t, errorShuttingDown, second.Error)
	assert.Equal(t, errorRun, failureOf(errBroken).Error)
	for kind, text := range map[error]string{
		scheduler.ErrRequestDeadline:     "Request deadline exceeded",
		scheduler.ErrNodeTimeout:         "Node execution timeout",
		scheduler.ErrDeadlineBeforeStart: "Deadline exceeded before node start",
	} {
		late := &scheduler.TimeoutError{Kind: kind, Elapsed: time.Second, Limit: time.Millisecond}
		assert.Equal(t, request.Failure{Error: text, Detail: late.Error(), Node: "n", Op: "o"},
			failureOf(&scheduler.NodeError{Node: "n", Op: "o", Err: late}))
		assert.Equal(t, request.Failure{Error: text, Detail: late.Error()}, failureOf(late))
	}
}

// TestManyRequestsThroughFewSlots reuses slots over and over, completing on
// other goroutines, for the race detector to see.
func TestManyRequestsThroughFewSlots(t *testing.T) {
	const n = 2000
	a, e := heldApp(t, 7)
	var stdout bytes.Buffer
	served := make(chan error, 1)
	go func() { served <- a.serve(context.Background(), strings.NewReader(requests(n)), &stdout) }()
	var workers sync.WaitGroup
	work := make(chan heldRequest)
	for range 3 {
		workers.Go(func() {
			for r := range work {
				r.succeed()
			}
		})
	}
	for range n {
		work <- <-e.submitted
	}
	close(work)
	workers.Wait()
	require.NoError(t, <-served)
	i := 0
	for line := range strings.Lines(stdout.String()) {
		i++
		require.Equal(t, fmt.Sprintf("r%d", i), decode(t, line).RequestID)
	}
	assert.Equal(t, n, i)
}

// What breaks the grammar and what only a closer look finds are told alike: with the line.
func TestSyntaxErrorsNameTheLine(t *testing.T) {
	o := rankd(t, strings.NewReader("{\"user_id\": 1}\n{\"user_id\": 01}\n{\"user_id\": 1,\n\"a\": \"\\ud800\"}\n"))
	require.Equal(t, exitFailed, o.status, o.stderr)
	answers := o.lines()
	require.Len(t, answers, 3)
	assert.Contains(t, answers[1], "line 2 of the input; expected the end of the number (leading zeros are not allowed)")
	assert.Contains(t, answers[2], "invalid escape sequence at byte offset 21 of the document, line 4 of the input")
}

// lineCounter tells of each line that is written to it, and keeps nothing.
type lineCounter struct{ lines chan struct{} }

func (c lineCounter) Write(p []byte) (int, error) {
	for range bytes.Count(p, []byte("\n")) {
		c.lines <- struct{}{}
	}
	return len(p), nil
}

// TestNoSlotKeepsAResult: when an answer has left, its result is garbage, though the slot has
// seen no other request since; and of the encoded text at most a bounded buffer stays.
func TestNoSlotKeepsAResult(t *testing.T) {
	const slots, rows = 8, 200_000
	a, e := heldApp(t, slots)
	stdin, in := io.Pipe()
	stdout := lineCounter{make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- a.serve(context.Background(), stdin, stdout) }()

	before := liveBytes()
	var results []weak.Pointer[rowset.Batch]
	for i := range slots { // one after the other, so that each slot is used once
		_, err := fmt.Fprintf(in, "{\"user_id\": %d}\n", i+1)
		require.NoError(t, err)
		func() {
			batch := &rowset.Batch{IDs: make([]int64, rows)}
			results = append(results, weak.Make(batch))
			(<-e.submitted).done(&scheduler.Result{Outputs: []rowset.RowSet{rowset.Dense(batch)}})
		}()
		<-stdout.lines
	}
	runtime.GC()
	for i, r := range results {
		assert.Nil(t, r.Value(), "the result of request %d", i)
	}
	_, err := io.WriteString(in, "oops\n") // its answer comes when the last buffer has been let go
	require.NoError(t, err)
	<-stdout.lines
	assert.Less(t, liveBytes()-before, int64(1<<20), "an answer has two megabytes of text, and a result 1.6")
	require.NoError(t, in.Close())
	assert.ErrorIs(t, <-served, errFailed)
}

// liveBytes returns how much memory is reachable.
func liveBytes() int64 {
	runtime.GC()
	runtime.GC() // once more for what pools held on to
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
