package process

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain lets the test binary be the program rankd.
func TestMain(m *testing.M) {
	if how := os.Getenv("RANKD_TEST_REPLICA"); how != "" {
		standIn(how)
	}
	goleak.VerifyTestMain(m)
}

// standIn logs what "rankd serve" logs, and has an admin port.
func standIn(how string) {
	fmt.Fprintf(os.Stderr, "args: %s\nnot a record\n{\"msg\":\"something\"}\n", strings.Join(os.Args[1:], " "))
	if how == "die" {
		fmt.Fprintln(os.Stderr, "no luck today")
		os.Exit(3)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/debug/pprof/goroutine":
				fmt.Fprint(w, "goroutine profile: total 17\n1 @ 0x1\n")
			case "/debug/pprof/heap":
				fmt.Fprint(w, "heap profile\n# runtime.MemStats\n# Alloc = 5\n# HeapAlloc = 4711\n")
			case "/metrics":
				fmt.Fprint(w, "# HELP m m\nm{a=\"b\"} 2\nm{a=\"c d\"} 3.5\nm_total 9\nn 7\nbad x\n")
			default:
				http.NotFound(w, r)
			}
		}))
	}()
	fmt.Fprintf(os.Stderr, `{"msg":"listening","front":"http","address":"127.0.0.1:1"}
{"msg":"listening","front":"resp","address":"127.0.0.1:2"}
{"msg":"listening","front":"admin","address":"%s"}
{"msg":"ready"}
`, l.Addr())
	for range 1000 {
		fmt.Fprintln(os.Stderr, "more")
	}
	fmt.Fprintln(os.Stderr, "last words")
	for range stop {
		if how == "serve" {
			os.Exit(0)
		}
	}
}

func startReplica(t *testing.T, how string) (*Replica, error) {
	return StartReplica(t.Context(), ReplicaOptions{Program: os.Args[0], Args: []string{"--resp=127.0.0.1:2", "--plan_dir", "p"}, Env: []string{"RANKD_TEST_REPLICA=" + how}})
}

func TestReplica(t *testing.T) {
	r, err := startReplica(t, "serve")
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:1", r.HTTP)
	assert.Equal(t, "127.0.0.1:2", r.RESP)
	goroutines, err := r.Goroutines(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 17, goroutines)
	heap, err := r.Heap(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 4711, heap)
	for name, want := range map[string]float64{"m": 5.5, "n": 7, "m_total": 9, "o": 0} {
		found, err := r.Metric(t.Context(), name)
		require.NoError(t, err)
		assert.Equal(t, want, found, name)
	}
	_, err = r.Metric(t.Context(), "bad")
	assert.ErrorContains(t, err, "metric bad")
	_, err = r.get(t.Context(), "/nowhere")
	assert.ErrorContains(t, err, "404")
	if runtime.GOOS == "linux" {
		resident, err := r.Resident()
		require.NoError(t, err)
		assert.Greater(t, resident, int64(1<<20))
		open, err := r.Descriptors()
		require.NoError(t, err)
		assert.Greater(t, open, 3)
	}
	assert.NoError(t, r.Stop(t.Context()))
	assert.NoError(t, r.Stop(t.Context()), "again")
	assert.Contains(t, r.Log(), "last words")
	assert.LessOrEqual(t, strings.Count(r.Log(), "\n"), logLines)
	_, err = r.Heap(t.Context())
	assert.Error(t, err)
}

func TestArgumentsOfAReplica(t *testing.T) {
	_, err := startReplica(t, "die")
	assert.ErrorContains(t, err, "no luck today")
	assert.ErrorContains(t, err, "args: serve --log json --listen 127.0.0.1:0 --admin 127.0.0.1:0 --resp=127.0.0.1:2 --plan_dir p\n")
	_, err = StartReplica(t.Context(), ReplicaOptions{Program: "/nowhere/rankd"})
	assert.ErrorContains(t, err, "/nowhere/rankd")
}

func TestAReplicaThatDoesNotStop(t *testing.T) {
	r, err := startReplica(t, "deaf")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	assert.ErrorContains(t, r.Stop(ctx), "did not end")
	r.Kill()
	assert.ErrorContains(t, r.Err(), "killed")
}

func TestNumberAfter(t *testing.T) {
	n, err := numberAfter([]byte("VmRSS:\t  123 kB\n"), "VmRSS:")
	require.NoError(t, err)
	assert.EqualValues(t, 123, n)
	for _, text := range []string{"", "VmRSS:", "VmRSS: x"} {
		_, err := numberAfter([]byte(text), "VmRSS:")
		assert.Error(t, err, text)
	}
}

func FuzzPages(f *testing.F) {
	f.Add("m{a=\"b\"} 2\nm 3\n", "m")
	f.Add("VmRSS:\t  123 kB\n", "VmRSS:")
	f.Fuzz(func(t *testing.T, page, name string) {
		if _, err := numberAfter([]byte(page), name); err == nil {
			assert.Contains(t, page, name)
		}
		_, _ = sumSamples([]byte(page), name)
	})
}
