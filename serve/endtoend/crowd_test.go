package endtoend

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The crowd of each front, and the memory in which the server bears it.
const (
	idleConnections = 10_000
	slowConnections = 1_000 // one half writes slowly, the other reads slowly
	unread          = 8     // requests whose answers a slow reader leaves alone, but for a byte
	residentMax     = 300 << 20
)

// TestCrowd opens thousands of connections to a front and has the server answer others meanwhile.
func TestCrowd(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	const needed = idleConnections + slowConnections + 500
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)) // Go has raised it as far as it goes
	if limit.Cur < needed {
		missing(t, fmt.Sprintf("the crowd needs %d descriptors, and the limit is %d (ulimit -n)", needed, limit.Cur))
	}
	for i, name := range []string{"RESP", "HTTP"} {
		t.Run(name, func(t *testing.T) {
			server := demo(t, nil, "--max_connections", strconv.Itoa(needed), "--read_timeout_ms", "60000", "--write_timeout_ms", "60000")
			f := frontsOf(server.RESP, server.HTTP)[i]
			before, err := server.Resident()
			require.NoError(t, err)

			idle := f.crowd(t, idleConnections)
			for _, w := range idle { // each has asked once before it falls idle
				require.Empty(t, f.rank(t, w, "simple_viewer", 1, "idle").code)
			}
			afterIdle, err := server.Resident()
			require.NoError(t, err)

			request := f.ask("complex_dag", 1, "slow")
			writers, readers := f.crowd(t, slowConnections/2), f.crowd(t, slowConnections/2)
			for _, w := range readers {
				_, err := w.Write(bytes.Repeat(request, unread))
				require.NoError(t, err)
				_, err = w.in.ReadByte()
				require.NoError(t, err)
				require.NoError(t, w.in.UnreadByte())
			}
			const slowBytes = 20
			for i := range slowBytes { // byte by byte, each writer once in turn
				for _, w := range writers {
					_, err := w.Write(request[i : i+1])
					require.NoError(t, err)
				}
			}

			fresh, err := open(f.addr)
			require.NoError(t, err)
			defer fresh.Close()
			var slowest time.Duration
			for range 100 {
				asked := time.Now()
				require.Empty(t, f.rank(t, fresh, "complex_dag", 1, "fresh").code)
				slowest = max(slowest, time.Since(asked))
			}
			resident, err := server.Resident()
			require.NoError(t, err)
			heap, err := server.Heap(t.Context())
			require.NoError(t, err)
			t.Logf("resident: %d MiB at first, %d MiB with %d idle connections, %d MiB with %d slow ones, too; the slowest of 100 requests beside them took %v; the heap then holds %d MiB",
				before>>20, afterIdle>>20, idleConnections, resident>>20, slowConnections, slowest, heap>>20)
			assert.LessOrEqual(t, resident, int64(residentMax))

			// Nobody has lost a thing.
			for _, w := range writers {
				_, err := w.Write(request[slowBytes:])
				require.NoError(t, err)
			}
			for _, w := range writers {
				r, err := f.read(w)
				require.NoError(t, err)
				require.Equal(t, "slow", decode(t, r.text).RequestID)
			}
			for _, w := range readers {
				for range unread {
					r, err := f.read(w)
					require.NoError(t, err)
					require.Equal(t, "slow", decode(t, r.text).RequestID)
				}
			}
			for _, w := range idle[:100] {
				require.Empty(t, f.rank(t, w, "simple_viewer", 1, "again").code)
			}
		})
	}
}

// crowd opens connections that end with the test.
func (f *front) crowd(t testing.TB, n int) []*wire {
	t.Helper()
	all := make([]*wire, n)
	for i := range all {
		w, err := open(f.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.Close() })
		all[i] = w
	}
	return all
}
