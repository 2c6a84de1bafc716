package data_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

var errBroken = errors.New("this task is broken")

var brokenTasks = []task.Spec{
	{Op: "test::broken", Inputs: 1, Output: task.PassThrough, Run: func(*task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, errBroken }},
	{Op: "test::open", Inputs: 1, Output: task.PassThrough, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		c.FailOpen(errBroken)
		return c.Inputs[0], nil
	}},
}

var completenessPlans = map[string]string{
	"strict": enginetest.ThreeRows,
	"open": `{"node_id": "src", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},
		{"node_id": "out", "op": "test::open", "inputs": ["src"]}`,
	"several": `{"node_id": "src", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},
		{"node_id": "few", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}},
		{"node_id": "a", "op": "test::broken", "inputs": ["src"], "params": {"trace": "recs"}, "on_error": {"fallback": "few"}},
		{"node_id": "b", "op": "test::broken", "inputs": ["src"], "on_error": "empty", "timeout_ms": 1000},
		{"node_id": "c", "op": "test::sleep", "inputs": ["src"], "params": {"duration_ms": 0}, "on_error": "skip"},
		{"node_id": "ab", "op": "core::concat", "inputs": ["a"], "params": {"rhs": "b"}},
		{"node_id": "out", "op": "core::concat", "inputs": ["ab"], "params": {"rhs": "c"}}`,
	"follows": `{"node_id": "me", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}, "on_error": "partial"},
		{"node_id": "out", "op": "core::follow", "inputs": ["me"], "params": {"endpoint": "ep_0001", "fanout": 5}, "on_error": "partial"}`,
	"slow": `{"node_id": "src", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},
		{"node_id": "late", "op": "test::sleep", "inputs": ["src"], "params": {"duration_ms": 60000}, "optional": true},
		{"node_id": "soon", "op": "test::sleep", "inputs": ["src"], "params": {"duration_ms": 2}},
		{"node_id": "out", "op": "core::concat", "inputs": ["soon"], "params": {"rhs": "late"}}`,
}

func TestCompleteness(t *testing.T) {
	enginetest.ForModels(t, rankd.Options{Plans: enginetest.LenientPlans(completenessPlans), Tasks: brokenTasks}, func(t *testing.T, e *rankd.Engine) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "strict", UserID: 1})
		require.NoError(t, err)
		assert.Nil(t, a.Completeness())
		assert.False(t, a.Degraded())
		assert.NotContains(t, enginetest.AnswerJSON(t, a), "completeness", "answers of other plans are as they were")

		a, err = e.Rank(t.Context(), rankd.Request{Plan: "several", UserID: 1})
		require.NoError(t, err)
		assert.True(t, a.Degraded())
		assert.Equal(t, 3, a.Len())
		assert.Equal(t, []rankd.NodeCompleteness{
			{Node: "a", Op: "test::broken", Label: "recs", Status: rankd.NodeFallback, Fallback: "few", Reason: "Node execution failed", Err: errBroken},
			{Node: "b", Op: "test::broken", Status: rankd.NodeFailed, Reason: "Node execution failed", Err: errBroken},
			{Node: "c", Op: "test::sleep", Status: rankd.NodeOK},
		}, a.Completeness())
		assert.JSONEq(t, `{
			"a": {"op": "test::broken", "label": "recs", "status": "fallback", "fallback": "few", "reason": "Node execution failed", "detail": "this task is broken"},
			"b": {"op": "test::broken", "status": "failed", "reason": "Node execution failed", "detail": "this task is broken"},
			"c": {"op": "test::sleep", "status": "ok"}}`, string(enginetest.AnswerJSON(t, a)["completeness"]))

		a, err = e.Rank(t.Context(), rankd.Request{Plan: "open", UserID: 1})
		require.NoError(t, err)
		assert.True(t, a.Degraded())
		assert.JSONEq(t, `{"out": {"op": "test::open", "status": "failed", "reason": "Node execution failed", "detail": "this task is broken"}}`,
			string(enginetest.AnswerJSON(t, a)["completeness"]))
	})
}

