package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

func TestPlansAreSound(t *testing.T) {
	catalog, err := task.NewCatalog(builtin.Specs()...)
	require.NoError(t, err)
	plans := map[string]string{holdPlan: holdArtifact}
	for _, s := range isolationScenarios() {
		plans[s.name] = s.plan
	}
	for _, s := range overloadScenarios() {
		if s.artifact != "" {
			plans[s.name] = s.artifact
		}
	}
	reg, err := registry.Default("test")
	require.NoError(t, err)
	for name, text := range plans {
		g, err := plan.Load(name, []byte(text), catalog, reg)
		require.NoError(t, err)
		assert.Equal(t, name, g.Name)
	}
}

func TestUsersOfARound(t *testing.T) {
	s := isolationScenarios()[0]
	users := s.users(5000, 5)
	require.Len(t, users, 5000)
	var at []int
	for i, u := range users {
		if u == s.heavy {
			at = append(at, i)
		} else {
			require.True(t, u >= 1 && u <= smallUsers)
		}
	}
	assert.Equal(t, []int{500, 1500, 2500, 3500, 4500}, at, "evenly spread, none at the beginning")
	assert.NotContains(t, s.users(1000, 0), s.heavy)
	assert.Len(t, slices.DeleteFunc(s.users(10, 5), func(u int64) bool { return u != s.heavy }), 5)
}

// TestIsolation runs three engines that answer as the test says: a sound one, an older build,
// and one that fails.
func TestIsolation(t *testing.T) {
	const capacity = 1000.0
	var order []string
	run := func(engine int, r *worker.Round) (*worker.Report, error) {
		if engine == 2 {
			return &worker.Report{Failure: "no luck"}, nil
		}
		n := int64(1000)
		if r.Rate == 0 {
			assert.Equal(t, inFlight, r.Concurrency)
			return reportOf(time.Second, n, latencies(time.Millisecond)), nil
		}
		assert.Equal(t, capacity/2, r.Rate, "half of the capacity")
		if !slices.Contains(r.Users, rowsUser) {
			assert.EqualValues(t, int(capacity)/2, r.Requests)
			return reportOf(time.Second, 500, latencies(3*time.Microsecond)), nil
		}
		order = append(order, string(rune('a'+engine)))
		assert.EqualValues(t, int(capacity), r.Requests)
		assert.Len(t, r.Users, int(capacity))
		assert.Equal(t, []int64{rowsUser}, r.Heavy)
		assert.Equal(t, "many_rows", r.Plan)
		report := reportOf(2*time.Second, n, latencies(time.Millisecond, 2*time.Millisecond))
		if engine == 0 {
			report.Heavy = &load.Tally{Answered: 5, Errors: 1, FirstError: "too large", Latency: latencies(time.Second)}
		} else {
			report.Errors, report.FirstError, report.Shed = 9, "lost", 2
		}
		return report, nil
	}
	o := isolationOf("many_rows", run, "a", "b", "c")
	o.Rounds, o.Duration, o.Large, o.Share = 2, 2*time.Second, 5, 0.5
	show := o.outlook()
	results, err := o.experiment(&show).Measure(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "b", "a"}, order, "no engine is always the first")

	a, b, c := results[0][0], results[0][1], results[0][2]
	assert.Equal(t, capacity, a.Value("capacity_rps"))
	assert.EqualValues(t, 2000, a.Value("small_answered"))
	assert.Equal(t, [2]float64{10, 2}, [2]float64{a.Value("large_answered"), a.Value("large_errors")})
	assert.InDelta(t, 2000, a.Value("small_p99_us"), 2)
	assert.EqualValues(t, 1000, a.Value("alone_answered"))
	assert.InDelta(t, 3, a.Value("alone_p99_us"), 0.1)
	assert.InDelta(t, 3, a.Value("alone_p99_by_round_us"), 0.1)
	assert.EqualValues(t, 18, b.Value("small_errors"))
	assert.NotContains(t, b.Figures, "large_answered")
	assert.Equal(t, "no luck", c.Failure)

	r := o.report(&show, results)
	assert.True(t, r.Failed)
	var out bytes.Buffer
	require.NoError(t, r.WriteText(&out))
	for _, want := range []string{
		"2 interleaved rounds of 2s, 5 large requests in each", "met          many_rows, a: small requests that failed or were turned away: 0, wanted <= 0",
		"not decided  many_rows, a: p99 of small requests: 2000.9 µs (±∞), wanted <= 5000 µs",
		"not met      many_rows, b: small requests that failed or were turned away: 22, wanted <= 0",
		"many_rows, c: not measured: no luck", "many_rows, a: the first large request that failed: too large", "many_rows, b: the first small request that failed: lost",
	} {
		assert.Contains(t, out.String(), want)
	}
}

// isolationOf measures a scenario on engines that run as the test says.
func isolationOf(scenario string, run func(int, *worker.Round) (*worker.Report, error), engines ...string) *isolation {
	o := new(isolation)
	o.loads = loads{names: []string{scenario}, Rounds: 1, Duration: time.Second, run: run, of: "engine", subjects: engines, round: o.measure}
	o.choose(isolationScenarios())
	o.Large = 1
	return o
}

