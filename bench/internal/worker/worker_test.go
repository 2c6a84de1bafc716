package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/testing/looptest"
)

// TestMain lets the test binary be a worker, for tests that need a process.
func TestMain(m *testing.M) {
	switch os.Getenv("RANKD_TEST_WORKER") {
	case "serve":
		if err := Serve(os.Stdin, os.Stdout, (&fake{}).open); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "die":
		fmt.Fprintln(os.Stderr, "no luck today")
		os.Exit(3)
	}
	looptest.Main(m)
}

// fake is a target that fails every tenth request and reports how many requests it got.
type fake struct {
	events []string
	asked  uint64
	before uint64 // the measured part of a round
}

var errTenth = errors.New("every tenth")

func (f *fake) open(s Setup) (load.Target, error) {
	if s.Plan == "unknown" {
		return nil, errors.New("no such plan")
	}
	f.events = append(f.events, "open "+s.Plan+" on "+s.Redis)
	return f, nil
}

func (f *fake) Close() { f.events = append(f.events, "close") }

func (f *fake) Traffic() load.Traffic {
	return load.Traffic{RoundTrips: 2 * f.asked, Commands: 3 * f.asked, BytesSent: 40 * f.asked, BytesReceived: 50 * f.asked}
}

// BeginFigures and Figures report how many requests came since the warm-up.
func (f *fake) BeginFigures() { f.before = f.asked }

func (f *fake) Figures() any { return map[string]uint64{"asked": f.asked - f.before} }

func (f *fake) NewClient(answered func(error)) load.Client { return &fakeClient{f, answered} }

type fakeClient struct {
	*fake
	answered func(error)
}

func (c *fakeClient) Send(int64) {
	c.asked++
	var err error
	if c.asked%10 == 0 {
		err = errTenth
	}
	go c.answered(err)
}

func round(plan string) Round {
	return Round{
		Setup: Setup{Redis: "r:1", Plan: plan}, Load: load.Load{Users: []int64{1}, Concurrency: 1, Requests: 100},
		Warmup: time.Millisecond,
	}
}

// serve runs rounds through Serve and returns the reports.
func serve(t *testing.T, f *fake, rounds ...Round) (reports []Report) {
	var in, out bytes.Buffer
	for _, r := range rounds {
		require.NoError(t, json.NewEncoder(&in).Encode(r))
	}
	require.NoError(t, Serve(&in, &out, f.open))
	assert.Equal(t, len(rounds), strings.Count(out.String(), "\n"), "one line per round")
	for d := json.NewDecoder(&out); d.More(); {
		var r Report
		require.NoError(t, d.Decode(&r))
		reports = append(reports, r)
	}
	require.Len(t, reports, len(rounds))
	return reports
}

func TestServeReportsWhatWasMeasured(t *testing.T) {
	reports := serve(t, new(fake), round("p"))
	r := reports[0]
	assert.Empty(t, r.Failure)
	assert.EqualValues(t, 100, r.Answered, "without the warm-up")
	assert.EqualValues(t, 10, r.Errors)
	assert.Equal(t, errTenth.Error(), r.FirstError)
	assert.Positive(t, r.Elapsed)
	assert.GreaterOrEqual(t, r.Allocs, uint64(100), "a goroutine's function per request")
	assert.Equal(t, &load.Traffic{RoundTrips: 200, Commands: 300, BytesSent: 4000, BytesReceived: 5000}, r.Traffic)

	assert.EqualValues(t, 90, r.Latency.TotalCount())
	assert.Positive(t, r.Latency.Max())
	assert.Zero(t, r.Lag)
	assert.JSONEq(t, `{"asked": 100}`, string(r.Figures), "without the warm-up, too")
}

func TestServeReportsTheServersCPU(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the processor clocks of Linux")
	}
	r := round("p")
	r.ServerPID = os.Getpid() // this process takes the place of the server
	report := serve(t, new(fake), r)[0]
	assert.Empty(t, report.Failure)
	assert.Positive(t, report.ServerCPU)
	assert.Zero(t, report.RedisCPU)
}

