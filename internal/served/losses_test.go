package served

import (
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shortWriter takes half of what it gets, and has no error.
type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) / 2, nil }

// A write that takes less than all loses lines, and is reported so although it has no error.
func TestAShortWriteIsALoss(t *testing.T) {
	var mu sync.Mutex
	var said []error
	l := New(Config{To: shortWriter{}, Report: func(err error) bool {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, err)
		return true
	}})
	l.Put(recordOf(t, "ii", 3))
	require.NoError(t, l.Close(t.Context()))
	assert.Equal(t, Counts{Failed: 1}, l.Counts())
	require.Len(t, said, 1)
	assert.ErrorIs(t, said[0], io.ErrShortWrite)
}
