package server

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var crowd = flag.Int("crowd", 1_000, "how many idle connections TestCrowd opens; a tenth as many are slow")

// The crowd of each front, and the memory in which the server must hold it.
const (
	unread      = 8 // requests of a slow reader, which reads one byte of their answers
	residentMax = 150 << 20
)

// crowdPlan answers with 100 rows, some 3 KB, and reads no Redis.
const crowdPlan = `{"schema_version": 1, "plan_name": "crowd", "nodes": [
    {"node_id": "rows", "op": "fixed_source", "inputs": [], "params": {"row_count": 100}},
    {"node_id": "score", "op": "vm", "inputs": ["rows"], "params": {"out_key": 2001, "expr_id": "halved"}}
], "outputs": ["score"], "expr_table": {"halved": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 0.5}}}}`

// TestCrowd opens thousands of connections to a front, and has the server answer other clients
// meanwhile.
func TestCrowd(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	idleConnections, slowConnections := *crowd, *crowd/10 // half of the slow ones write slowly, the other half read slowly
	needed := idleConnections + slowConnections + 500
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)) // Go has raised it as far as it can
	if limit.Cur < uint64(needed) {
		missing(t, fmt.Sprintf("the crowd needs %d descriptors, and the limit is %d (ulimit -n)", needed, limit.Cur))
	}
	plans := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(plans, "crowd.plan.json"), []byte(crowdPlan), 0o600))
	for i, name := range []string{"RESP", "HTTP"} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, programs.plain.get(t, false), nil, "--plan_dir", plans, "--env", "test", "--max_connections", strconv.Itoa(needed),
				"--max_queue", strconv.Itoa(unread*slowConnections), // Other tests check overload.
				"--read_timeout_ms", "600000", "--write_timeout_ms", "600000", "--http_idle_timeout_ms", "600000")
			f := frontsOf(server.RESP, server.HTTP)[i]
			before, err := server.Resident()
			require.NoError(t, err)

			idle := f.crowd(t, idleConnections)
			f.askAll(t, idle, f.ask("crowd", 1, "idle")) // each sends a request once before it falls idle
			for _, w := range idle {
				f.expect(t, w, "idle")
			}
			afterIdle, err := server.Resident()
			require.NoError(t, err)

			request := f.ask("crowd", 1, "slow")
			writers, readers := f.crowd(t, slowConnections/2), f.crowd(t, slowConnections/2)
			f.askAll(t, readers, bytes.Repeat(request, unread))
			const slowBytes = 20
			for i := range slowBytes { // byte by byte, one byte from each writer in turn
				for _, w := range writers {
					_, err := w.Write(request[i : i+1])
					require.NoError(t, err)
				}
			}

			fresh, err := dialWire(f.addr)
			require.NoError(t, err)
			defer fresh.Close()
			var slowest time.Duration
			for range 100 {
				asked := time.Now()
				require.Empty(t, f.rank(t, fresh, "crowd", 1, "fresh").code)
				slowest = max(slowest, time.Since(asked))
			}
			resident, err := server.Resident()
			require.NoError(t, err)
			heap, err := server.Heap(t.Context())
			require.NoError(t, err)
			t.Logf("resident: %d MiB at first, %d MiB with %d idle connections, %d MiB with %d slow ones, too; the slowest of 100 other requests took %v; the heap then holds %d MiB",
				before>>20, afterIdle>>20, idleConnections, resident>>20, slowConnections, slowest, heap>>20)
			assert.LessOrEqual(t, resident, int64(residentMax))

			// Every client still gets all of its answers.
			for _, w := range writers {
				_, err := w.Write(request[slowBytes:])
				require.NoError(t, err)
			}
			for _, w := range writers {
				f.expect(t, w, "slow")
			}
			for _, w := range readers {
				for range unread {
					f.expect(t, w, "slow")
				}
			}
			for _, w := range idle[:100] {
				require.Empty(t, f.rank(t, w, "crowd", 1, "again").code)
			}
		})
	}
}

// crowd opens connections that end with the test.
func (f *front) crowd(t testing.TB, n int) []*wire {
	t.Helper()
	all := make([]*wire, n)
	for i := range all {
		w, err := dialWire(f.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.Close() })
		all[i] = w
	}
	return all
}

// askAll sends the same bytes on each connection and waits for the first byte of each answer.
// It takes the connections in groups.
func (f *front) askAll(t testing.TB, all []*wire, request []byte) {
	t.Helper()
	for group := range slices.Chunk(all, 100) {
		for _, w := range group {
			_, err := w.Write(request)
			require.NoError(t, err)
		}
		for _, w := range group {
			_, err := w.in.Peek(1)
			require.NoError(t, err)
		}
	}
}

// expect reads the answer to a request with that id.
func (f *front) expect(t testing.TB, w *wire, id string) {
	t.Helper()
	r, err := f.read(w)
	require.NoError(t, err)
	if !strings.Contains(r.text, `"request_id":"`+id+`"`) { // decoding thousands of answers takes long
		require.Fail(t, "another answer", r.text)
	}
}
