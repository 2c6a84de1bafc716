package demo_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

// written has the full example plans as the original specification writes them (in
// request-response.md and other documents). Each node has all of its parameters. Expressions
// and predicates stand in place of their ids.
var written = map[string]string{
	"simple_viewer": `
v = core::viewer()
-> v`,
	"viewer_filter": `
v = core::viewer()
f = core::filter(v) id > 5
-> f`,
	"parallel_fanout": `
v = core::viewer()
follow = core::follow(v) fanout=100
recs = core::recommendation(v) fanout=100
-> follow, recs`,
	"mixed_pipeline": `
v = core::viewer()
f = core::follow(v) fanout=100
vm1 = core::vm(f) score = id * coalesce(weight, 0.5)
filter = core::filter(vm1) score >= 0.5
sort = core::sort(filter) by=score order=desc
take = core::take(sort) count=10
-> take`,
	"diamond": `
v = core::viewer()
left = core::follow(v) fanout=100
right = core::recommendation(v) fanout=100
join = core::concat(left) rhs=right
-> join`,
	"complex_dag": `
n0 = core::viewer()
n1 = core::follow(n0) fanout=100
n2 = core::recommendation(n0) fanout=100
n3 = core::media(n1) fanout=100
n4 = core::media(n2) fanout=100
n5 = core::vm(n3) score = id * coalesce(weight, 0.1)
n6 = core::vm(n4) score = id * coalesce(weight, 0.1)
n7 = core::concat(n5) rhs=n6
n8 = core::sort(n7) by=score order=desc
n9 = core::take(n8) count=50
-> n9`,
	"concat_plan": `
n0 = core::viewer()
n1 = core::follow(n0) fanout=4 trace=L
n2 = core::recommendation(n0) fanout=4 trace=R
n3 = core::concat(n1) rhs=n2 trace=C
n4 = core::take(n3) count=8 trace=T
-> n4`,
	"reels_plan_a": `
viewer = core::viewer()
follow = core::follow(viewer) fanout=10
score = core::vm(follow) final_score = id * coalesce(media_age_penalty_weight, 0.2)
keep = core::filter(score) final_score >= 0.6
rescore = core::vm(keep) final_score = final_score
take = core::take(rescore) count=5
-> take`,
	"regex_plan": `
viewer = core::viewer()
follow = core::follow(viewer) fanout=10
keep = core::filter(follow) regex(country, "US")
take = core::take(keep) count=5
-> take`,
	"parallel_sleep_plan": `
viewer = core::viewer()
sleep_a = test::sleep(viewer) duration_ms=20
sleep_b = test::sleep(viewer) duration_ms=20
join = core::concat(sleep_a) rhs=sleep_b
-> join`,
}

// TestPlansAsWritten: no parameter, constant or operator of a drawn plan differs from its
// description. TestPlansAsDrawn checks that the compiled plans equal the drawn ones.
func TestPlansAsWritten(t *testing.T) {
	files, err := fs.Glob(drawn, "*.plan.json")
	require.NoError(t, err)
	got := make(map[string]string)
	for _, file := range files {
		text, err := fs.ReadFile(drawn, file)
		require.NoError(t, err)
		got[strings.TrimSuffix(file, ".plan.json")] = write(t, text)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(written)), slices.Collect(maps.Keys(got)))
	for name, want := range written {
		assert.Equal(t, want, got[name], name)
	}
}

// object is a JSON object; numbers keep their digits.
type object = map[string]any

// write writes an artifact in the form of the table. It checks and leaves out the endpoint,
// which is the same everywhere.
func write(t *testing.T, artifact []byte) string {
	var p struct {
		Nodes []struct {
			ID     string   `json:"node_id"`
			Op     string   `json:"op"`
			Inputs []string `json:"inputs"`
			Params object   `json:"params"`
		} `json:"nodes"`
		Outputs []string          `json:"outputs"`
		Exprs   map[string]object `json:"expr_table"`
		Preds   map[string]object `json:"pred_table"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(artifact)))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&p))
	reg, err := registry.Default("dev")
	require.NoError(t, err)
	w := writer{t, reg}

	var b strings.Builder
	for _, n := range p.Nodes {
		fmt.Fprintf(&b, "\n%s = %s(%s)", n.ID, n.Op, strings.Join(n.Inputs, ", "))
		for _, name := range slices.Sorted(maps.Keys(n.Params)) {
			switch value := n.Params[name]; {
			case value == nil || name == "out_key": // which stands before its expression
			case name == "endpoint":
				assert.Equal(t, "ep_0001", value)
			case name == "expr_id":
				fmt.Fprintf(&b, " %s = %s", w.key(n.Params["out_key"]), w.expr(p.Exprs[value.(string)]))
			case name == "pred_id":
				fmt.Fprintf(&b, " %s", w.pred(p.Preds[value.(string)]))
			case name == "by":
				fmt.Fprintf(&b, " by=%s", w.key(value))
			default:
				fmt.Fprintf(&b, " %s=%v", name, value)
			}
		}
	}
	return b.String() + "\n-> " + strings.Join(p.Outputs, ", ")
}

// writer writes expressions with the names of a registry.
type writer struct {
	t   *testing.T
	reg *registry.Registry
}

func (w writer) id(value any) uint32 {
	id, err := strconv.ParseUint(value.(json.Number).String(), 10, 32)
	require.NoError(w.t, err)
	return uint32(id)
}

func (w writer) key(id any) string {
	key, ok := w.reg.Key(registry.KeyID(w.id(id)))
	require.True(w.t, ok)
	return key.Name
}

func (w writer) expr(value any) string {
	e := value.(object)
	switch e["op"] {
	case "const_number":
		return e["value"].(json.Number).String()
	case "key_ref":
		return w.key(e["key_id"])
	case "param_ref":
		param, ok := w.reg.Param(registry.ParamID(w.id(e["param_id"])))
		require.True(w.t, ok)
		return param.Name
	case "mul":
		return w.expr(e["a"]) + " * " + w.expr(e["b"])
	case "coalesce":
		return "coalesce(" + w.expr(e["a"]) + ", " + w.expr(e["b"]) + ")"
	}
	require.Fail(w.t, "an expression that no example plan has", "%v", e)
	return ""
}

func (w writer) pred(p object) string {
	switch p["op"] {
	case "cmp":
		return fmt.Sprintf("%s %s %s", w.expr(p["a"]), p["cmp"], w.expr(p["b"]))
	case "regex":
		pattern := p["pattern"].(object)
		require.Equal(w.t, "literal", pattern["kind"])
		require.Empty(w.t, p["flags"])
		return fmt.Sprintf("regex(%s, %q)", w.key(p["key_id"]), pattern["value"])
	}
	require.Fail(w.t, "a predicate that no example plan has", "%v", p)
	return ""
}
