package stream

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUnsentFallsWhileAPeerReadsSlowly looks at a write that is under way.
func TestUnsentFallsWhileAPeerReadsSlowly(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	st := &Stream{nc: ours, writing: 3 * writeBytes}
	written := make(chan error, 1)
	go func() { written <- st.writePieces(make([]byte, 3*writeBytes)) }()
	for left := 2 * writeBytes; left >= 0; left -= writeBytes {
		_, err := io.ReadFull(theirs, make([]byte, writeBytes))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return st.Unsent() == left }, time.Minute, time.Millisecond, "a piece has left")
	}
	assert.NoError(t, <-written)
	require.NoError(t, ours.Close())
	assert.Error(t, st.writePieces(make([]byte, 1)))
}
