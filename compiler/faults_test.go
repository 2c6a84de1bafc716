package compiler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// A written value has its source in both languages for a random plan. Immutable.
type written struct{ option, field, source, artifact string }

// params are values for the options of the task mix, some of which have faults; beside are
// members of the node.
var params, beside = []written{
	{"share", "share", "0.5", "0.5"},
	{"share", "share", "2", "2"},
	{"share", "share", "-0.5", "-0.5"},
	{"share", "share", `"half"`, `"half"`},
	{"pattern", "pattern", "[1, 9]", "[1, 9]"},
	{"pattern", "pattern", "[1, 10, 2.5]", "[1, 10, 2.5]"},
	{"pattern", "pattern", "[1, 1, 1, 1]", "[1, 1, 1, 1]"},
	{"pattern", "pattern", "7", "7"},
	{"pattern", "pattern", "[null, [1], true]", "[null, [1], true]"},
	{"how", "how", `"fair"`, `"fair"`},
	{"how", "how", `"last"`, `"last"`},
	{"how", "how", "5", "5"},
	{"how", "how", "null", "null"},
	{"seen", "seen", `"seen:{user}"`, `"seen:{user}"`},
	{"seen", "seen", `"seen:{usr}"`, `"seen:{usr}"`},
	{"seen", "seen", `{ a: 1 }`, `{"a": 1}`},
	{"rules", "rules", "[{ pred: true, tops: [1, 0.5] }]", `[{"pred_id": "p0", "tops": [1, 0.5]}]`},
	{"rules", "rules", "[{}, { pred: true, tops: [0, true] }, 1]", `[{}, {"pred_id": "p0", "tops": [0, true]}, 1]`},
	{"rules", "rules", "{}", "{}"},
	{"trace", "trace", "7", "7"},
	{"trace", "trace", `"t"`, `"t"`},
}, []written{
	{"timeoutMs", "timeout_ms", "50", "50"},
	{"timeoutMs", "timeout_ms", "0", "0"},
	{"timeoutMs", "timeout_ms", "1.5", "1.5"},
	{"onError", "on_error", `"empty"`, `"empty"`},
	{"onError", "on_error", `"never"`, `"never"`},
	{"optional", "optional", `"yes"`, `"yes"`},
	{"scheduling", "scheduling", `{ inline: 1 }`, `{"inline": 1}`},
	{"scheduling", "scheduling", `{ costEstimateUs: -1 }`, `{"cost_estimate_us": -1}`},
	{"scheduling", "scheduling", `[]`, `[]`},
}

// TestFaultsOfBothAreReported: the loader's faults come after the compiler's own. Faults that
// follow from the compiler's own are left out. Nodes that no output needs are also checked.
func TestFaultsOfBothAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"both":                   {`return ctx.fixed_source({ rowCount: -1 }).take({ count: 0 }).nothing();`, []string{`a candidate set has no method "nothing"`, "rowCount must be", "count must be"}},
		"broken":                 {`return ctx.fixed_source().sort({ by: Key.nothing }).take({ count: Key.nobody });`, []string{`Key has no "nothing"`, `Key has no "nobody"`}},
		"broken input":           {`return ctx.fixed_source().concat({ rhs: ctx.nothing() });`, []string{`the context has no method "nothing"`}},
		"misspelled":             {`return ctx.fixed_source().take({ cuont: 1 });`, []string{`take has no option "cuont"`}},
		"misspelled, faults":     {`return ctx.fixed_source().sort({ bye: Key.id, order: "down" });`, []string{`sort has no option "bye"`, "order must be"}},
		"no object":              {`return ctx.fixed_source().take(5);`, []string{"take takes an object of options, not 5"}},
		"an exception":           {`ctx.fixed_source({ rowCount: true }); throw new Error("no");`, []string{"plan code failed: no", "rowCount must be"}},
		"not needed":             {`ctx.fixed_source({ rowCount: true }); return ctx.fixed_source();`, []string{"rowCount must be"}},
		"not needed, whole plan": {`ctx.fixed_source({}).take({ count: 1, optional: true }); return ctx.fixed_source();`, nil},
		"a loop":                 {`for (let i = 0; i < 200; i++) ctx.fixed_source({ rowCount: -1 - i }); return ctx.fixed_source();`, []string{"rowCount must be"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := one(t, newCompiler(t), map[string]string{"a.plan.ts": bodied("a", c.body)})
			require.Len(t, r.Errors, len(c.want), "%v", r.Errors)
			for i, want := range c.want {
				assert.Contains(t, r.Errors[i].Message, want)
				assert.NotEmpty(t, r.Errors[i].Excerpt)
			}
			assert.Equal(t, len(c.want) == 0, r.Artifact != nil)
		})
	}
}

