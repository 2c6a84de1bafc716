package server

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/process"
	"github.com/rankd/rankd/internal/testing/testworld"
)

// A library that the demo data's client uses starts goroutines from init.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "rankd-endtoend-")
	if err != nil {
		panic(err)
	}
	programs.folder = folder
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(status int) {
		_ = os.RemoveAll(folder)
		os.Exit(status)
	}))
}

// programs are the builds of rankd that the tests run.
var programs struct {
	folder string
	plain  build
	raced  build // with the race detector
}

// build is one build of rankd, made when a test first needs it.
type build struct {
	once    sync.Once
	program string
	err     error
}

func (b *build) get(t testing.TB, race bool) string {
	t.Helper()
	b.once.Do(func() { b.program, b.err = process.Build(context.Background(), programs.folder, race) })
	require.NoError(t, b.err)
	return b.program
}

// serve starts a server. The test ends it properly. env is added to its environment.
func serve(t testing.TB, program string, env []string, args ...string) *process.Replica {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := process.StartReplica(ctx, process.ReplicaOptions{Program: program, Args: append(args, "--drain_delay_ms", "0"), Env: env})
	if err != nil {
		cancel()
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		defer cancel()
		ctx, stop := context.WithTimeout(ctx, 20*time.Second)
		defer stop()
		assert.NoError(t, r.Stop(ctx))
	})
	return r
}

// demo starts a server of the example plans on a redis-server with the demo data.
func demo(t testing.TB) *process.Replica {
	t.Helper()
	redis := testworld.StartRedis(t)
	require.NoError(t, devredis.Load(t.Context(), redis.Addr))
	return serve(t, programs.plain.get(t, false), nil, "--redis", redis.Addr)
}

// installed returns the path of a program of others. Without the program it skips the test, or
// fails it if RANKD_REQUIRE_CLIENTS is set.
func installed(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		missing(t, err)
	}
	return path
}

func missing(t testing.TB, why any) {
	t.Helper()
	if os.Getenv("RANKD_REQUIRE_CLIENTS") == "1" {
		t.Fatal("RANKD_REQUIRE_CLIENTS is set, but: ", why)
	}
	t.Skip(why)
}
