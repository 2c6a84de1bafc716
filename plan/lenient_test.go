package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// policyPlan is a plan of built-in tasks with a policy.
func policyPlan(policy, output string, nodes ...string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": "p", "nodes": [%s], "outputs": [%q], "lenient": %s,
"pred_table": {"us": {"op": "regex", "key_id": 3001, "pattern": {"kind": "literal", "value": "US"}},
	"few": {"op": "cmp", "cmp": "<", "a": {"op": "key_ref", "key_id": 2001}, "b": {"op": "const_number", "value": 3}}}, "capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.on_error.v1"]}`, strings.Join(nodes, ",\n"), output, policy)
}

func of(id, op, input, params, more string) string {
	if input != "" {
		input = fmt.Sprintf("%q", input)
	}
	return fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": [%s], "params": {%s}%s}`, id, op, input, params, more)
}

// policyTables has a column for each case: stock may be null, price may not.
func policyTables(t *testing.T, endpoint string) *registry.Registry {
	t.Helper()
	reg, err := registry.Default("test")
	require.NoError(t, err)
	if endpoint != "" {
		for _, ep := range reg.Endpoints() {
			switch endpoint {
			case "fail":
				ep.Policy.OnError = "fail"
			default:
				ep.Policy.TimeoutPercent = 7
			}
		}
	}
	return reg
}

