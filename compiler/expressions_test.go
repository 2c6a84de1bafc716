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
	reg, err := registry.Load(os.DirFS("testdata/tables"), "dev")
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

// planOf returns a plan with one node for each text, an expression or a function body in braces.
func planOf(call, option string, texts []string) string {
	var b strings.Builder
	b.WriteString(`import { definePlan, E, Pred } from "@ranking-dsl/runtime";
export default definePlan({ name: "p", build: (ctx) => ctx.fixed_source()
`)
	for _, text := range texts {
		if strings.HasPrefix(text, "{") {
			text = "((): any => " + text + ")()"
		}
		fmt.Fprintf(&b, ".%s({ %s: %s })\n", call, option, text)
	}
	b.WriteString("});\n")
	return b.String()
}

// artifactOf is what the tests read of an artifact.
type artifactOf struct {
	Nodes []struct {
		Params struct {
			Expr string `json:"expr_id"`
			Pred string `json:"pred_id"`
		} `json:"params"`
		Span     string `json:"source_span"`
		ExprSpan string `json:"expr_span"`
	} `json:"nodes"`
	Exprs map[string]map[string]any `json:"expr_table"`
	Preds map[string]map[string]any `json:"pred_table"`
}

// expressions compiles the texts, which must all be good, as vm nodes. It returns their trees.
func expressions(t testing.TB, texts []string) []map[string]any {
	t.Helper()
	return trees(t, planOf("vm", "outKey: Key.score, expr", texts))
}

// predicates is expressions for the predicates of filter nodes.
func predicates(t testing.TB, texts []string) []map[string]any {
	t.Helper()
	return trees(t, planOf("filter", "pred", texts))
}

func trees(t testing.TB, text string) []map[string]any {
	t.Helper()
	answer := compileText(t, text)
	require.Empty(t, answer.Errors, text)
	var a artifactOf
	require.NoError(t, json.Unmarshal(answer.Artifact, &a))
	var all []map[string]any
	for _, n := range a.Nodes[1:] {
		tree := a.Exprs[n.Params.Expr]
		if tree == nil {
			tree = a.Preds[n.Params.Pred]
		}
		require.NotNil(t, tree)
		delete(tree, "source_span")
		all = append(all, tree)
	}
	return all
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
	for name, compile := range map[string]func(testing.TB, []string) []map[string]any{
		"pairs.txt": expressions, "predicates.txt": predicates,
	} {
		path := "testdata/expressions/" + name
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		var texts, wanted []string
		for line := range strings.Lines(string(content)) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case line == "" || line[0] == '#':
			case line[0] == '\t':
				wanted = append(wanted, line[1:])
			default:
				texts = append(texts, line)
			}
		}
		require.Greater(t, len(texts), 60)
		got := compile(t, texts)
		require.Len(t, got, len(texts))
		if *update {
			head, _, _ := strings.Cut(string(content), "\n")
			out := head + "\n\n"
			for i := range texts {
				out += texts[i] + "\n\t" + compact(t, got[i]) + "\n"
			}
			require.NoError(t, os.WriteFile(path, []byte(out), 0o644))
			continue
		}
		require.Len(t, wanted, len(texts))
		for i := range texts {
			assert.Equal(t, wanted[i], compact(t, got[i]), texts[i])
		}
	}
}
