package fileio_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/fileio"
)

// Only so many lines a second are written. The next one says how many were left out.
func TestLinesAreBounded(t *testing.T) {
	var out bytes.Buffer
	now, dropped := time.Unix(1000, 0), 0
	l := fileio.NewLines(slog.New(slog.NewTextHandler(&out, nil)), 3, func() time.Time { return now }, func() { dropped++ })
	put := func() { l.Put(slog.LevelWarn, "m", func() []slog.Attr { return []slog.Attr{slog.Int("a", 1)} }) }
	for range 10 {
		put()
	}
	require.NoError(t, l.Flush(t.Context()))
	assert.Equal(t, 3, strings.Count(out.String(), "level=WARN msg=m a=1\n"))
	assert.Equal(t, 7, dropped)
	now = now.Add(time.Second)
	put()
	require.NoError(t, l.Flush(t.Context()))
	assert.Contains(t, out.String(), "a=1 unlogged=7\n")
}
