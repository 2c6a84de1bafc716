package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rankd explain prints what an answer's "explain" has, for people or as JSON.
func TestExplain(t *testing.T) {
	none := strings.NewReader("")
	o := run(t, none, "explain", "--plan_name", "mixed_pipeline", "--user", "7", "--item", "991,42")
	assert.Zero(t, o.status)
	assert.Contains(t, o.stdout, "mixed_pipeline ranked 10 rows for user 7.")
	assert.Contains(t, o.stdout, "id 42 is not in the answer: it never was a candidate")
	assert.Contains(t, o.stdout, "1. id 991, of the 10 rows of n5")

	o = run(t, none, "explain", "--plan_name", "mixed_pipeline", "--user", "7", "--json")
	assert.Zero(t, o.status)
	var why struct{ Rows []struct{ ID int64 } }
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &why))
	assert.Len(t, why.Rows, 10)

	o = run(t, strings.NewReader(`{"user_id": 7, "explain": [991, 42]}`), "--plan_name", "mixed_pipeline", "--allow_request_explain")
	assert.Zero(t, o.status)
	assert.Contains(t, o.stdout, `"explain":{"rows":[{"id":991,`)
	o = run(t, strings.NewReader(`{"user_id": 7, "explain": true}`), "--plan_name", "mixed_pipeline")
	assert.Equal(t, exitFailed, o.status)
	assert.Contains(t, o.stdout, `this engine does not allow \"explain\" in requests`)
}

func TestExplainRefusesBadUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "rankd explain needs a plan: --plan_name or --plan"},
		{[]string{"--plan_name", "diamond", "--item", "4,x"}, `--item lists integers of 64 bits, not "x"`},
		{[]string{"--plan_name", "diamond", "--user", "0"}, "--user is a number from 1 to 4294967295, not 0"},
		{[]string{"--plan_name", "diamond", "--user", "1", "--request", "{}"}, "--request"},
		{[]string{"--plan_name", "nothing"}, "nothing"},
	} {
		o := run(t, strings.NewReader(""), append([]string{"explain"}, c.args...)...)
		assert.Equal(t, exitUsage, o.status, c.args)
		assert.Empty(t, o.stdout)
		assert.Contains(t, o.stderr, c.want)
	}
}
