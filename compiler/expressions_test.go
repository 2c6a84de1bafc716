package compiler

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

var update = flag.Bool("update", false, "write what the compiler does now into testdata")

func testLanguage(t testing.TB) *Language {
	t.Helper()
	reg, err := registry.Default("dev")
	require.NoError(t, err)
	return NewLanguage(builtin.Catalog(), reg)
}

// compileText compiles a source in this process.
func compileText(t testing.TB, text string) answer {
	t.Helper()
	u := newUnit(testLanguage(t), "plans", Source{Folder: t.TempDir(), File: "a.plan.ts", Text: []byte(text)})
	u.compile()
	return u.answer
}

// planOf returns a plan with an expression, or with a function body in braces, as this option.
func planOf(call, option, text string) string {
	if strings.HasPrefix(text, "{") {
		text = "((): any => " + text + ")()"
	}
	return fmt.Sprintf(`import { definePlan, E, Pred } from "@ranking-dsl/runtime";
export default definePlan({ name: "p", build: (ctx) => ctx.fixed_source().%s({ %s: %s }) });
`, call, option, text)
}

func exprPlan(text string) string { return planOf("vm", "outKey: Key.score, expr", text) }

func predPlan(text string) string { return planOf("filter", "pred", text) }

// treeIn returns the only entry of a table of an artifact, without its span.
func treeIn(t testing.TB, artifact []byte, table string) map[string]any {
	t.Helper()
	var a map[string]map[string]any
	var whole map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(artifact, &whole))
	require.NoError(t, json.Unmarshal(whole[table], &a))
	require.Len(t, a, 1)
	for _, tree := range a {
		require.NotEmpty(t, tree["source_span"])
		delete(tree, "source_span")
		return tree
	}
	return nil
}

// compact writes JSON in one line.
func compact(t testing.TB, v any) string {
	t.Helper()
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(v))
	return strings.TrimSpace(b.String())
}

// TestExpressionPairs compiles each text of the files and compares its IR.
func TestExpressionPairs(t *testing.T) {
	for _, file := range []struct {
		name, table string
		plan        func(string) string
	}{
		{"pairs.txt", "expr_table", exprPlan},
		{"predicates.txt", "pred_table", predPlan},
	} {
		path := "testdata/expressions/" + file.name
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		var out []string
		for i := 0; i < len(lines); i++ {
			out = append(out, lines[i])
			if lines[i] == "" || lines[i][0] == '#' {
				continue
			}
			a := compileText(t, file.plan(lines[i]))
			if !assert.Empty(t, a.Errors, lines[i]) {
				continue
			}
			got := "\t" + compact(t, treeIn(t, a.Artifact, file.table))
			want := ""
			if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\t") {
				i++
				want = lines[i]
			}
			if !*update {
				assert.Equal(t, want, got, lines[i])
			}
			out = append(out, got)
		}
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(strings.Join(out, "\n")+"\n"), 0o644))
		}
	}
}
