package compiler_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
)

// TestBadPlans compiles the plans of testdata/bad.txtar. Each plan except "several" has one
// fault. The exact text of its errors follows it. After a deliberate change: go test ./compiler
// -update.
func TestBadPlans(t *testing.T) {
	archive, files := compiler.BadPlans(t)
	folder := write(t, files)
	sources, err := compiler.Folder(folder)
	require.NoError(t, err)
	require.Greater(t, len(sources), 150)
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
		got := strings.ReplaceAll(strings.Join(texts, "\n")+"\n", folder+"/", "")
		golden := strings.TrimSuffix(r.File, compiler.Extension) + ".txt"
		i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == golden })
		require.GreaterOrEqual(t, i, 0, "%s lacks %s", compiler.BadPlansFile, golden)
		if compiler.Update() {
			archive.Files[i].Data = []byte(got)
			continue
		}
		assert.Equal(t, string(archive.Files[i].Data), got, r.File)
	}
	if compiler.Update() {
		require.NoError(t, os.WriteFile(compiler.BadPlansFile, txtar.Format(archive), 0o644))
	}
}
