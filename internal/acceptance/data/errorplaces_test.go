package data_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/trace/draw"
)

// spannedPlan has a place for the op of a node and one for its parameters.
const spannedPlan = `{"schema_version": 1, "plan_name": "p", "outputs": ["out"], "nodes": [
	{"node_id": "me", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
	{"node_id": "out", "op": %s, "inputs": ["me"], "params": %s, "source_span": "p.plan.ts:4:6", "expr_span": "p.plan.ts:4:20"}],
	"expr_table": {"e": {"op": "param_ref", "param_id": 4, "source_span": "q.plan.ts:1:1"}},
	"pred_table": {
		"pattern": {"op": "regex", "key_id": 3001, "pattern": {"kind": "param", "param_id": 2}},
		"list": {"op": "or", "a": {"op": "in", "lhs": {"op": "key_ref", "key_id": 3001}, "list": ["XX"]},
			"b": {"op": "in", "lhs": {"op": "const_number", "value": 1}, "list": ["a"]}}}}`

// TestErrorsNameThePlaceInTheSource: the failure of a node names the expression that failed, or
// else the node.
func TestErrorsNameThePlaceInTheSource(t *testing.T) {
	for _, c := range []struct{ name, op, params, span string }{
		{"a node", `"core::sort"`, `{"by": 2002}`, "p.plan.ts:4:6"},
		{"a node, not its expression", `"core::vm"`, `{"out_key": 1, "expr_id": "e"}`, "p.plan.ts:4:6"},
		{"an expression", `"core::vm"`, `{"out_key": 2002, "expr_id": "e"}`, "p.plan.ts:4:20"},
		{"a predicate", `"core::filter"`, `{"pred_id": "pattern"}`, "p.plan.ts:4:20"},
		{"a part of a predicate", `"core::filter"`, `{"pred_id": "list"}`, "p.plan.ts:4:20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			artifact := fmt.Sprintf(spannedPlan, c.op, c.params)
			bare := strings.NewReplacer("source_span", "unknown", "expr_span", "unknown").Replace(artifact)
			options := rankd.Options{Plans: fstest.MapFS{"p.plan.json": {Data: []byte(artifact)}}}
			enginetest.ForModels(t, options, func(t *testing.T, e *rankd.Engine) {
				failed := enginetest.Fails(t, e)
				assert.Equal(t, c.span, failed.SourceSpan)
				assert.Contains(t, failed.Error(), ": "+c.span+": "+failed.Detail)
				line := string(failed.AppendJSON(nil))
				assert.Contains(t, line, `,"source_span":"`+c.span+`"}`)

				without := enginetest.Fails(t, enginetest.Open(t, rankd.Options{Plans: fstest.MapFS{"p.plan.json": {Data: []byte(bare)}}}))
				assert.Empty(t, without.SourceSpan)
				assert.Equal(t, strings.Replace(line, `,"source_span":"`+c.span+`"`, "", 1), string(without.AppendJSON(nil)),
					"an artifact without spans gets the answer that it always got")
			})
		})
	}
}

// A caller's pattern that is missing or malformed is the caller's fault. The error names the
// parameter.
func TestAPatternOfTheCaller(t *testing.T) {
	artifact := fmt.Sprintf(spannedPlan, `"core::filter"`, `{"pred_id": "pattern"}`)
	enginetest.ForModels(t, rankd.Options{Plans: fstest.MapFS{"p.plan.json": {Data: []byte(artifact)}}}, func(t *testing.T, e *rankd.Engine) {
		missing := enginetest.Fails(t, e)
		assert.ErrorIs(t, missing, rankd.ErrInvalidRequest)
		assert.Equal(t, `the pattern in param "blocklist_regex" is missing: it is null, unset or not a string`, missing.Detail)
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, Params: map[string]any{"blocklist_regex": "("}})
		require.ErrorIs(t, err, rankd.ErrInvalidRequest)
		assert.Equal(t, `bad pattern in param "blocklist_regex": missing closing ): "("`, err.(*rankd.Error).Detail)
		assert.Equal(t, "Node execution failed", err.(*rankd.Error).Text)
	})
}

func TestPlanInfoShowsTheSource(t *testing.T) {
	artifact := fmt.Sprintf(spannedPlan, `"core::sort"`, `{"by": 1}`)
	e := enginetest.Open(t, rankd.Options{Plans: fstest.MapFS{"p.plan.json": {Data: []byte(artifact)}}})
	info, err := e.PlanInfo("p")
	require.NoError(t, err)
	assert.Equal(t, "p.plan.ts:4:6", info.Nodes[1].SourceSpan)
	assert.Empty(t, info.Nodes[0].SourceSpan)
}