// TestAPolicyTouchesWhatItMay: each node that reads from outside gets the mildest on_error, and no row gets through
// that the node, or a filter behind it, might have dropped.
func TestAPolicyTouchesWhatItMay(t *testing.T) {
	const ep = `"endpoint": "ep_0001"`
	viewer := of("v", "viewer", "", ep, "")
	follow := of("f", "follow", "v", ep+`, "fanout": 3`, "")
	lookup := func(id, input, missing string) string {
		return of(id, "lookup", input, ep+`, "key": "land:{id}", "value": "country"`+missing, "")
	}
	for _, c := range []struct {
		name, policy, endpoint, output string
		nodes                          []string
		want                           map[string]string // on_error by node; "" is fail
		why                            map[string]string // a part of the reason
	}{
		{"sources and lookups", `{"on_error": "auto"}`, "", "l", []string{viewer, follow, lookup("l", "f", "")},
			map[string]string{"v": "partial", "f": "partial", "l": "null"}, map[string]string{"l": "only its columns"}},
		{"no policy for failures", `{"answer_by": "80%"}`, "", "f", []string{strings.TrimSuffix(viewer, "}") + `, "on_error": "empty"}`, follow}, map[string]string{"v": "empty", "f": ""}, nil},
		{"a lookup that drops", `{"on_error": "auto"}`, "", "l", []string{viewer, lookup("l", "v", `, "missing": "drop"`)},
			map[string]string{"l": ""}, map[string]string{"l": "may drop rows"}},
		{"exclude and frequency_cap", `{"on_error": "auto"}`, "", "c", []string{viewer, of("x", "exclude", "v", ep+`, "key": "seen:{user}"`, ""),
			of("c", "frequency_cap", "x", ep+`, "key": "n:{id}", "max": 3`, "")}, map[string]string{"x": "", "c": ""}, map[string]string{"x": "may drop rows"}},
		{"a filter reads a column of the source", `{"on_error": "auto"}`, "", "k", []string{viewer, follow, of("k", "filter", "f", `"pred_id": "us"`, "")},
			map[string]string{"f": "partial", "k": ""}, nil},
		{"a filter reads a column of a lookup", `{"on_error": "auto"}`, "", "k", []string{viewer, lookup("l", "v", ""), of("s", "sort", "l", `"by": 3001`, ""), of("k", "filter", "s", `"pred_id": "us"`, "")},
			map[string]string{"v": "partial", "l": ""}, map[string]string{"l": `"k" (core::filter) chooses rows by its column "country" (3001)`}},
		{"the rows are joined to others", `{"on_error": "auto"}`, "", "j", []string{viewer, follow, of("j", "join", "f", `"right": "v", "columns": ["country"]`, "")},
			map[string]string{"v": "", "f": "partial"}, map[string]string{"v": `"j" (core::join)`}},
		{"an anti-join asks by a column of a lookup", `{"on_error": "auto"}`, "", "j", []string{viewer, follow, lookup("l", "f", ""), of("r", "follow", "v", ep+`, "fanout": 2`, `, "on_error": "fail"`),
			of("j", "join", "l", `"right": "r", "how": "anti", "on": 3001`, "")}, map[string]string{"l": ""}, map[string]string{"l": `"j" (core::join) chooses rows by its column "country"`}},
		{"one row of each value stays", `{"on_error": "auto"}`, "", "d", []string{viewer, follow, lookup("l", "f", ""), of("d", "dedupe", "l", `"by": 3001`, "")},
			map[string]string{"l": ""}, map[string]string{"l": `"d" (core::dedupe) chooses rows`}},
		{"one row of each id stays", `{"on_error": "auto"}`, "", "d", []string{viewer, follow, lookup("l", "f", ""), of("d", "dedupe", "l", "", "")}, map[string]string{"l": "null"}, nil},
		{"one row of each group stays", `{"on_error": "auto"}`, "", "a", []string{viewer, follow, lookup("l", "f", ""),
			of("a", "aggregate", "l", `"by": [3001], "keep": "first", "values": [{"method": "count", "out_key": 2001}]`, "")}, map[string]string{"l": ""}, map[string]string{"l": `"a" (core::aggregate) chooses rows`}},
		{"rows are moved apart", `{"on_error": "auto"}`, "", "d", []string{viewer, follow, lookup("l", "f", ""), of("d", "diversify", "l", `"method": "window", "by": 3001`, "")},
			map[string]string{"l": "null"}, nil},
		{"a filter reads a column of a fallback", `{"on_error": "auto"}`, "", "k", []string{viewer, follow, of("g", "follow", "v", ep+`, "fanout": 3`, ""), lookup("l", "g", ""),
			of("m", "lookup", "f", ep+`, "key": "home:{id}", "value": "country"`, `, "on_error": {"fallback": "l"}`), of("k", "filter", "m", `"pred_id": "us"`, "")},
			map[string]string{"g": "partial", "l": ""}, map[string]string{"l": `"k" (core::filter) chooses rows by its column "country"`}},
		{"the rows of a fallback are joined to others", `{"on_error": "auto"}`, "", "j", []string{viewer, follow, of("g", "follow", "v", ep+`, "fanout": 3`, ""),
			of("h", "follow", "v", ep+`, "fanout": 3`, `, "on_error": {"fallback": "g"}`), of("j", "join", "f", `"right": "h", "how": "anti"`, "")},
			map[string]string{"f": "partial", "g": ""}, map[string]string{"g": `"j" (core::join) makes something of other rows`}},
		{"a filter reads how many rows there are", `{"on_error": "auto"}`, "", "k", []string{viewer, follow, of("a", "aggregate", "f", `"by": [3001], "values": [{"method": "count", "out_key": 2001}]`, ""),
			of("k", "filter", "a", `"pred_id": "few"`, "")}, map[string]string{"f": ""}, map[string]string{"f": `"k" (core::filter) chooses rows by its column`}},
		{"nodes that compute, or speak for themselves", `{"on_error": "auto"}`, "", "t", []string{viewer,
			of("f", "follow", "v", ep+`, "fanout": 3`, `, "on_error": "fail"`), of("g", "follow", "v", ep+`, "fanout": 3`, `, "on_error": "empty"`), of("cc", "concat", "f", `"rhs": "g"`, ""),
			of("t", "take", "cc", `"count": 3`, "")},
			map[string]string{"v": "partial", "f": "", "g": "empty", "cc": "", "t": ""}, nil},
		{"the endpoint says fail", `{"on_error": "auto"}`, "fail", "f", []string{viewer, follow}, map[string]string{"v": "", "f": ""}, map[string]string{"v": "endpoint"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := plan.Load("p", []byte(policyPlan(c.policy, c.output, c.nodes...)), builtin.Catalog(), policyTables(t, c.endpoint))
			require.NoError(t, err)
			for _, n := range g.Info().Nodes {
				if want, ok := c.want[n.ID]; ok {
					assert.Equal(t, want, n.OnError, "%s: %s", n.ID, n.AutoWhy)
				}
				assert.Contains(t, n.AutoWhy, c.why[n.ID], n.ID)
			}
		})
	}
}