// TestSameFaultsInBothLanguages writes random plans with random faults in TypeScript and as
// artifacts. Both have the same faults in the same order. These are the faults of the shape or,
// if there are none, of the content. The compiler reports a fault in the line of its node.
func TestSameFaultsInBothLanguages(t *testing.T) {
	catalog, err := task.NewCatalog(append(builtin.Specs(), mixing())...)
	require.NoError(t, err)
	const plans, count = 60, 12
	inSource := strings.NewReplacer("the integer ", "", "the number ", "", "timeout_ms", "timeoutMs", "on_error", "onError",
		"cost_estimate_us", "costEstimateUs", "pred_id", "pred", "an id in pred_table", "a predicate", `{"fallback": node id}`, "a candidate set")
	files, want := make(map[string]string), make(map[string][]string)
	faults := 0
	for seed := range uint64(plans) {
		random := rand.New(rand.NewPCG(seed, 1))
		name := fmt.Sprintf("p%02d", seed)
		body := "const s = ctx.fixed_source(); return s"
		nodes := []string{`{"node_id": "n0", "op": "test::fixed_source", "inputs": [], "params": {}}`}
		for i := 1; i <= count; i++ {
			inParams, inNode, options := pick(random, params, 3), []string(nil), []string(nil)
			if seed%3 == 0 { // or faults of the shape would hide all others
				for _, w := range pick(random, beside, 1) {
					inNode, options = append(inNode, fmt.Sprintf(`, %q: %s`, w.field, w.artifact)), append(options, w.option+": "+w.source)
				}
			}
			var all []string
			for _, w := range inParams {
				all, options = append(all, fmt.Sprintf("%q: %s", w.field, w.artifact)), append(options, w.option+": "+w.source)
			}
			body += "\n.mix({ " + strings.Join(options, ", ") + " })"
			nodes = append(nodes, fmt.Sprintf(`{"node_id": "n%d", "op": "shop::mix", "inputs": ["n%d"], "params": {%s}%s}`,
				i, i-1, strings.Join(all, ", "), strings.Join(inNode, "")))
		}
		files[name+compiler.Extension] = bodied(name, body+";")
		artifact := fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "nodes": [%s], "outputs": ["n%d"], "capabilities_required": [%q],
			"pred_table": {"p0": {"op": "const_bool", "value": true}}}`, name, strings.Join(nodes, ","), count, plan.OnErrorCapability)
		if _, err := plan.Load(name, []byte(artifact), catalog, testRegistry(t)); err != nil {
			for _, bad := range err.(*plan.Error).All() {
				node, field, _ := strings.Cut(bad.Field, "].")
				line := 4 // of the source, which has no faults
				_, err := fmt.Sscanf(node, "nodes[%d", &line)
				require.NoError(t, err, bad.Error())
				text := inSource.Replace(strings.TrimPrefix(field, "params.") + " " + bad.Msg)
				if bad.Code == "" {
					text = strings.Replace(text, " ", ": ", 1)
				}
				want[name+compiler.Extension] = append(want[name+compiler.Extension], fmt.Sprintf("%d: %s", 5+line, text))
				faults++
			}
		}
	}
	require.Greater(t, faults, 500)
	folder := write(t, files)
	sources, err := compiler.Folder(folder)
	require.NoError(t, err)
	results, err := newCompilerOf(t, compiler.Config{Tasks: catalog}).Compile(context.Background(), sources...)
	require.NoError(t, err)
	for _, r := range results {
		var got []string
		for _, d := range r.Errors {
			got = append(got, fmt.Sprintf("%d: %s", d.Line, d.Message))
			assert.NotEmpty(t, d.Hint)
			assert.Equal(t, strings.Split(files[filepath.Base(r.File)], "\n")[d.Line-1], d.Excerpt)
		}
		require.Equal(t, want[r.File], got, "%s:\n%s", r.File, files[r.File])
	}
}

// pick returns up to that many values, with no option twice.
func pick(random *rand.Rand, from []written, most int) (picked []written) {
	taken := make(map[string]bool)
	for range most {
		if w := from[random.IntN(len(from))]; !taken[w.option] {
			taken[w.option], picked = true, append(picked, w)
		}
	}
	return picked
}
