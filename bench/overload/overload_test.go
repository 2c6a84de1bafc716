package overload

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

func TestPlansAreSound(t *testing.T) {
	catalog, err := task.NewCatalog(builtin.Specs()...)
	require.NoError(t, err)
	reg, err := registry.Default("test")
	require.NoError(t, err)
	artifacts := map[string]string{HoldPlan: HoldArtifact}
	for _, s := range Scenarios() {
		if s.Artifact != "" {
			artifacts[s.Name] = s.Artifact
		}
	}
	for name, text := range artifacts {
		g, err := plan.Load(name, []byte(text), catalog, reg)
		require.NoError(t, err)
		assert.Equal(t, name, g.Name)
	}
}

// encoded returns a histogram on the wire.
func encoded(t testing.TB, latencies ...time.Duration) string {
	h := load.NewHistogram()
	for _, l := range latencies {
		require.NoError(t, h.RecordValue(int64(l)))
	}
	text, err := h.EncodeV2()
	require.NoError(t, err)
	return string(text)
}

var (
	bounded = Server{RESP: "resp:1", HTTP: "http:1", PID: 1}
	closed  = Server{RESP: "resp:2", HTTP: "http:2", PID: 2}
)

// TestMeasure runs a server that answers as told. Over HTTP it answers late, and fails once a round.
func TestMeasure(t *testing.T) {
	s := Scenarios()[0]
	o := Settings{Rounds: 6, Duration: 2 * time.Second, Warmup: time.Millisecond, Times: 3}
	var fronts []string
	none, answers, late, refusal := encoded(t), encoded(t, time.Millisecond, 2*time.Millisecond), encoded(t, time.Millisecond, time.Second), encoded(t, 500*time.Microsecond)
	run := func(r *worker.Round) (*worker.Report, error) {
		assert.Equal(t, r.Concurrency, r.Connections, "a connection for each request in flight")
		switch {
		case r.ServerPID == closed.PID:
			assert.Equal(t, closed.addr(r.Front), r.Server)
			return &worker.Report{Elapsed: time.Second, Latency: none, ServerCPU: 3 * time.Microsecond,
				Refused: &worker.Refusals{Count: 1, Latency: refusal}}, nil
		case r.Rate == 0:
			fronts = append(fronts, r.Front)
			assert.Equal(t, bounded.addr(r.Front), r.Server)
			assert.Equal(t, s.MaxInflight, r.Concurrency)
			return &worker.Report{Elapsed: time.Second, Answered: 1, Latency: refusal, ServerCPU: 7 * time.Microsecond}, nil
		}
		assert.Equal(t, s.Deadline, r.Deadline)
		assert.Equal(t, 3.0, r.Rate, "times the capacity")
		assert.Equal(t, s.Arrivals, r.Concurrency)
		report := &worker.Report{Elapsed: 2 * time.Second, Answered: 2, Latency: answers, ServerCPU: time.Second,
			Refused: &worker.Refusals{Count: 1, Latency: refusal}, Lag: refusal, Shed: 5}
		if r.Front == caller.HTTP {
			report.Answered, report.Errors, report.FirstError = 3, 1, "TIMEOUT"
			report.Latency = late
		}
		return report, nil
	}
	var progress []string
	results, err := Measure(t.Context(), &s, []string{caller.RESP, caller.HTTP}, bounded, closed, o, run, func(line string) { progress = append(progress, line) })
	require.NoError(t, err)
	assert.Equal(t, []string{"resp", "http", "http", "resp"}, fronts[:4], "nobody is always the first")
	assert.Len(t, progress, 12)

	resp, http := results[0], results[1]
	assert.Equal(t, 1.0, resp.Capacity.Median)
	assert.Equal(t, 1.0, resp.Goodput.Median)
	assert.Equal(t, 1.0, resp.Share.Median)
	assert.Equal(t, 0.5, http.Share.Median, "an answer behind its deadline is not good")
	assert.InDelta(t, 500, resp.RefusalP99.Median, 1)
	assert.InDelta(t, 2000, resp.AnswerMax, 2)
	assert.Equal(t, 7.0, resp.CPUAnswer.Median)
	assert.Equal(t, 3.0, resp.CPURefusal.Median)
	assert.Equal(t, 0.5, resp.CPUBusy.Median)
	assert.Equal(t, [5]int64{12, 0, 6, 0, 30}, [5]int64{resp.Answered, resp.Late, resp.Refused, resp.Errors, resp.Unsent})
	assert.Equal(t, [3]int64{12, 6, 6}, [3]int64{http.Answered, http.Late, http.Errors})

	var out bytes.Buffer
	require.NoError(t, WriteText(&out, "head", []Scenario{s}, [][]Result{results}))
	for _, want := range []string{
		"head\n", "met          p50 of a refusal, busy, resp: 500", "met          p99 of a refusal, busy, http: 500",
		"KEPT busy, resp: each of 12 requests that were admitted answered within 100ms",
		"MISSED busy, http: 12 of 18 requests that were admitted did not answer within 100ms",
		"http: the first request that failed: TIMEOUT",
		"resp: goodput 1/s at 3 arrivals/s, 100% of the capacity of 1/s; a refusal takes 3.0 µs of CPU time, an answer 7.0 µs",
	} {
		assert.Contains(t, out.String(), want)
	}
}

func TestPipelinedRequestsShareConnections(t *testing.T) {
	m := measurement{scenario: &Scenario{Pipelined: 16}, front: caller.RESP}
	assert.Equal(t, 16, m.base(bounded, 64).Connections)
	assert.Equal(t, 8, m.base(bounded, 8).Connections)
	m.front = caller.HTTP
	assert.Equal(t, 64, m.base(bounded, 64).Connections)
}

// A server that does not do what the measurement takes for granted is an error, not a figure.
func TestMeasureRefusesNonsense(t *testing.T) {
	s := Scenarios()[1]
	sound := worker.Report{Elapsed: time.Second, Answered: 1}
	refusing := worker.Report{Elapsed: time.Second, Refused: &worker.Refusals{Count: 1}}
	for want, answer := range map[string]func(r *worker.Round) (worker.Report, error){
		"no luck": func(*worker.Round) (worker.Report, error) { return worker.Report{}, errors.New("no luck") },
		"lost":    func(*worker.Round) (worker.Report, error) { return worker.Report{Failure: "lost"}, nil },
		"at capacity: TIMEOUT": func(*worker.Round) (worker.Report, error) {
			return worker.Report{Answered: 1, Errors: 1, FirstError: "TIMEOUT"}, nil
		},
		"at capacity: 0 answers, and 1 refusals":                       func(*worker.Round) (worker.Report, error) { return refusing, nil },
		"the server that refuses all has given 1 answers, and 0 refus": func(*worker.Round) (worker.Report, error) { return sound, nil },
	} {
		_, err := Measure(t.Context(), &s, []string{caller.RESP}, bounded, closed, Settings{Rounds: 1, Duration: time.Second, Times: 3},
			func(r *worker.Round) (*worker.Report, error) {
				report, err := answer(r)
				report.Latency = encoded(t)
				if report.Refused != nil {
					report.Refused = &worker.Refusals{Count: 1, Latency: encoded(t, time.Microsecond)}
				}
				return &report, err
			}, func(string) {})
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "concat_plan, resp: ")
	}
}
