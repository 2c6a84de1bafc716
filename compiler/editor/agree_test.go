package editor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/testing/looptest"
)

func TestMain(m *testing.M) {
	compiler.Main()
	looptest.Main(m)
}

func compile(t *testing.T, sources ...compiler.Source) []compiler.Result {
	t.Helper()
	tasks, reg := catalogAndRegistry(t)
	c, err := compiler.New(compiler.Config{Tasks: tasks, Registry: reg})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	results, err := c.Compile(t.Context(), sources...)
	require.NoError(t, err)
	return results
}

// The compiler accepts the plans that tsc accepts in these tests.
func TestTheCompilerAcceptsGoodPlans(t *testing.T) {
	sources, err := compiler.Folder("testdata/good")
	require.NoError(t, err)
	for _, r := range compile(t, append(sources, compiler.Source{Folder: ".", File: "example.plan.ts"})...) {
		assert.Empty(t, r.Errors, r.Path())
	}
}

// The compiler alone, without tsc, refuses each line that tsc refuses, in the same line.
func TestTheCompilerRefusesBadPlans(t *testing.T) {
	text, err := os.ReadFile("testdata/bad/wrong.plan.ts")
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	var sources []compiler.Source
	var wrong []int
	for i, line := range lines {
		if !strings.Contains(line, "// wrong: ") {
			continue
		}
		alone := make([]string, len(lines)) // the other wrong lines are empty, so that the line numbers stay
		for k, other := range lines {
			if k == i || !strings.Contains(other, "// wrong: ") {
				alone[k] = other
			}
		}
		plan := strings.Replace(strings.Join(alone, "\n"), `"wrong"`, fmt.Sprintf(`"wrong%d"`, i), 1)
		sources = append(sources, compiler.Source{Folder: "testdata/bad", File: fmt.Sprintf("wrong%d.plan.ts", i), Text: []byte(plan)})
		wrong = append(wrong, i)
	}
	require.Greater(t, len(sources), 40)
	for k, r := range compile(t, sources...) {
		if assert.NotEmpty(t, r.Errors, lines[wrong[k]]) {
			assert.Equal(t, wrong[k]+1, r.Errors[0].Line, r.Errors[0].String())
		}
	}
	for _, name := range []string{"nothing", "nameless"} {
		r := compile(t, compiler.SourceFile(filepath.Join("testdata/bad", name+".plan.ts")))
		assert.NotEmpty(t, r[0].Errors, name)
	}
}
