package compiler_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
)

// TestBadPlans compiles the plans of testdata/bad. Each has one fault, save "several", and beside
// it the exact text of its errors. After a deliberate change: go test ./compiler -update.
func TestBadPlans(t *testing.T) {
	const folder = "testdata/bad"
	sources, err := compiler.Folder(folder)
	require.NoError(t, err)
	require.Greater(t, len(sources), 40)
	results, err := newCompiler(t).Compile(context.Background(), sources...)
	require.NoError(t, err)
	for _, r := range results {
		assert.Nil(t, r.Artifact, r.File)
		var texts []string
		for _, d := range r.Errors {
			assert.Equal(t, compiler.Error, d.Severity)
			assert.NotEmpty(t, d.Excerpt, "%s: %s", r.File, d.Message)
			assert.NotEmpty(t, d.Hint, "%s: %s", r.File, d.Message)
			texts = append(texts, d.String())
		}
		got := strings.Join(texts, "\n") + "\n"
		golden := strings.TrimSuffix(r.Path(), compiler.Extension) + ".txt"
		if compiler.Update() {
			require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			continue
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, r.File)
	}
}
