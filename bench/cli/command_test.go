package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/internal/devredis"
)

// A library that gnet uses starts two goroutines from init.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// TestEveryEngineServesRounds runs each engine as a worker does, on the embedded Redis.
func TestEveryEngineServesRounds(t *testing.T) {
	redis, err := devredis.Start()
	require.NoError(t, err)
	defer redis.Close()
	artifact, err := fs.ReadFile(demo.Plans(), "concat_plan.plan.json")
	require.NoError(t, err)
	wide, err := engines.WithFanout(artifact, 20)
	require.NoError(t, err)

	for text, most := range map[string]float64{"reactor": 4, "pool": 5, "pool:redis_pool=4,io_threads=8": 5, "sequential": 5} {
		t.Run(text, func(t *testing.T) {
			s, err := engines.ParseSpec(text)
			require.NoError(t, err)
			narrow := worker.Round{
				Setup: worker.Setup{Redis: redis.Addr(), Plan: "concat_plan", Artifact: string(artifact)},
				Load:  load.Load{Users: []int64{1}, Concurrency: 1, Requests: 20},
			}
			// Connections of the first round do not count in the second.
			reports := serve(t, s, narrow, narrow, with(narrow, func(r *worker.Round) { r.Artifact = string(wide) }),
				with(narrow, func(r *worker.Round) { r.Users, r.Concurrency, r.Requests = []int64{1, 2, 3}, 16, 200 }))
			for _, r := range reports {
				assert.Empty(t, r.Failure)
				assert.Zero(t, r.Errors, r.FirstError)
			}
			n := float64(reports[1].Answered)
			trips := float64(reports[1].Traffic.RoundTrips) / n
			assert.LessOrEqual(t, trips, most, "the reactor's two branches share their round trips, as a rule")
			assert.GreaterOrEqual(t, trips, 3.0, "the plan takes one after another")
			assert.Equal(t, 11.0, float64(reports[1].Traffic.Commands)/n, "the viewer, two lists, two times four users")
			assert.Greater(t, reports[2].Traffic.Commands, 3*reports[1].Traffic.Commands, "a wider plan")
			assert.EqualValues(t, 200, reports[3].Answered)
		})
	}
}

func with(r worker.Round, change func(*worker.Round)) worker.Round {
	change(&r)
	return r
}

func serve(t *testing.T, s engines.Spec, rounds ...worker.Round) (reports []worker.Report) {
	var in, out bytes.Buffer
	for _, r := range rounds {
		require.NoError(t, json.NewEncoder(&in).Encode(r))
	}
	require.NoError(t, worker.Serve(&in, &out, opener(s.Options(rankd.Options{}))))
	for d := json.NewDecoder(&out); d.More(); {
		var r worker.Report
		require.NoError(t, d.Decode(&r))
		reports = append(reports, r)
	}
	require.Len(t, reports, len(rounds))
	return reports
}

func TestOpenerErrors(t *testing.T) {
	for want, setup := range map[string]worker.Setup{
		"Redis must be host:port or a URL: host or port is missing":  {Redis: "nowhere"},
		"Redis must be host:port or a URL: host is missing, or port": {Redis: "h:p"},
		"p: ": {Redis: "h:1", Plan: "p", Artifact: "{}"},
	} {
		target, err := opener(rankd.Options{})(setup)
		assert.Nil(t, target)
		assert.ErrorContains(t, err, want)
	}
}

func TestAWorkerRunsOnlyEnginesOfThisProgram(t *testing.T) {
	for _, engine := range []string{"peer:rueidis", "binary:/old/rankd:pool"} {
		p := Program{Stderr: io.Discard}
		cmd := p.workerCommand()
		cmd.SetArgs([]string{"--engine", engine})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		assert.ErrorContains(t, cmd.Execute(), "engine "+engine+" does not run in this process")
	}
}
