package program

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
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// heldEngine answers requests when the test says so. Any goroutine.
type heldEngine struct {
	*rankd.Engine
	submitted chan heldRequest
}

// heldRequest is a request that has reached the body of its only node.
type heldRequest struct {
	*task.Ctx
	done chan<- outcomeOfBody // has room
}

type outcomeOfBody struct {
	rows rowset.RowSet
	err  error
}

// succeed completes a request with one candidate: the user.
func (r heldRequest) succeed() {
	r.done <- outcomeOfBody{rows: rowset.Dense(&rowset.Batch{IDs: []int64{r.UserID}})}
}

// hold is the body of a task.
func (e *heldEngine) hold(c *task.Ctx) (rowset.RowSet, error) {
	done := make(chan outcomeOfBody, 1)
	e.submitted <- heldRequest{c, done}
	outcome := <-done
	return outcome.rows, outcome.err
}

// held opens an engine that runs that many requests at the same time. It returns the flags that
// let the program have as many in flight.
func held(t *testing.T, inFlight int) (*options, *heldEngine) {
	e := &heldEngine{submitted: make(chan heldRequest, inFlight)}
	var err error
	e.Engine, err = rankd.Open(rankd.Options{
		Env: "test", CPUThreads: inFlight, Tasks: []task.Spec{{Op: "test::hold", Output: task.Source, Run: e.hold}},
		PlanText: []byte(`{"schema_version": 1, "plan_name": "held", "nodes": [{"node_id": "n", "op": "test::hold", "inputs": []}], "outputs": ["n"]}`),
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	return &options{input: inputJSON, maxInflight: inFlight, maxRequestBytes: request.DefaultMaxBytes}, e
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
	o, e := held(t, n)
	inFlight := make(map[int64]heldRequest)
	var stdout bytes.Buffer
	served := make(chan error, 1)
	go func() {
		served <- serve(context.Background(), e.Engine, o, strings.NewReader(requests(n)), &stdout, io.Discard)
	}()
	for range n {
		r := <-e.submitted
		inFlight[r.UserID] = r
	}
	for id := int64(n); id > 0; id-- { // the last one first
		inFlight[id].succeed()
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

func TestInflightIsBoundedAfterASlowRequest(t *testing.T) {
	const bound, n = 4, 20
	o, e := held(t, bound)
	served := make(chan error, 1)
	go func() {
		served <- serve(context.Background(), e.Engine, o, strings.NewReader(requests(n)), io.Discard, io.Discard)
	}()
	var slow heldRequest
	for range bound {
		if r := <-e.submitted; r.UserID == 1 {
			slow = r
		} else {
			r.succeed() // complete, but not written: it waits for the slow one
		}
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
	o, e := held(t, 8)
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- serve(context.Background(), e.Engine, o, stdin, stdout, io.Discard) }()
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
	o, e := held(t, 8)
	stdin, in := io.Pipe()
	defer in.Close() // lets the reader goroutine go
	ctx, cancel := context.WithCancel(context.Background())
	var stdout bytes.Buffer
	served := make(chan error, 1)
	go func() { served <- serve(ctx, e.Engine, o, stdin, &stdout, io.Discard) }()
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
	o, e := held(t, 1)
	stdin, in := io.Pipe()
	defer in.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout bytes.Buffer
	assert.NoError(t, serve(ctx, e.Engine, o, stdin, &stdout, io.Discard))
	assert.Empty(t, stdout.String())
}

func TestCancelRacesWithReading(t *testing.T) {
	// Each submitted request is answered, wherever the cancel falls.
	o, e := held(t, 8)
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		var stdout bytes.Buffer
		served := make(chan error, 1)
		go func() { served <- serve(ctx, e.Engine, o, strings.NewReader(requests(20)), &stdout, io.Discard) }()
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
	o, e := held(t, 8)
	stdin, in := io.Pipe()
	defer in.Close() // stdin is endless
	served := make(chan error, 1)
	go func() { served <- serve(context.Background(), e.Engine, o, stdin, brokenWriter{}, io.Discard) }()
	_, err := io.WriteString(in, requests(2))
	require.NoError(t, err)
	first, second := <-e.submitted, <-e.submitted // before the run ends, which the first answer causes
	first.succeed()
	second.succeed()
	err = <-served
	var runtime *cmdline.RuntimeError
	require.ErrorAs(t, err, &runtime)
	assert.ErrorIs(t, err, errBroken)
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestBrokenStdinIsAnswered(t *testing.T) {
	o, e := held(t, 8)
	var stdout bytes.Buffer
	served := make(chan error, 1)
	stdin := io.MultiReader(strings.NewReader(requests(1)), brokenReader{})
	go func() { served <- serve(context.Background(), e.Engine, o, stdin, &stdout, io.Discard) }()
	(<-e.submitted).succeed()
	assert.ErrorIs(t, <-served, cmdline.ErrFailed)
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	require.Len(t, lines, 2)
	assert.Contains(t, decode(t, lines[1]).Detail, errBroken.Error())
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func TestRequestsReachTheEngineAsAsked(t *testing.T) {
	o, e := held(t, 1)
	o.deltas, o.Response = true, "fields"
	var stdout bytes.Buffer
	served := make(chan error, 1)
	stdin := strings.NewReader(`{"user_id": "77", "param_overrides": {"weight": 0.5}}` + "\n" + `{"user_id": 1, "request_id": "r"}`)
	go func() { served <- serve(context.Background(), e.Engine, o, stdin, &stdout, io.Discard) }()
	first := <-e.submitted
	assert.EqualValues(t, 77, first.UserID)
	weight, ok := first.Params.Float(4)
	assert.True(t, ok)
	assert.Equal(t, 0.5, weight)
	first.succeed()
	second := <-e.submitted
	_, ok = second.Params.Float(4)
	assert.False(t, ok, "a request sees nothing of the one before")
	second.done <- outcomeOfBody{err: errors.New("no luck")}
	assert.ErrorIs(t, <-served, cmdline.ErrFailed)
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0], `"fields":{`)
	assert.Len(t, decode(t, lines[0]).SchemaDeltas, 1)
	failed := decode(t, lines[1])
	assert.Equal(t, []string{"r", "Node execution failed", "no luck", "n", "test::hold"},
		[]string{failed.RequestID, failed.Error, failed.Detail, failed.Node, failed.Op})
}

// TestManyRequestsThroughFewSlots reuses slots over and over. Requests complete on other
// goroutines, for the race detector to see.
func TestManyRequestsThroughFewSlots(t *testing.T) {
	const n = 2000
	o, e := held(t, 7)
	var stdout bytes.Buffer
	served := make(chan error, 1)
	go func() {
		served <- serve(context.Background(), e.Engine, o, strings.NewReader(requests(n)), &stdout, io.Discard)
	}()
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

// Errors of the grammar name the line, and so do errors that a later check finds.
func TestSyntaxErrorsNameTheLine(t *testing.T) {
	o := run(t, strings.NewReader("{\"user_id\": 1}\n{\"user_id\": 01}\n{\"user_id\": 1,\n\"a\": \"\\ud800\"}\n"))
	require.Equal(t, exitFailed, o.status, o.stderr)
	answers := o.lines()
	require.Len(t, answers, 3)
	assert.Contains(t, answers[1], "line 2 of the input; expected the end of the number (leading zeros are not allowed)")
	assert.Contains(t, answers[2], "invalid escape sequence at byte offset 21 of the document, line 4 of the input")
}

// lineCounter reports each line that is written to it, and keeps nothing.
type lineCounter struct{ lines chan struct{} }

func (c lineCounter) Write(p []byte) (int, error) {
	for range bytes.Count(p, []byte("\n")) {
		c.lines <- struct{}{}
	}
	return len(p), nil
}

// TestNoSlotKeepsAResult: when an answer has left, its result is garbage, even if the slot has
// seen no other request since. At most a bounded buffer of the encoded text stays.
func TestNoSlotKeepsAResult(t *testing.T) {
	const slots, rows = 8, 200_000
	o, e := held(t, slots)
	stdin, in := io.Pipe()
	stdout := lineCounter{make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- serve(context.Background(), e.Engine, o, stdin, stdout, io.Discard) }()

	before := servetest.LiveHeap()
	var results []weak.Pointer[rowset.Batch]
	for i := range slots { // one after another, so that each slot is used once
		_, err := fmt.Fprintf(in, "{\"user_id\": %d}\n", i+1)
		require.NoError(t, err)
		func() {
			batch := &rowset.Batch{IDs: make([]int64, rows)}
			results = append(results, weak.Make(batch))
			(<-e.submitted).done <- outcomeOfBody{rows: rowset.Dense(batch)}
		}()
		<-stdout.lines
	}
	runtime.GC()
	for i, r := range results {
		assert.Nil(t, r.Value(), "the result of request %d", i)
	}
	_, err := io.WriteString(in, "oops\n") // its answer comes after the last buffer has been released
	require.NoError(t, err)
	<-stdout.lines
	assert.Less(t, servetest.LiveHeap()-before, int64(1<<20), "an answer has two megabytes of text, and a result 1.6")
	require.NoError(t, in.Close())
	assert.ErrorIs(t, <-served, cmdline.ErrFailed)
}