// A label that several nodes have stands for all of them.
func TestRequireByALabelOfSeveralNodes(t *testing.T) {
	node := func(id, op string) string {
		return fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": ["src"], "params": {"trace": "both"}, "on_error": "empty"}`, id, op)
	}
	folder := func(first, second string) fstest.MapFS {
		return enginetest.LenientPlans(map[string]string{"p": `{"node_id": "src", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},` +
			node("a", first) + "," + node("b", second) + `, {"node_id": "out", "op": "core::concat", "inputs": ["a"], "params": {"rhs": "b"}}`})
	}
	for broken, plans := range map[string]fstest.MapFS{"a": folder("test::broken", "test::fine"), "b": folder("test::fine", "test::broken")} {
		fine := task.Spec{Op: "test::fine", Inputs: 1, Output: task.PassThrough, Run: func(c *task.Ctx) (rowset.RowSet, error) { return c.Inputs[0], nil }}
		e := enginetest.Open(t, rankd.Options{Plans: plans, Tasks: append([]task.Spec{fine}, brokenTasks...)})
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
		require.NoError(t, err)
		_, err = e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, Require: []string{"both"}})
		var failed *rankd.Error
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, broken, failed.Node, "%v", err)

		// A request may name a limited number of nodes, but not one more.
		names := slices.Repeat([]string{"src"}, request.RequireMax)
		_, err = e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, Require: names})
		require.NoError(t, err)
		_, err = e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, Require: append(names, "src")})
		require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	}
}

func TestALateNodeIsNamed(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{Plans: enginetest.LenientPlans(completenessPlans), Tasks: brokenTasks, AllowRequestTrace: true})
	a, err := e.Rank(t.Context(), rankd.Request{Plan: "slow", UserID: 1, Trace: true})
	require.NoError(t, err)
	assert.Less(t, a.Elapsed, time.Minute)
	assert.JSONEq(t, `{"late": {"op": "test::sleep", "status": "late", "reason": "Given up", "detail": "given up: only optional nodes were left running"}}`,
		string(enginetest.AnswerJSON(t, a)["completeness"]))
	late := a.Trace().Nodes[1]
	assert.True(t, a.Trace().Request.Degraded)
	assert.Equal(t, [2]string{"late", "empty"}, [2]string{string(late.Status), string(late.StandIn)})
	assert.EqualValues(t, 1, e.Metrics().Plans["slow"].Degraded)
}

// TestPartialAnswersAreTheSameOnEveryModel: a user whose key has the wrong type is left out, and the answer says so.
func TestPartialAnswersAreTheSameOnEveryModel(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	enginetest.ForModels(t, rankd.Options{Redis: redis.Addr(), Plans: enginetest.LenientPlans(completenessPlans), Tasks: brokenTasks}, func(t *testing.T, e *rankd.Engine) {
		whole, err := e.Rank(t.Context(), rankd.Request{Plan: "follows", UserID: 2})
		require.NoError(t, err)
		require.Equal(t, 5, whole.Len())
		assert.False(t, whole.Degraded())
		var ids []int64
		for c := range whole.Candidates() {
			ids = append(ids, c.ID())
		}
		broken := fmt.Sprint("user:", ids[1])
		enginetest.Command(t, redis.Addr(), "DEL", broken)
		enginetest.Command(t, redis.Addr(), "SET", broken, "x")
		defer enginetest.Command(t, redis.Addr(), "DEL", broken)

		a, err := e.Rank(t.Context(), rankd.Request{Plan: "follows", UserID: 2})
		require.NoError(t, err)
		var left []int64
		for c := range a.Candidates() {
			left = append(left, c.ID())
		}
		assert.Equal(t, append([]int64{ids[0]}, ids[2:]...), left)
		require.Len(t, a.Completeness(), 2)
		assert.Equal(t, rankd.NodeOK, a.Completeness()[0].Status)
		out := a.Completeness()[1]
		assert.Equal(t, rankd.NodePartial, out.Status)
		assert.Equal(t, 1, out.Dropped)
		assert.Equal(t, "Redis error", out.Reason)
		assert.ErrorIs(t, out.Err, rankd.ErrRedis)
		assert.ErrorContains(t, out.Err, "HGETALL "+broken)

		_, err = e.Rank(t.Context(), rankd.Request{Plan: "follows", UserID: 2, Require: []string{"out"}})
		var failed *rankd.Error
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, [2]string{"Redis error", "out"}, [2]string{failed.Text, failed.Node})
	})
}

