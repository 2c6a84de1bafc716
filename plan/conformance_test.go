package plan_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
)

// caseFile has those members of a conformance case that these tests need.
type caseFile struct {
	Name string          `json:"name"`
	Kind string          `json:"kind"`
	Tags []string        `json:"tags"`
	Plan json.RawMessage `json:"plan"`
}

// artifact returns the text of the plan's file.
func (c *caseFile) artifact(t testing.TB) []byte {
	var verbatim string
	if c.Plan[0] == '"' {
		require.NoError(t, json.Unmarshal(c.Plan, &verbatim))
		return []byte(verbatim)
	}
	return c.Plan
}

func conformanceCases(t testing.TB) []caseFile {
	t.Helper()
	files, err := filepath.Glob("../internal/acceptance/conformance/cases/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	cases := make([]caseFile, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &cases[i]), file)
	}
	return cases
}

// TestConformance: cases with plan_error are refused, and so are quirks of the original engine.
// Every other plan loads.
func TestConformance(t *testing.T) {
	ops, reg := testOps(), testRegistry(t)
	kinds := make(map[string]int)
	for _, c := range conformanceCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			kinds[c.Kind]++
			file := c.Name + ".plan.json"
			g, err := plan.Load(file, c.artifact(t), ops, reg)
			if c.Kind != "plan_error" && !slices.Contains(c.Tags, "quirk") {
				require.NoError(t, err)
				checkInvariants(t, g)
				return
			}
			var bad *plan.Error
			require.ErrorAs(t, err, &bad)
			assert.Nil(t, g)
			assert.Equal(t, file, bad.File)
			assert.NotContains(t, err.Error(), "\n")
			t.Log(err)
		})
	}
	assert.Positive(t, kinds["plan_error"])
	assert.Positive(t, kinds["ok"])
	assert.Positive(t, kinds["run_error"])
}
