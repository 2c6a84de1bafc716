package clock_test

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/loop/clock"
)

// The clock of a thread stands still while the thread waits, and moves while it computes.
func TestThreadCPUCountsWorkAndNotWaits(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	read := clock.NewThreadCPU()
	thread, before := read()
	assert.Positive(t, thread)

	r, w, err := os.Pipe()
	assert.NoError(t, err)
	start, waited := time.Now(), make(chan time.Duration)
	go func() {
		for time.Since(start) < 20*time.Millisecond {
			runtime.Gosched()
		}
		_, _ = w.Write([]byte{0})
		waited <- time.Since(start)
	}()
	_, _ = r.Read(make([]byte, 1))
	wall := <-waited
	same, after := read()
	assert.Equal(t, thread, same)
	assert.Less(t, after-before, wall)

	for used := after; used < after+time.Millisecond; _, used = read() {
	}
	assert.NoError(t, r.Close())
	assert.NoError(t, w.Close())
}

// A reading has the time of the thread that it names, though the goroutine may change threads
// during the reading. Two readings of one thread never go back.
func TestThreadCPUIsOfOneThread(t *testing.T) {
	read := clock.NewThreadCPU()
	var back atomic.Int64
	var all sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			thread, used := read()
			for range 60_000 {
				there, now := read()
				if there == thread && now < used {
					back.Add(1)
				}
				thread, used = there, now
			}
		})
	}
	all.Wait()
	assert.Zero(t, back.Load())
}

func BenchmarkThreadCPU(b *testing.B) {
	read := clock.NewThreadCPU()
	for b.Loop() {
		read()
	}
}