func TestRequire(t *testing.T) {
	enginetest.ForModels(t, rankd.Options{Plans: enginetest.LenientPlans(completenessPlans), Tasks: brokenTasks, Synthetic: true}, func(t *testing.T, e *rankd.Engine) {
		for _, c := range []struct {
			name, plan string
			require    []string
			text, want string // of the error; empty: an answer
			node       string
		}{
			{"a node that is whole", "several", []string{"c", "src"}, "", "", ""},
			{"a node that fails", "several", []string{"c", "b"}, "Node execution failed", errBroken.Error(), "b"},
			{"by its label", "several", []string{"recs"}, "Node execution failed", errBroken.Error(), "a"},
			{"a node that fails open", "open", []string{"out"}, "Node execution failed", errBroken.Error(), "out"},
			{"a node of a plan without on_error", "strict", []string{"out"}, "", "", ""},
			{"an unknown node", "several", []string{"recz"}, "Invalid request", `require names the node "recz", and plan "several" has none of that id or label; did you mean "recs"?`, ""},
			{"of no plan", "", []string{"a"}, "Invalid request", "require names nodes, and the request has no plan", ""},
			{"too many", "several", make([]string, 65), "Invalid request", "require must name at most 64 nodes, got 65", ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				a, err := e.Rank(t.Context(), rankd.Request{Plan: c.plan, UserID: 1, ID: "r1", Require: c.require})
				if c.text == "" {
					require.NoError(t, err)
					assert.Positive(t, a.Len())
					return
				}
				var failed *rankd.Error
				require.ErrorAs(t, err, &failed)
				assert.Equal(t, [4]string{"r1", c.text, c.want, c.node}, [4]string{failed.RequestID, failed.Text, failed.Detail, failed.Node})
			})
		}
	})
}

func TestRequireInJSON(t *testing.T) {
	e := enginetest.Open(t, rankd.Options{Plans: enginetest.LenientPlans(completenessPlans), Tasks: brokenTasks})
	for doc, want := range map[string]string{
		`{"user_id": 1, "plan": "several", "require": ["c", "recs"]}`:                           "",
		`{"user_id": 1, "plan": "several", "require": null}`:                                    "",
		`{"user_id": 1, "plan": "several", "require": []}`:                                      "",
		`{"user_id": 1, "plan": "several", "require": "c"}`:                                     `require must be an array of nodes, got "c"`,
		`{"user_id": 1, "plan": "several", "require": ["c", 1]}`:                                "require[1] must be the id or the label of a node, got the integer 1",
		`{"user_id": 1, "plan": "several", "require": [` + strings.Repeat(`"c",`, 64) + `"c"]}`: "require must name at most 64 nodes, got 65",
	} {
		r, err := e.ParseRequest([]byte(doc))
		if want == "" {
			require.NoError(t, err, doc)
			continue
		}
		var failed *rankd.Error
		require.ErrorAs(t, err, &failed, doc)
		assert.Equal(t, [2]string{"Invalid request", want}, [2]string{failed.Text, failed.Detail})
		assert.Empty(t, r.Require)
	}
	r, err := e.ParseRequest([]byte(`{"user_id": 1, "require": ["c", "recs"]}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"c", "recs"}, r.Require)
}
