package main

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/testworld"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// TestRounds runs rounds as "rankd bench compare" does.
func TestRounds(t *testing.T) {
	server := testworld.StartRedis(t)
	procs := runtime.GOMAXPROCS(0)
	require.NoError(t, devredis.Load(context.Background(), server.Addr))
	setup := worker.Setup{Redis: server.Addr, Plan: "concat_plan"}
	wide, unknown := setup, setup
	wide.Fanout, unknown.Plan = 100, "no_such_plan"
	var in bytes.Buffer
	for _, s := range []worker.Setup{setup, wide, unknown} {
		round := worker.Round{Setup: s, Load: load.Load{Users: []int64{1}, Concurrency: 4, Requests: 100}}
		require.NoError(t, json.NewEncoder(&in).Encode(round))
	}
	rounds := in.String()
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	for _, engine := range []string{"rueidis", "go-redis"} {
		t.Run(engine, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, run(engine, strings.NewReader(rounds), &out))
			reports := json.NewDecoder(&out)
			for _, commands := range []uint64{11, 203} { // of a request, at the plan's fanout and at 100
				var report worker.Report
				require.NoError(t, reports.Decode(&report))
				assert.Empty(t, report.Failure)
				assert.Empty(t, report.FirstError)
				assert.EqualValues(t, 100, report.Answered)
				require.NotNil(t, report.Traffic)
				assert.EqualValues(t, 100*commands, report.Traffic.Commands)
			}
			var report worker.Report
			require.NoError(t, reports.Decode(&report))
			assert.Contains(t, report.Failure, `"no_such_plan"`)
		})
	}
}

func TestUnknownEngine(t *testing.T) {
	assert.ErrorContains(t, run("redigo", strings.NewReader(""), new(bytes.Buffer)), "redigo")
}
