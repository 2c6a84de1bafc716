package fileio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd/internal/fileio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stuck is a writer whose reader takes nothing until it is released.
type stuck struct {
	release chan struct{}
	mu      sync.Mutex
	text    bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// A reader that reads nothing does not delay writers. It delays the end only until the end's
// context is over.
func TestAReaderThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &stuck{release: make(chan struct{})}
		w := fileio.NewWriter(to)
		line := bytes.Repeat([]byte{'x'}, 1<<10)
		written := 0
		for range 5000 {
			n, err := w.Write(line)
			require.NoError(t, err)
			require.Equal(t, len(line), n)
			written++
			synctest.Wait() // The first line leaves the queue before the others come.
		}
		assert.EqualValues(t, 5000-1024-1, w.Dropped(), "one in work, and as many as fit")

		began := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, io.ErrNoProgress)
		defer cancel()
		assert.ErrorIs(t, w.Close(ctx), io.ErrNoProgress)
		assert.Equal(t, time.Second, time.Since(began))
		assert.EqualValues(t, 5000-1, w.Dropped(), "what waits is lost")
		_, err := w.Write(line)
		require.NoError(t, err)
		assert.EqualValues(t, 5000, w.Dropped(), "and so is what comes late")
		close(to.release)
		assert.NoError(t, w.Close(t.Context()))
		assert.Equal(t, len(line), to.text.Len(), "the write that was under way")
	})
}

func TestCloseWritesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &stuck{release: make(chan struct{})}
		w := fileio.NewWriter(to)
		var want bytes.Buffer
		for i := range 100 {
			line := fmt.Appendf(nil, "line %d\n", i)
			want.Write(line)
			_, _ = w.Write(line)
			line[0] = '!' // The writer has a copy.
		}
		time.AfterFunc(time.Second, func() { close(to.release) })
		require.NoError(t, w.Close(t.Context()))
		assert.Equal(t, want.String(), to.text.String())
		assert.Zero(t, w.Dropped()+w.Failures())
		assert.NoError(t, w.Close(t.Context()), "twice")
	})
}

// An item that is larger than the queue passes alone.
func TestTheBoundOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var handled []int
		q := fileio.NewQueue(10, func(n int) { <-goOn; handled = append(handled, n) })
		add := func(n int) bool { return q.Add(n, func() int { return n }) }
		assert.True(t, add(1))
		synctest.Wait() // It is being written, and takes no room.
		assert.True(t, add(11), "it has the queue for itself")
		assert.False(t, add(1))
		goOn <- struct{}{}
		synctest.Wait()
		assert.True(t, add(4))
		assert.True(t, add(6))
		assert.False(t, add(1))
		assert.True(t, add(0))
		close(goOn)
		require.NoError(t, q.Flush(t.Context()))
		assert.Equal(t, []int{1, 11, 4, 6, 0}, handled)
		assert.EqualValues(t, 2, q.Dropped())
		assert.True(t, add(10), "Flush closes nothing")
		require.NoError(t, q.Close(t.Context()))
		assert.False(t, add(1))
	})
}

// disk is a writer that takes a number of bytes, like a disk that fills up.
type disk struct {
	text bytes.Buffer
	room int
}

var errFull = errors.New("no space left on device")

func (d *disk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	d.text.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestADiskThatFillsUp(t *testing.T) {
	d := &disk{room: 7}
	var reports []error
	c := fileio.NewChecked(d, func(err error) { reports = append(reports, err) })
	for _, line := range []string{"one\n", "second\n", "third\n"} {
		_, _ = c.Write([]byte(line))
	}
	assert.Equal(t, []error{errFull}, reports, "at once, and once")
	d.room = 100
	for _, line := range []string{"four\n", "five\n"} {
		n, err := c.Write([]byte(line))
		assert.NoError(t, err)
		assert.Equal(t, 5, n)
	}
	assert.Equal(t, "one\nsec\nfour\nfive\n", d.text.String())
	assert.Equal(t, []error{errFull, nil}, reports)
	assert.EqualValues(t, 2, c.Failures())
	assert.ErrorIs(t, c.Err(), errFull)
}

// TestAQueueGathers: items wait for others, but not for long, and rest comes behind those that were there.
func TestAQueueGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var handled []string
		handle := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			handled = append(handled, what)
		}
		taken := func() []string { // since the last call
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			all := handled
			handled = nil
			return all
		}
		q := fileio.NewGatheringQueue(1000, func(n int) { handle(fmt.Sprint(n)) }, func() { handle("rest") })
		add := func(n, size int) { require.True(t, q.Add(size, func() int { return n })) }
		at := func(want ...string) { require.Equal(t, want, taken()) }
		add(1, 1)
		time.Sleep(9 * time.Millisecond)
		add(2, 1)
		require.Empty(t, taken())
		time.Sleep(time.Millisecond)
		at("1", "2", "rest")

		for range 16 {
			add(3, 1)
		}
		require.Len(t, taken(), 17, "that many do not wait")

		add(4, 501)
		at("4", "rest") // Half of the room is taken.

		began := time.Now()
		add(5, 1)
		require.NoError(t, q.Close(t.Context()))
		at("5", "rest")
		require.Zero(t, time.Since(began), "Close does not wait for others")
	})
}