// TestAPolicyBoundsTheTimeOfLenientNodes: the node's own timeout goes before that of its endpoint, and that before the
// plan's.
func TestAPolicyBoundsTheTimeOfLenientNodes(t *testing.T) {
	const ep = `"endpoint": "ep_0001"`
	artifact := policyPlan(`{"on_error": "auto", "timeout": "40%", "timeout_ms": 90, "answer_by": "80%"}`, "t", of("v", "viewer", "", ep, ""),
		of("own", "follow", "v", ep+`, "fanout": 3`, `, "timeout_ms": 50`), of("share", "follow", "v", ep+`, "fanout": 3`, `, "timeout": "5%"`),
		of("strict", "follow", "v", ep+`, "fanout": 3`, `, "on_error": "fail"`), of("c", "concat", "own", `"rhs": "share"`, ""), of("d", "concat", "c", `"rhs": "strict"`, ""),
		of("t", "take", "d", `"count": 3`, `, "timeout": "10%"`))
	for endpoint, share := range map[string]plan.Percent{"": 40, "percent": 7} {
		g, err := plan.Load("p", []byte(artifact), builtin.Catalog(), policyTables(t, endpoint))
		require.NoError(t, err)
		got := map[string][3]any{}
		for _, n := range g.Nodes {
			got[n.ID] = [3]any{n.Timeout, n.Share, n.AnswerBy}
		}
		none, by := plan.Percent(0), plan.Percent(80)
		assert.Equal(t, map[string][3]any{
			"v": {90 * time.Millisecond, share, by}, "own": {50 * time.Millisecond, none, by}, "share": {time.Duration(0), plan.Percent(5), by},
			"strict": {time.Duration(0), none, none}, "c": {time.Duration(0), none, none}, "d": {time.Duration(0), none, none}, "t": {time.Duration(0), plan.Percent(10), none},
		}, got)
	}
}

func TestAPolicyIsRefused(t *testing.T) {
	viewer := of("v", "viewer", "", `"endpoint": "ep_0001"`, "")
	for policy, want := range map[string]string{
		`"auto"`: "lenient: must be an object", `{"on_error": "empty"}`: `lenient.on_error: must be "auto"`, `{"timeout": 40}`: "lenient.timeout: must be a share",
		`{"timeout": "100%"}`: `a share from "1%" to "99%"`, `{"timeout": "0%"}`: "must be a share", `{"answer_by": "+8%"}`: "must be a share", `{"answer_by": "08%"}`: "must be a share",
		`{"answer_by": "80"}`: "must be a share", `{"timeout_ms": 0}`: "lenient.timeout_ms: must be an integer from 1", `{"min": 1}`: "lenient.min: unknown field",
		`{}`: `lenient: says nothing: "on_error": "auto", "timeout"`, `{"timeout_ms": 9, "answer_by": "5%"}`: "lenient: holds for no node: none that reads from outside is lenient",
	} {
		_, err := plan.Load("p", []byte(policyPlan(policy, "v", viewer)), builtin.Catalog(), policyTables(t, ""))
		assert.ErrorContains(t, err, want, policy)
	}
	for _, artifact := range []string{policyPlan(`{"timeout_ms": 9}`, "v", viewer), strings.Replace(policyPlan(`{"timeout_ms": 9}`, "v", of("v", "viewer", "", `"endpoint": "ep_0001"`, `, "timeout": "4%"`)), `"lenient": {"timeout_ms": 9},`, "", 1)} {
		_, err := plan.Load("p", []byte(strings.Replace(artifact, `"cap.rankd.lenient.v1", `, "", 1)), builtin.Catalog(), policyTables(t, ""))
		assert.ErrorContains(t, err, `needs "cap.rankd.lenient.v1"`)
	}
}
