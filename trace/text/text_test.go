package text

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/trace"
)

var update = flag.Bool("update", false, "write the drawings in testdata anew")

// TestDrawings draws the fixtures of package trace, whose clocks were set by hand.
func TestDrawings(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			require.NoError(t, Write(&out, read(t, file), Options{}))
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), out.String())
		})
	}
}

func read(t *testing.T, file string) *trace.Trace {
	doc, err := os.ReadFile(file)
	require.NoError(t, err)
	tr, err := trace.Decode(doc)
	require.NoError(t, err)
	return tr
}
