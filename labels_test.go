package rankd_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/explain"
	"github.com/rankd/rankd/trace/draw"
)

// A plan of which two nodes have labels.
var labelled = fstest.MapFS{"labelled.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "labelled", "outputs": ["n2"], "nodes": [
	{"node_id": "n0", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
	{"node_id": "n1", "op": "follow", "inputs": ["n0"], "params": {"endpoint": "ep_0001", "fanout": 3, "trace": "brand & co"}},
	{"node_id": "n2", "op": "take", "inputs": ["n1"], "params": {"count": 2, "trace": "shelf"}}]}`)}}

// A label that the plan gives to a node is wherever people and programs read of the node: in the trace, in each drawing of it, and in
// the explanation. A node without a label has its id.
func TestLabels(t *testing.T) {
	forModels(t, rankd.Options{Plans: labelled, AllowRequestTrace: true, AllowRequestExplain: true}, func(t *testing.T, e *rankd.Engine) {
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
