package html

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/caption"
	"github.com/rankd/rankd/trace/perfetto"
	"github.com/rankd/rankd/trace/text"
	"github.com/rankd/rankd/trace/tracetest"
)

// FuzzDraw draws what Decode accepts, in every form: no document makes a drawing panic, or endless.
func FuzzDraw(f *testing.F) {
	files, err := filepath.Glob("../testdata/*.json")
	require.NoError(f, err)
	for _, file := range files {
		doc, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(doc)
	}
	for name, t := range tracetest.Hostile() {
		if name == "large" || name == "chain" || name == "fan" {
			continue
		}
		doc, err := json.Marshal(t)
		require.NoError(f, err)
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		tr, err := trace.Decode(doc)
		if err != nil {
			return
		}
		require.NoError(t, text.Write(io.Discard, tr, text.Options{Full: true}))
		require.NoError(t, Write(io.Discard, caption.Run{Trace: tr}, caption.Run{Name: "again", Trace: tr}))
		require.NoError(t, perfetto.Write(io.Discard, caption.Run{Trace: tr}))
	})
}
