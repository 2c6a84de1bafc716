package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task/builtin"
)

func TestMinRowsAreRefused(t *testing.T) {
	src := of("s", "fixed_source", "", `"row_count": 3`, "")
	with := func(members string) string {
		return strings.Replace(policyPlan(`{}`, "s", src), `"lenient": {}`, members, 1)
	}
	for members, want := range map[string]string{
		`"min_rows": 3`: "min_rows: must have a number for each of the 1 outputs", `"min_rows": [1, 2]`: "must have a number for each", `"min_rows": [-1]`: "min_rows[0]: must be an integer from 0 to 1000000",
		`"min_rows": ["5"]`: "must be an integer from 0", `"min_rows": [3], "below": "no plan"`: `below: must be "mark", "error", or the name of a plan`,
		`"min_rows": [3], "below": "light"`: `below: names the plan "light", and so needs answer_by in lenient`, `"min_rows": [3], "below": "p"`: "below: is this plan itself",
		`"min_rows": [3], "below": 5`: "below: must be", `"below": "light"`: "below: needs min_rows", `"below": "mark"`: "below: needs min_rows",
	} {
		artifact := strings.Replace(with(members), `"cap.rankd.on_error.v1"`, `"cap.rankd.min_rows.v1", "cap.rankd.on_error.v1"`, 1)
		_, err := plan.Load("p", []byte(artifact), builtin.Catalog(), policyTables(t, ""))
		assert.ErrorContains(t, err, want, members)
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
