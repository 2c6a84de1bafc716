package trace

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
)

func recorded(t testing.TB, id string) *Recording {
	c := clock.NewReal()
	_, r := playConcat(NewJournals(c, 0), concatPlan(t), c, Full)
	r.RequestID = id
	return r
}

func TestWriterWritesLines(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, nil)
	for _, id := range []string{"a", "b", "c"} {
		w.Take(recorded(t, id))
	}
	dropped, err := w.Close()
	require.NoError(t, err)
	assert.Zero(t, dropped)
	w.Take(recorded(t, "late"))
	dropped, err = w.Close()
	require.NoError(t, err)
	assert.Equal(t, 1, dropped, "what comes after Close")
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 3)
	for i, id := range []string{"a", "b", "c"} {
		read, err := Decode([]byte(lines[i]))
		require.NoError(t, err)
		assert.Equal(t, id, read.RequestID)
	}
}

// slowWriter reports when a write begins, and waits for permission to write.
type slowWriter struct{ begun, goOn chan struct{} }

func (w slowWriter) Write(p []byte) (int, error) {
	w.begun <- struct{}{}
	<-w.goOn
	return len(p), nil
}

// A writer that is too slow loses traces, but never delays those who give them.
func TestWriterDropsWhatComesTooFast(t *testing.T) {
	slow := slowWriter{make(chan struct{}, queueMax+1), make(chan struct{})}
	w := NewWriter(slow, nil)
	r := recorded(t, "r")
	w.Take(r)
	<-slow.begun // The queue is empty, and the goroutine is busy.
	for range queueMax + 10 {
		w.Take(r)
	}
	close(slow.goOn)
	dropped, err := w.Close()
	require.NoError(t, err)
	assert.Equal(t, 10, dropped)
	assert.Len(t, slow.begun, queueMax)
}

type brokenWriter struct{ writes int }

var errBroken = errors.New("broken")

func (w *brokenWriter) Write([]byte) (int, error) {
	w.writes++
	return 0, errBroken
}

func TestWriterReportsTheFirstError(t *testing.T) {
	broken := new(brokenWriter)
	var reports []error
	w := NewWriter(broken, func(err error) { reports = append(reports, err) })
	for range 3 {
		w.Take(recorded(t, "r"))
	}
	_, err := w.Close()
	assert.ErrorIs(t, err, errBroken)
	assert.Equal(t, []error{errBroken}, reports)
	assert.Equal(t, 3, broken.writes, "it goes on: a disk may have room again")
	assert.EqualValues(t, 3, w.Failures())
}

// Shutdown waits for a file that takes nothing, but only as long as its context allows.
func TestWriterShutsDownInTime(t *testing.T) {
	slow := slowWriter{make(chan struct{}, 2), make(chan struct{})}
	w := NewWriter(slow, nil)
	w.Take(recorded(t, "a"))
	<-slow.begun
	w.Take(recorded(t, "b"))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	dropped, err := w.Shutdown(ctx)
	assert.ErrorIs(t, err, errBroken)
	assert.Equal(t, 1, dropped)
	assert.EqualValues(t, 1, w.Dropped())
	close(slow.goOn)
	_, err = w.Close()
	assert.NoError(t, err)
}