// With a given rate, every engine has the same load. The benchmark then finds no capacity.
func TestRateInPlaceOfAShare(t *testing.T) {
	o := isolationOf("large_replies", func(_ int, r *worker.Round) (*worker.Report, error) {
		assert.Equal(t, 70.0, r.Rate)
		report := reportOf(time.Second, r.Requests, latencies())
		report.Heavy = &load.Tally{Latency: latencies()}
		return report, nil
	}, "a")
	o.Rate = 70
	show := o.outlook()
	results, err := o.experiment(&show).Measure(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "–", "70"}, isolationTable.Table(results[0]).Body()[0][:3])
	assert.False(t, o.report(&show, results).Failed)
}

// An engine of whose small requests one fails has no capacity.
func TestARequestThatFailsInTheClosedLoop(t *testing.T) {
	o := isolationOf("large_replies", func(int, *worker.Round) (*worker.Report, error) {
		report := reportOf(time.Second, 64, latencies())
		report.Errors, report.FirstError = 1, "no luck"
		return report, nil
	}, "a")
	show := o.outlook()
	results, err := o.experiment(&show).Measure(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "1 of 64 requests failed, the first with: no luck", results[0][0].Failure)
}

var (
	bounded = server{"resp:1", "http:1", 1}
	closing = server{"resp:2", "http:2", 2}
)

// TestOverload runs a server that answers as the test says. Over HTTP it answers late, and
// fails once a round.
func TestOverload(t *testing.T) {
	s := overloadScenarios()[0]
	var fronts []string
	none, answers, late, refusal := latencies(), latencies(time.Millisecond, 2*time.Millisecond), latencies(time.Millisecond, time.Second), latencies(500*time.Microsecond)
	run := func(_ int, r *worker.Round) (*worker.Report, error) {
		assert.Equal(t, r.Concurrency, r.Connections, "a connection for each request in flight")
		switch {
		case r.ServerPID == closing.pid:
			assert.Equal(t, closing.addr(r.Front), r.Server)
			report := reportOf(time.Second, 0, none)
			report.ServerCPU, report.Refused = 3*time.Microsecond, &load.Tally{Answered: 1, Latency: refusal}
			return report, nil
		case r.Rate == 0:
			fronts = append(fronts, r.Front)
			assert.Equal(t, bounded.addr(r.Front), r.Server)
			assert.Equal(t, s.maxInflight, r.Concurrency)
			report := reportOf(time.Second, 1, refusal)
			report.ServerCPU = 7 * time.Microsecond
			return report, nil
		}
		assert.Equal(t, s.deadline, r.Deadline)
		assert.Equal(t, 3.0, r.Rate, "times the capacity")
		assert.Equal(t, s.arrivals, r.Concurrency)
		report := reportOf(2*time.Second, 2, answers)
		report.ServerCPU, report.Shed, report.Refused = time.Second, 5, &load.Tally{Answered: 1, Latency: refusal}
		if r.Front == caller.HTTP {
			report.Answered, report.Errors, report.FirstError = 3, 1, "TIMEOUT"
			report.Latency = late
		}
		return report, nil
	}
	o := overloadOf("busy", run, caller.RESP, caller.HTTP)
	o.Rounds, o.Duration, o.Warmup = 6, 2*time.Second, time.Millisecond
	show := o.outlook()
	results, err := o.experiment(&show).Measure(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"resp", "http", "http", "resp"}, fronts[:4], "no front is always the first")

	resp, http := results[0][0], results[0][1]
	for key, want := range map[string]float64{
		"capacity_rps": 1, "goodput_rps": 1, "goodput_share": 1, "cpu_answer_us": 7, "cpu_refusal_us": 3, "cpu_cores": 0.5,
		"answered": 12, "late": 0, "refused": 6, "errors": 0, "unsent": 30,
	} {
		assert.Equal(t, want, resp.Value(key), key)
	}
	assert.InDelta(t, 500, resp.Value("refusal_p99_us"), 1)
	assert.InDelta(t, 2000, resp.Value("answer_max_us"), 2)
	assert.Equal(t, 0.5, http.Value("goodput_share"), "an answer after its deadline is not good")
	assert.Equal(t, [3]float64{12, 6, 6}, [3]float64{http.Value("answered"), http.Value("late"), http.Value("errors")})

	var out bytes.Buffer
	require.NoError(t, o.report(&show, results).WriteText(&out))
	for _, want := range []string{
		"met          busy, resp: p50 of a refusal: 500", "met          busy, http: p99 of a refusal: 500",
		"met          busy, resp: admitted requests that did not answer within 100ms: 0, wanted <= 0",
		"not met      busy, http: admitted requests that did not answer within 100ms: 12, wanted <= 0",
		"busy, http: the first request that failed: TIMEOUT",
		"resp: goodput 1/s at 3 arrivals/s, 100% of the capacity of 1/s; a refusal takes 3.0 µs of CPU time, an answer 7.0 µs",
	} {
		assert.Contains(t, out.String(), want)
	}
}