// labelled is a plan with labels for two of its nodes.
var labelled = fstest.MapFS{"labelled.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "labelled", "outputs": ["n2"], "nodes": [
	{"node_id": "n0", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
	{"node_id": "n1", "op": "follow", "inputs": ["n0"], "params": {"endpoint": "ep_0001", "fanout": 3, "trace": "brand & co"}},
	{"node_id": "n2", "op": "take", "inputs": ["n1"], "params": {"count": 2, "trace": "shelf"}}]}`)}}

// A node's label appears wherever people and programs read of the node: in the trace, in each
// drawing of it, and in the explanation. A node without a label appears by its id.
func TestLabels(t *testing.T) {
	enginetest.ForModels(t, rankd.Options{Plans: labelled, AllowRequestTrace: true, AllowRequestExplain: true}, func(t *testing.T, e *rankd.Engine) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "labelled", UserID: 1, Trace: true, Explain: rankd.Explain{All: true}})
		require.NoError(t, err)
		require.Equal(t, 2, a.Len())
		var doc struct {
			Trace struct {
				Nodes []map[string]any
			}
			Explain struct {
				Rows []struct {
					Label string
					Steps []map[string]any
				}
			}
		}
		require.NoError(t, json.Unmarshal(a.AppendJSON(nil, rankd.FormatFlat), &doc))
		require.Len(t, doc.Trace.Nodes, 3)
		require.Len(t, doc.Explain.Rows, 2)
		for i, want := range []any{nil, "brand & co", "shelf"} {
			assert.Equal(t, want, doc.Trace.Nodes[i]["label"], i)
			assert.Equal(t, []string{"n0", "n1", "n2"}[i], doc.Trace.Nodes[i]["node_id"])
		}
		row := doc.Explain.Rows[0]
		assert.Equal(t, "shelf", row.Label)
		assert.Equal(t, []any{"brand & co", "shelf"}, []any{row.Steps[0]["label"], row.Steps[1]["label"]})

		tr := a.Trace()
		drawing := func(write func(out *bytes.Buffer) error) string {
			var out bytes.Buffer
			require.NoError(t, write(&out))
			return out.String()
		}
		run := draw.Run{Trace: tr}
		for name, drawn := range map[string]string{
			"text":      drawing(func(out *bytes.Buffer) error { return draw.Text(out, draw.Options{}, run) }),
			"html":      drawing(func(out *bytes.Buffer) error { return draw.HTML(out, run) }),
			"perfetto":  drawing(func(out *bytes.Buffer) error { return draw.Perfetto(out, run) }),
			"graph":     draw.Graph(tr),
			"timeline":  draw.Timeline(tr),
			"why a row": drawing(func(out *bytes.Buffer) error { return explain.Text(out, a.Explanation()) }),
		} {
			assert.Regexp(t, `brand (&|&amp;|\\u0026) co`, drawn, name)
			assert.Contains(t, drawn, "shelf", name)
			if name != "why a row" { // which begins with n1
				assert.Contains(t, drawn, "n0", name)
			}
		}
	})
}

// TestMalformedIDsAreTold: entries that are not ids show in completeness, in the metrics by
// key, and once in the log, with a cache and without.
func TestMalformedIDsAreTold(t *testing.T) {
	const source = `{"node_id": "n", "op": "core::candidates", "inputs": [], "params": {"endpoint": "ep_0001", %s}}`
	for name, c := range map[string]struct {
		nodes, want string
		ids         int // rows that are left
	}{
		"list":       {fmt.Sprintf(source, `"key": "new"`), `{"n": {"op": "core::candidates", "status": "ok", "malformed": {"count": 2, "of": 4, "first": "sku-1", "key": "new"}}}`, 2},
		"set":        {fmt.Sprintf(source, `"key": "all", "kind": "set"`), `{"n": {"op": "core::candidates", "status": "ok", "malformed": {"count": 1, "of": 2, "first": "sku-9", "key": "all"}}}`, 1},
		"sorted set": {fmt.Sprintf(source, `"key": "top", "kind": "sorted_set", "score": 2001`), `{"n": {"op": "core::candidates", "status": "ok", "malformed": {"count": 1, "of": 2, "first": "b\"", "key": "top"}}}`, 1},
		"one of two lists": {`{"node_id": "u", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
			{"node_id": "n", "op": "core::media", "inputs": ["u"], "params": {"endpoint": "ep_0001", "fanout": 10}}`,
			`{"n": {"op": "core::media", "status": "ok", "malformed": {"count": 1, "of": 3, "first": "x", "key": "media:2"}}}`, 2},
		"none": {fmt.Sprintf(source, `"key": "fine"`), `null`, 1},
	} {
		redis, err := rankdtest.StartRedisWith(map[string]any{
			"new": []string{"7", "sku-1", "9", "sku-2"}, "all": rankdtest.Set{"1", "sku-9"}, "top": rankdtest.SortedSet{"5": 1, `b"`: 2},
			"media:1": []string{"5"}, "media:2": []string{"x", "6"}, "fine": []string{"3"},
		})
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		for _, cached := range []bool{false, true} {
			t.Run(fmt.Sprint(name, cached), func(t *testing.T) {
				var log bytes.Buffer
				o := rankd.Options{
					Redis: redis.Addr(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Plans: fstest.MapFS{"p.plan.json": {Data: []byte(fmt.Sprintf(`{"schema_version": 1, "plan_name": "p", "nodes": [%s], "outputs": ["n"]}`, c.nodes))}},
				}
				if cached {
					o.Cache = "ttl"
				}
				enginetest.ForModels(t, o, func(t *testing.T, e *rankd.Engine) {
					log.Reset()
					for range 3 {
						a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
						require.NoError(t, err)
						assert.Equal(t, c.ids, a.Len())
						assert.False(t, a.Degraded())
						told := enginetest.AnswerJSON(t, a)["completeness"]
						if told == nil {
							told = []byte("null")
						}
						assert.JSONEq(t, c.want, enginetest.CachedMember.ReplaceAllString(string(told), ""))
					}
					malformed := e.Metrics().Values["id"].Malformed
					require.NoError(t, e.Close()) // The log has all lines then.
					if c.want == "null" {
						assert.Empty(t, log.String())
						return
					}
					assert.Equal(t, 1, strings.Count(log.String(), "entries are not ids"), log.String())
					assert.Positive(t, malformed)
				})
			})
		}
	}
}
