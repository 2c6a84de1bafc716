package scheduler

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// A coroutine never runs at the same time as whoever resumes it.
func TestCoroutineSuspendsAndResumes(t *testing.T) {
	c := newCoroutine()
	defer c.stop()
	var log []string
	ended := c.start(func() {
		log = append(log, "one")
		c.suspend()
		log = append(log, "two")
		c.suspend()
		log = append(log, "three")
	})
	assert.False(t, ended)
	log = append(log, "between")
	assert.False(t, c.resume())
	assert.True(t, c.resume())
	assert.Equal(t, []string{"one", "between", "two", "three"}, log)

	assert.True(t, c.start(func() { log = append(log, "again") }), "a body that never waits ends at once")
	assert.Equal(t, "again", log[len(log)-1])
}

func TestCoroutineStoppedWhileSuspended(t *testing.T) {
	c := newCoroutine()
	var first, second bool
	ended := false
	c.start(func() {
		first = c.suspend()
		second = c.suspend()
		ended = true
	})
	c.stop()
	assert.False(t, first)
	assert.False(t, second, "a stopped coroutine does not wait again")
	assert.True(t, ended, "the body ran to its end")
}

// iter.Pull passes Goexit on to the loop, which resumes the body. So the process ends with an
// error message, not silently.
func TestGoexitInABodyOnTheLoop(t *testing.T) {
	leave := task.Spec{Op: "test::leave", Output: task.Source, Place: task.OnLoop, Run: func(*task.Ctx) (rowset.RowSet, error) {
		runtime.Goexit()
		return rowset.RowSet{}, nil
	}}
	g := graph(t, builtins(t, leave), "x", node("x", "leave", "", "", ""))
	h := looptest.New(t)
	e := NewAsync(AsyncConfig{Loop: h.Loop, CPU: &handCPU{loop: h.Loop}, Config: Config{Registry: testRegistry(t)}})
	e.Submit(&Execution{Graph: g, UserID: 1}, func(*Result) { t.Error("answered") })
	var recovered any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recovered = recover() }()
		h.Settle()
	}()
	<-done
	assert.Equal(t, loop.ErrGoexit, recovered)
}

// BenchmarkCoroutineResume measures one await: the way to the body and back.
func BenchmarkCoroutineResume(b *testing.B) {
	c := newCoroutine()
	defer c.stop()
	stop := false
	c.start(func() {
		for !stop {
			c.suspend()
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		c.resume()
	}
	stop = true
	c.resume()
}

// BenchmarkSuspendedNode measures the memory of a node that waits on the loop, together with
// its request. It reports heap and stacks by the number of nodes that wait at once.
func BenchmarkSuspendedNode(b *testing.B) {
	const nodes = 10_000
	w := newHandWorld(b, 0)
	g := graph(b, builtins(b, loopTask("test::nap", func(c *task.Ctx) (rowset.RowSet, error) { return noRows, c.Sleep(ms(1)) })),
		"x", node("x", "nap", "", "", ""))
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	for b.Loop() {
		before := used()
		for range nodes {
			w.start(&Execution{Graph: g, UserID: 1})
		}
		w.Settle()
		require.Equal(b, nodes, len(w.nodes()))
		b.ReportMetric(float64(used()-before)/nodes, "B/node")
		w.Advance(ms(1))
		require.Zero(b, len(w.nodes()))
	}
}
