package trace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDecodeRefuses(t *testing.T) {
	good, err := json.Marshal(fixture(t, "mixed_pipeline.reactor"))
	require.NoError(t, err)
	for want, doc := range map[string]string{
		"unexpected end of JSON input":                `{"version":1`,
		"version 2, and this program reads version 1": `{"version":2}`,
		"nodes[1].inputs: no node 7":                  strings.Replace(string(good), `"inputs":[0]`, `"inputs":[7]`, 1),
		"inputs form a cycle":                         strings.Replace(string(good), `"inputs":[]`, `"inputs":[5]`, 1),
		"tracks[0].slices: no node 9":                 strings.Replace(string(good), `"kind":"node","node_index":0`, `"kind":"node","node_index":9`, 1),
		"flows[0]: no node 9":                         strings.Replace(string(good), `"kind":"redis","node_index":0`, `"kind":"redis","node_index":9`, 1),
		"the critical path takes":                     strings.Replace(string(good), `"ended_ns":34052000`, `"ended_ns":1`, 1),
	} {
		_, err := Decode([]byte(doc))
		assert.ErrorContains(t, err, "trace: ")
		assert.ErrorContains(t, err, want)
	}
}

// A document that Decode accepts can be evaluated, and reads back the same.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	for _, file := range files {
		doc, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(doc)
	}
	f.Add([]byte(`{"version":1,"nodes":[{"span_id":1,"node_id":"a","place":"loop","parent_node_index":-1,"end_ns":3}],"request":{"ended_ns":3}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		read, err := Decode(doc)
		if err != nil {
			return
		}
		at := time.Duration(0)
		for _, s := range read.Segments() {
			require.Equal(t, at, s.Start)
			at = s.End
		}
		require.Equal(t, max(0, read.Request.Ended), at)
		again, err := read.MarshalJSON()
		require.NoError(t, err)
		reread, err := Decode(again)
		require.NoError(t, err)
		twice, err := reread.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(again), string(twice))
	})
}