// overloadOf measures a scenario on fronts that answer as the test says.
func overloadOf(scenario string, run func(int, *worker.Round) (*worker.Report, error), fronts ...string) *overload {
	o := &overload{Times: 3, server: bounded, full: closing}
	o.loads = loads{names: []string{scenario}, Rounds: 1, Duration: time.Second, run: run, of: "front", fronts: fronts, subjects: fronts, round: o.measure}
	o.choose(overloadScenarios())
	return o
}

func TestPipelinedRequestsShareConnections(t *testing.T) {
	o, s := new(overload), &overloadScenario{pipelined: 16}
	assert.Equal(t, 16, o.base(s, caller.RESP, bounded, 64).Connections)
	assert.Equal(t, 8, o.base(s, caller.RESP, bounded, 8).Connections)
	assert.Equal(t, 64, o.base(s, caller.HTTP, bounded, 64).Connections)
}

// A server that does not do what the measurement assumes causes an error, not a figure.
func TestOverloadRefusesNonsense(t *testing.T) {
	refusing, failing := reportOf(time.Second, 0, latencies()), reportOf(time.Second, 1, latencies())
	refusing.Refused = &load.Tally{Answered: 1, Latency: latencies(time.Microsecond)}
	failing.Errors, failing.FirstError = 1, "TIMEOUT"
	for want, answer := range map[string]func() (*worker.Report, error){
		"no luck": func() (*worker.Report, error) { return nil, errLuck },
		"lost":    func() (*worker.Report, error) { return &worker.Report{Failure: "lost"}, nil },
		"at capacity: 1 of 1 requests failed, the first with: TIMEOUT": func() (*worker.Report, error) { return failing, nil },
		"at capacity: 1 requests were refused":                         func() (*worker.Report, error) { return refusing, nil },
		"the server that refuses all has given 1 answers, and 0 refus": func() (*worker.Report, error) {
			return reportOf(time.Second, 1, latencies(time.Microsecond)), nil
		},
	} {
		o := overloadOf("concat_plan", func(int, *worker.Round) (*worker.Report, error) { return answer() }, caller.RESP)
		show := o.outlook()
		_, err := o.experiment(&show).Measure(t.Context())
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "concat_plan, resp: ")
	}
}

// TestFronts runs callers that answer as the test says: the engine, a front within its bounds,
// one beyond them, and a stranger.
func TestFronts(t *testing.T) {
	rounds := 0
	answers := func(cpu, p50, p99 float64) frontRun {
		return func(_ context.Context, inFlight int) (caller.Seen, time.Duration, error) {
			rounds++
			drift := 10 * float64((rounds-1)/8) // the machine slows down, for all alike
			busy := 5 * float64(inFlight)       // each load has its own figures
			seen := caller.Seen{Requests: 1, PerSecond: 1000 * float64(inFlight), P50: 30 + drift + busy + p50, P99: p99}
			return seen, time.Duration(10+drift+busy+cpu) * time.Microsecond, nil
		}
	}
	o := &fronts{Plan: "p"}
	o.Rounds = 6
	o.call([]frontCaller{
		{name: inProcess, run: answers(0, 0, 400)}, {name: "resp", run: answers(2, 50, 400)}, {name: "http", run: answers(7, 95, 400)}, {name: "ab", run: answers(20, 200, 0)},
	})
	show := o.outlook()
	results, err := o.experiment(&show).Measure(t.Context())
	require.NoError(t, err)
	resp := results[0][1]
	assert.Equal(t, 64_000.0, resp.Value("requests_per_second"))
	assert.Equal(t, 1000.0, resp.Value("requests_per_second_at_one"))
	assert.Equal(t, estimate(2, 2, 2), resp.Figures["cpu_over_us"], "the drift is not in differences within a round")
	assert.Equal(t, estimate(50, 50, 50), resp.Figures["p50_over_us"])
	r := o.report(&show, results)
	var verdicts []string
	for _, v := range r.Verdicts {
		verdicts = append(verdicts, string(v.Outcome()))
	}
	assert.Equal(t, []string{"met", "met", "not met", "not met"}, verdicts)
	assert.Equal(t, "p, resp: CPU a request over in process, 64 in flight: 2.00 µs (2.00–2.00), wanted <= 2.5 µs", strings.TrimPrefix(r.Verdicts[0].String(), "met          "))
	row := r.Sections[0].Tables[0].Body()[3]
	assert.Equal(t, []string{"ab", "64000", "±0%", "–"}, row[:4])
	assert.Equal(t, "+20.0", row[6])

	o.callers[0].run = func(context.Context, int) (caller.Seen, time.Duration, error) { return caller.Seen{}, 0, errLuck }
	_, err = o.experiment(&show).Measure(t.Context())
	assert.EqualError(t, err, "p, in process: 64 in flight: no luck")
}

func TestAWorkerThatEndsIsAnError(t *testing.T) {
	o := isolationOf("large_replies", func(int, *worker.Round) (*worker.Report, error) { return nil, errLuck }, "a")
	show := o.outlook()
	_, err := o.experiment(&show).Measure(t.Context())
	assert.ErrorIs(t, err, errLuck)
}