func TestReportsOnTheWire(t *testing.T) {
	tally := load.Tally{Answered: 2, Latency: load.NewHistogram()}
	tally.Latency.Record(time.Microsecond)
	sent := Report{Result: load.Result{Tally: tally, Refused: &tally, Elapsed: time.Second}, Usage: load.Usage{CPU: 3, Allocs: 4}, RedisCPU: 5}
	line, err := json.Marshal(sent)
	require.NoError(t, err)
	var names map[string]any
	require.NoError(t, json.Unmarshal(line, &names))
	assert.ElementsMatch(t, []string{"answered", "errors", "latency", "refused", "elapsed", "cpu", "allocs", "alloc_bytes", "rss_bytes", "redis_cpu"},
		slices.Collect(maps.Keys(names)), "other builds know these names")
	var got Report
	require.NoError(t, json.Unmarshal(line, &got))
	assert.EqualValues(t, 2, got.Refused.Answered)
	assert.EqualValues(t, 1000, got.Refused.Latency.Max())
	assert.Equal(t, sent.Usage, got.Usage)
	assert.ErrorContains(t, json.Unmarshal([]byte(`{"refused": {"latency": "?"}}`), &got), "decode latencies")
}

func TestSound(t *testing.T) {
	sound := serve(t, new(fake), round("p"))[0]
	assert.EqualError(t, sound.Sound(), "10 of 100 requests failed, the first with: every tenth")
	sound.Errors = 0
	assert.NoError(t, sound.Sound())
	sound.Refused = &load.Tally{Answered: 3}
	assert.EqualError(t, sound.Sound(), "3 requests were refused")
	assert.EqualError(t, (&Report{}).Sound(), "no request was answered")
	assert.EqualError(t, (&Report{Failure: "no such plan"}).Sound(), "no such plan")
}

func TestServeKeepsATargetWhileItsSetupStays(t *testing.T) {
	f := new(fake)
	other := round("p")
	other.Redis = "r:2"
	louder := other
	louder.Concurrency = 1
	louder.Rate = 1e5
	again := louder
	again.Serial = 1
	reports := serve(t, f, round("p"), round("p"), other, louder, again)
	assert.Equal(t, []string{"open p on r:1", "close", "open p on r:2", "close", "open p on r:2", "close"}, f.events)
	assert.NotZero(t, reports[3].Lag)
	assert.EqualValues(t, 100, reports[3].Answered+reports[3].Shed)
}

func TestServeGoesOnAfterARoundThatFails(t *testing.T) {
	bad, dead := round("p"), round("p")
	bad.Concurrency = 0
	dead.RedisPID = -1
	reports := serve(t, new(fake), round("unknown"), bad, dead, round("p"))
	assert.Equal(t, "no such plan", reports[0].Failure)
	assert.Contains(t, reports[1].Failure, "concurrency")
	assert.NotEmpty(t, reports[2].Failure)
	assert.Empty(t, reports[3].Failure)
}

func TestServeRefusesWhatIsNotARound(t *testing.T) {
	assert.ErrorContains(t, Serve(strings.NewReader("hello"), io.Discard, (&fake{}).open), "read a round")
	assert.NoError(t, Serve(strings.NewReader(""), io.Discard, (&fake{}).open))
	line, err := json.Marshal(round("p"))
	require.NoError(t, err)
	assert.ErrorContains(t, Serve(bytes.NewReader(line), brokenWriter{}, (&fake{}).open), "write a report")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestProcess(t *testing.T) {
	t.Setenv("RANKD_TEST_WORKER", "serve")
	p, err := Start(t.Context(), "fake", os.Args[0])
	require.NoError(t, err)
	for range 3 {
		r := round("p")
		report, err := p.Run(&r)
		require.NoError(t, err)
		assert.EqualValues(t, 100, report.Answered)
	}
	assert.NoError(t, p.Close())
}

func TestAProcessThatDiesIsQuoted(t *testing.T) {
	t.Setenv("RANKD_TEST_WORKER", "die")
	p, err := Start(t.Context(), "fake", os.Args[0])
	require.NoError(t, err)
	r := round("p")
	_, err = p.Run(&r)
	assert.ErrorContains(t, err, "worker fake")
	assert.ErrorContains(t, p.Close(), "no luck today")
}

func TestAProcessThatIsNotThere(t *testing.T) {
	_, err := Start(t.Context(), "fake", "/nowhere/worker")
	assert.ErrorContains(t, err, "worker fake")
}

func TestTailKeepsTheEnd(t *testing.T) {
	var end tail
	for i := range 10_000 {
		fmt.Fprintln(&end, i)
	}
	assert.LessOrEqual(t, len(end.String()), tailMax)
	assert.True(t, strings.HasSuffix(end.String(), "9998\n9999"))
}
