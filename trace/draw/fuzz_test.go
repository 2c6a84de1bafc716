package draw

import (
	"encoding/json"
	"io"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/tracetest"
	"github.com/rankd/rankd/trace"
)

// FuzzDraw draws what Decode accepts, in every form. No document makes a drawing panic, or
// makes it endless.
func FuzzDraw(f *testing.F) {
	all := fixtures(f)
	maps.Copy(all, tracetest.Hostile())
	for name, t := range all {
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
		require.NoError(t, Text(io.Discard, Options{Full: true}, Run{Trace: tr}))
		require.NoError(t, HTML(io.Discard, Run{Trace: tr}, Run{Name: "again", Trace: tr}))
		require.NoError(t, Perfetto(io.Discard, Run{Trace: tr}))
	})
}
