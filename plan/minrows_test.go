package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/task/builtin"
)

func TestMinRowsAreRefused(t *testing.T) {
	src := of("s", "fixed_source", "", `"row_count": 3`, "")
	with := func(members string) string {
		return strings.Replace(policyPlan(`{"timeout_ms": 9}`, "s", src), `"lenient": {"timeout_ms": 9}`, members, 1)
	}
	for members, want := range map[string]string{
		`"min_rows": 3`: "min_rows: must have a number for each output, of which there are 1", `"min_rows": [1, 2]`: "must have a number for each", `"min_rows": [-1]`: "min_rows[0]: must be an integer from 0 to 1000000",
		`"min_rows": ["5"]`: "must be an integer from 0", `"min_rows": [3], "below": "no plan"`: `below: must be "mark", "error", or the name of a plan`,
		`"min_rows": [3], "below": "light"`: `below: names the plan "light", and so needs answer_by in lenient`, `"min_rows": [3], "below": "p"`: "below: is this plan itself",
		`"min_rows": [3], "below": 5`: "below: must be", `"below": "light"`: "below: needs min_rows", `"below": "mark"`: "below: needs min_rows",
	} {
		artifact := strings.Replace(with(members), `"cap.rankd.on_error.v1"`, `"cap.rankd.min_rows.v1", "cap.rankd.on_error.v1"`, 1)
		_, err := plan.Load("p", []byte(artifact), builtin.Catalog(), policyTables(t, ""))
		assert.ErrorContains(t, err, want, members)
	}
	page := of("t", "take", "s", `"count": 2, "offset": 1`, "")
	for least, ok := range map[string]bool{"3": true, "4": false} {
		artifact := strings.NewReplacer(`"cap.rankd.on_error.v1"`, `"cap.rankd.min_rows.v1", "cap.rankd.on_error.v1"`, `"lenient": {"timeout_ms": 9}`, `"min_rows": [`+least+`]`).
			Replace(policyPlan(`{"timeout_ms": 9}`, "t", src, page))
		if _, err := plan.Load("p", []byte(artifact), builtin.Catalog(), policyTables(t, "")); ok {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, `min_rows[0]: is 4, but node "t" (core::take) ends its page at row 3`)
		}
	}
	for _, members := range []string{`"min_rows": [3]`, `"below": "mark"`} {
		_, err := plan.Load("p", []byte(with(members)), builtin.Catalog(), policyTables(t, ""))
		assert.ErrorContains(t, err, `needs "cap.rankd.min_rows.v1"`, members)
	}
	artifact := strings.Replace(with(`"min_rows": [3], "below": "error"`), `"cap.rankd.on_error.v1"`, `"cap.rankd.min_rows.v1", "cap.rankd.on_error.v1"`, 1)
	g, err := plan.Load("p", []byte(artifact), builtin.Catalog(), policyTables(t, ""))
	require.NoError(t, err)
	assert.Equal(t, []int{3}, g.Info().MinRows)
	assert.Equal(t, "error", g.Info().Below)
}

// TestAPageCountsTheRowsAroundIt: also if nodes behind the page only add columns, unless one of them may take the page's rows away.
func TestAPageCountsTheRowsAroundIt(t *testing.T) {
	const lookup = `"endpoint": "ep_0001", "key": "land:{id}", "value": "country"`
	src, page := of("s", "fixed_source", "", `"row_count": 9`, ""), of("p", "take", "s", `"count": 4, "offset": 8`, "")
	for name, c := range map[string]struct {
		output string
		nodes  []string
		counts string // the node whose rows count
	}{
		"a page":                       {"p", nil, "s"},
		"a lookup behind it":           {"l", []string{of("l", "lookup", "p", lookup, "")}, "s"},
		"two nodes behind it":          {"v", []string{of("l", "lookup", "p", lookup, `, "on_error": "null"`), of("v", "vm", "l", `"out_key": 2001, "expr_id": "e"`, "")}, "s"},
		"a lookup that may drop":       {"l", []string{of("l", "lookup", "p", lookup+`, "missing": "drop"`, "")}, "l"},
		"a lookup that may be empty":   {"l", []string{of("l", "lookup", "p", lookup, `, "on_error": "empty"`)}, "l"},
		"a lookup that may be partial": {"l", []string{of("l", "lookup", "p", lookup, `, "on_error": "partial"`)}, "l"},
		"a filter behind it":           {"k", []string{of("k", "filter", "p", `"pred_id": "us"`, "")}, "k"},
		"no page":                      {"s", nil, "s"},
	} {
		t.Run(name, func(t *testing.T) {
			artifact := policyPlan(`{"timeout_ms": 9}`, c.output, append([]string{src, page}, c.nodes...)...)
			if name == "no page" {
				artifact = policyPlan(`{"timeout_ms": 9}`, c.output, src)
			}
			artifact = strings.NewReplacer(`"lenient": {"timeout_ms": 9}`, `"min_rows": [3], "expr_table": {"e": {"op": "const_number", "value": 1}}`,
				`"cap.rankd.on_error.v1"`, `"cap.rankd.min_rows.v1", "cap.rankd.on_error.v1"`).Replace(artifact)
			g, err := plan.Load("p", []byte(artifact), builtin.Catalog(), policyTables(t, ""))
			require.NoError(t, err)
			var asked []string
			short := g.Short(new(expr.Params), func(node int) int { asked = append(asked, g.Nodes[node].ID); return 2 })
			assert.Equal(t, []string{c.counts}, asked)
			assert.Equal(t, []plan.Short{{Output: "0", Rows: 2, MinRows: 3}}, short)
			for _, n := range g.Nodes {
				assert.Equal(t, n.ID == c.counts && c.counts != c.output, n.Counted, n.ID)
			}
		})
	}
}
