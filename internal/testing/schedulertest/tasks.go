package schedulertest

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// Ample is longer than any test takes. What has Ample as its limit is in time; what has it as
// its duration is late.
const Ample = time.Hour

// Soon is a limit that a test waits for in real time.
const Soon = 10 * time.Millisecond

// NoRows is a result without rows. Immutable.
var NoRows = rowset.Dense(new(rowset.Batch))

// MS returns n milliseconds.
func MS(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// LoopTask returns a source whose body runs on the loop, or blocks in engines without one.
func LoopTask(op string, body task.Body) task.Spec {
	return task.Spec{Op: op, Output: task.Source, Place: task.Waits, Run: body}
}

// SilentRedis returns a registry whose Redis takes connections and never answers, until the test ends.
func SilentRedis(t testing.TB) *registry.Registry {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts: the kernel accepts alone
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return Registry(t).WithRedis(registry.Server{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port})
}

// IDsUpTo returns the ids 1 … n, repeated the given number of times.
func IDsUpTo(n int64, times int) (ids []int64) {
	for range times {
		for id := range n {
			ids = append(ids, id+1)
		}
	}
	return ids
}
