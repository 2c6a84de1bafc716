package compiler

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

var update = flag.Bool("update", false, "write what the compiler does now into testdata")

// testRegistry has the built-in keys and parameters, and some of each further type.
func testRegistry(t testing.TB) *registry.Registry {
	t.Helper()
	reg, err := registry.Load(os.DirFS("testdata/tables"), "dev")
	require.NoError(t, err)
	return reg
}

func testLanguage(t testing.TB) *Language {
	t.Helper()
	return NewLanguage(builtin.Catalog(), testRegistry(t))
}

// compileText compiles a source in this process.
func compileText(t testing.TB, text string) answer {
	t.Helper()
	u := newUnit(testLanguage(t), "plans", Source{Folder: t.TempDir(), File: "a.plan.ts", Text: []byte(text)})
	u.compile()
	return u.answer
}

// planOf returns a plan with one node for each text. A text is an expression, or a function
// body in braces.
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

// artifactOf has the members of an artifact that the tests read.
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

// expressions compiles the texts as vm nodes and returns their trees. All texts must be good.
func expressions(t testing.TB, texts []string) []map[string]any {
	t.Helper()
	return trees(t, planOf("vm", "outKey: Key.score, expr", texts))
}

// predicates does the same for the predicates of filter nodes.
func predicates(t testing.TB, texts []string) []map[string]any {
	t.Helper()
	return trees(t, planOf("filter", "pred", texts))
}

func trees(t testing.TB, text string) []map[string]any {
	t.Helper()
	answer := compileText(t, text)
	require.Empty(t, answer.Errors, text)
	var a artifactOf
	decoder := json.NewDecoder(bytes.NewReader(answer.Artifact))
	decoder.UseNumber() // a double may not hold an integer
	require.NoError(t, decoder.Decode(&a))
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

// An artifact lists the capability of typed expressions if and only if one of its trees needs
// it.
func TestArtifactsListTheCapabilityTheyNeed(t *testing.T) {
	capabilities := func(text string) []string {
		answer := compileText(t, text)
		require.Empty(t, answer.Errors, text)
		var a struct {
			Capabilities []string `json:"capabilities_required"`
		}
		require.NoError(t, json.Unmarshal(answer.Artifact, &a))
		return a.Capabilities
	}
	for _, text := range []string{
		"Key.id * 2", "coalesce(Key.score, null)", "Key.likes + 1", "Key.pinned * 2", "Key.score ?? 0", "P.hour",
	} {
		assert.Empty(t, capabilities(planOf("vm", "outKey: Key.score, expr", []string{text})), text)
	}
	for _, text := range []string{
		"Key.id == 5", "Key.likes > 5", "Key.pinned", `Key.country == "US"`, `Key.country.in(["US"])`, "[1, 2].includes(Key.id)",
		"Key.id > Key.score", "Key.score == null", "regex(Key.country, P.lang)", "Key.score > 1 ? Key.pinned : true",
	} {
		assert.Empty(t, capabilities(planOf("filter", "pred", []string{text})), text)
	}
	for _, text := range []string{"Key.id / 2", "1 + 2 * Math.abs(Key.id)", "now()", "Key.id > 1 ? 2 : 3", "Math.max(1, 2, Key.id)"} {
		assert.Equal(t, []string{expr.Capability}, capabilities(planOf("vm", "outKey: Key.score, expr", []string{text})), text)
	}
	for _, text := range []string{
		"Key.id == Key.likes", "Key.id == 5n", "Key.country == null", "Key.country == Key.title", "Key.tags != null", `P.lang == "en"`,
		`P.lang.in(["en"])`, "Key.id.in([5n])", "P.seen.includes(Key.id)", `!Key.tags.includes("a")`, "Key.id < 2 && Key.id % 2 == 0",
	} {
		assert.Equal(t, []string{expr.Capability}, capabilities(planOf("filter", "pred", []string{text})), text)
	}
}

// The example of each operator in the reference compiles to a tree with that operator.
func TestExamplesOfOperators(t *testing.T) {
	reg, err := registry.Load(os.DirFS("../internal/reference/tables"), "dev")
	require.NoError(t, err)
	language := NewLanguage(builtin.Catalog(), reg)
	for _, o := range expr.Operators() {
		if o.Makes == expr.Null || o.Makes == expr.String {
			continue // null and strings are operands only
		}
		call, option := "vm", "outKey: Key.score, expr"
		if o.Makes == expr.Predicate {
			call, option = "filter", "pred"
		}
		text := planOf(call, option, []string{o.Example})
		u := newUnit(language, "plans", Source{Folder: t.TempDir(), File: "a.plan.ts", Text: []byte(text)})
		u.compile()
		require.Empty(t, u.answer.Errors, o.Example)
		var a struct {
			Exprs map[string]json.RawMessage `json:"expr_table"`
			Preds map[string]json.RawMessage `json:"pred_table"`
		}
		require.NoError(t, json.Unmarshal(u.answer.Artifact, &a))
		tree := strings.Join(strings.Fields(string(a.Exprs["e0"])+string(a.Preds["p0"])), "")
		switch {
		case o.Cmp == "==" && strings.Contains(tree, `"list":["US"]`): // the present tree for a string key and a constant
		case o.Cmp != "":
			assert.Contains(t, tree, `"cmp":"`+o.Cmp+`"`, o.Example)
		default:
			assert.Contains(t, tree, `"op":"`+o.Name+`"`, o.Example)
		}
	}
}
