package trace

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the fixtures anew, in the present JSON form")

// fixture returns a trace of testdata. These are traces as engines record them, with the times
// of the drawings in the original specification. The tests of drawings use them, too.
//
//	mixed_pipeline.reactor  its fourth example: two nodes wait for Redis, four compute, of which two are one job
//	mixed_pipeline.pool     the same request on the two-pool engine: workers block
//	parallel_sleep          two sleeps side by side, two replies in flight on one connection, and a wait for the loop
//	deadline                the second node times out while it waits, so that the third never runs
func fixture(t testing.TB, name string) *Trace {
	doc, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	read, err := Decode(doc)
	require.NoError(t, err)
	return read
}

// The JSON form of a fixture equals its file, including all values that follow from others.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		text, err := json.Marshal(fixture(t, strings.TrimSuffix(filepath.Base(file), ".json")))
		require.NoError(t, err)
		var doc bytes.Buffer
		require.NoError(t, json.Indent(&doc, text, "", " "))
		if *update {
			require.NoError(t, os.WriteFile(file, append(doc.Bytes(), '\n'), 0o644))
		}
		stored, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(stored), doc.String()+"\n", file)
	}
}

// us and ms make instants.
func us(n int) time.Duration { return time.Duration(n) * time.Microsecond }
func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
