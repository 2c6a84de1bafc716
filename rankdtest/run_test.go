package rankdtest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// builtinTask returns a built-in task by name.
func builtinTask(t *testing.T, op string) task.Spec {
	schema, ok := builtin.Catalog().OpSchema(op)
	require.True(t, ok, op)
	return *schema.Impl.(*task.Spec)
}

var country = []any{"name", "x", "country", "DE"}

const less = `{"op": "cmp", "cmp": "<", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 3}}`

// Every built-in task runs as it does in an engine.
func TestRunBuiltins(t *testing.T) {
	rows := rankdtest.Rows(1, 2, 3)
	for _, tt := range []struct {
		op   string
		c    rankdtest.Case
		ids  []int64
		key  int // of a column to look at
		want []any
	}{
		{"viewer", rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001"}, UserID: 7,
			Redis: rankdtest.Replies(map[string]any{"HGETALL user:7": country})}, []int64{7}, 3001, []any{"DE"}},
		{"follow", rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001", "fanout": 2}, Inputs: rankdtest.Inputs(rankdtest.Select(rows, 2)),
			Redis: rankdtest.Replies(map[string]any{
				"LRANGE follow:3 0 1": []string{"8", "9x"}, "HGETALL user:8": []any{}, "HGETALL user:9": func([]string) any { return country },
			})}, []int64{8, 9}, 3001, []any{nil, "DE"}},
		{"media", rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001", "fanout": 1}, Inputs: rankdtest.Inputs(rows),
			Redis: func(command []string) any { return []any{[]byte(command[1][len("media:"):] + "0")} }}, []int64{10, 20, 30}, 0, nil},
		{"vm", rankdtest.Case{Params: map[string]any{"out_key": 2001, "expr_id": "e"}, Inputs: rankdtest.Inputs(rows),
			Exprs:         map[string]string{"e": `{"op": "param_ref", "param_id": 4}`},
			RequestParams: map[string]any{"weight": 2.5}}, []int64{1, 2, 3}, 2001, []any{2.5, 2.5, 2.5}},
		{"filter", rankdtest.Case{Params: map[string]any{"pred_id": "p"}, Inputs: rankdtest.Inputs(rows),
			Preds: map[string]string{"p": less}}, []int64{1, 2}, 0, nil},
		{"sort", rankdtest.Case{Params: map[string]any{"by": 1001, "order": "desc"},
			Inputs: rankdtest.Inputs(rankdtest.WithFloats(rows, 1001, 1, nil, 2.5))}, []int64{3, 1, 2}, 1001, []any{2.5, 1.0, nil}},
		{"sort", rankdtest.Case{Params: map[string]any{"by": 3002},
			Inputs: rankdtest.Inputs(rankdtest.WithStrings(rows, 3002, "b", nil, "a"))}, []int64{3, 1, 2}, 3002, []any{"a", "b", nil}},
		{"take", rankdtest.Case{Params: map[string]any{"count": 2}, Inputs: rankdtest.Inputs(rows)}, []int64{1, 2}, 1001, nil},
		{"concat", rankdtest.Case{Inputs: rankdtest.Inputs(rows), Refs: map[string]rowset.RowSet{"rhs": rankdtest.Rows(4)}}, []int64{1, 2, 3, 4}, 0, nil},
		{"sleep", rankdtest.Case{Params: map[string]any{"duration_ms": int64(time.Hour / time.Millisecond)}, Inputs: rankdtest.Inputs(rows)}, []int64{1, 2, 3}, 0, nil},
		{"fixed_source", rankdtest.Case{}, []int64{1}, 0, nil},
	} {
		t.Run(tt.op, func(t *testing.T) {
			out, err := rankdtest.Run(builtinTask(t, tt.op), tt.c)
			require.NoError(t, err)
			assert.Equal(t, tt.ids, rankdtest.IDs(out))
			if tt.key != 0 {
				assert.Equal(t, tt.want, rankdtest.Values(out, registry.KeyID(tt.key)))
			}
		})
	}
}

func TestRunFails(t *testing.T) {
	one := rankdtest.Inputs(rankdtest.Rows(1))
	endpoint := map[string]any{"endpoint": "ep_0001", "fanout": 2}
	own := func(place task.Place, run task.Body) task.Spec {
		return task.Spec{Op: "test::own", Inputs: 1, Output: task.PassThrough, Place: place, Run: run}
	}
	lost := errors.New("lost")
	redis := func(reply any) func([]string) any { return func([]string) any { return reply } }
	for _, tt := range []struct {
		name  string
		spec  task.Spec
		c     rankdtest.Case
		class error // nil: only the text counts
		text  string
	}{
		{"no inputs", builtinTask(t, "take"), rankdtest.Case{Params: map[string]any{"count": 1}}, task.ErrInvalid, "takes 1 input(s), has 0"},
		{"missing parameter", builtinTask(t, "take"), rankdtest.Case{Inputs: one}, nil, "count"},
		{"unknown parameter", builtinTask(t, "take"), rankdtest.Case{Params: map[string]any{"count": 1, "much": 1}, Inputs: one}, nil, "much"},
		{"parameter of another type", builtinTask(t, "take"), rankdtest.Case{Params: map[string]any{"count": "1"}, Inputs: one}, nil, "count"},
		{"parameter that is not JSON", builtinTask(t, "take"), rankdtest.Case{Params: map[string]any{"count": func() {}}, Inputs: one}, nil, "as JSON"},
		{"parameter out of range", builtinTask(t, "take"), rankdtest.Case{Params: map[string]any{"count": 0}, Inputs: one}, task.ErrInvalid, "count is 0"},
		{"faulty expression", builtinTask(t, "vm"), rankdtest.Case{Params: map[string]any{"out_key": 2001, "expr_id": "e"},
			Exprs: map[string]string{"e": `{"op": "no_op"}`}, Inputs: one}, nil, "no_op"},
		{"unknown request parameter", builtinTask(t, "take"), rankdtest.Case{Params: map[string]any{"count": 1}, Inputs: one,
			RequestParams: map[string]any{"much": 1}}, nil, "much"},
		{"faulty input", builtinTask(t, "take"), rankdtest.Case{Params: map[string]any{"count": 1},
			Inputs: rankdtest.Inputs(rankdtest.Select(rankdtest.Rows(1), 5))}, nil, "input 0"},
		{"faulty reference", builtinTask(t, "concat"), rankdtest.Case{Inputs: one,
			Refs: map[string]rowset.RowSet{"rhs": rankdtest.Select(rankdtest.Rows(1), 5)}}, nil, "rhs"},
		{"faulty spec", task.Spec{Op: "test::own"}, rankdtest.Case{}, nil, "Run must be there, or Ask and Make"},
		{"panic", own(task.Computes, func(*task.Ctx) (rowset.RowSet, error) { panic("boom") }), rankdtest.Case{Inputs: one}, task.ErrPanic, "boom"},
		{"wrong output", own(task.Computes, func(*task.Ctx) (rowset.RowSet, error) { return rankdtest.Rows(2), nil }), rankdtest.Case{Inputs: one},
			task.ErrContract, "must keep its input's batch"},
		{"writes into its input", own(task.Computes, func(c *task.Ctx) (rowset.RowSet, error) {
			c.Inputs[0].Batch.Float(2001).Values[1]++
			return c.Inputs[0], nil
		}), rankdtest.Case{Inputs: rankdtest.Inputs(rankdtest.WithFloats(rankdtest.Rows(5, 7), 2001, 1.5, 2.5))}, task.ErrContract,
			"the body of task has written into input 0: column 2001 (final_score), row 1"},
		{"sorts its input", own(task.Computes, func(c *task.Ctx) (rowset.RowSet, error) {
			slices.Sort(c.Inputs[0].Rows)
			return c.Inputs[0], nil
		}), rankdtest.Case{Inputs: rankdtest.Inputs(rankdtest.Select(rankdtest.Rows(5, 7), 1, 0))}, task.ErrContract,
			"input 0: active row 0 is row 0 of the batch, and was 1"},
		{"writes ids", own(task.Computes, func(c *task.Ctx) (rowset.RowSet, error) {
			c.Inputs[0].Batch.IDs[0] = 9
			return c.Inputs[0], nil
		}), rankdtest.Case{Inputs: rankdtest.Inputs(rankdtest.Rows(5, 7))}, task.ErrContract, "input 0: row 0 has the id 9, and had 5"},
		{"writes a null", own(task.Computes, func(c *task.Ctx) (rowset.RowSet, error) {
			c.Inputs[0].Batch.String(3001).Places[1] = rowset.NullCode
			return c.Inputs[0], nil
		}), rankdtest.Case{Inputs: rankdtest.Inputs(rankdtest.WithStrings(rankdtest.Rows(5, 7), 3001, "DE", "PL"))}, task.ErrContract,
			"column 3001 (country), row 1"},
		{"too many rows", builtinTask(t, "fixed_source"), rankdtest.Case{Params: map[string]any{"row_count": 11}, MaxRows: 10}, task.ErrTooManyRows, "11"},
		{"cancelled source", builtinTask(t, "fixed_source"), rankdtest.Case{Cancelled: true}, task.ErrCancelled, ""},
		{"cancelled sleep", builtinTask(t, "sleep"), rankdtest.Case{Params: map[string]any{"duration_ms": 1}, Inputs: one, Cancelled: true}, task.ErrCancelled, ""},
		{"cancelled call", builtinTask(t, "media"), rankdtest.Case{Params: endpoint, Inputs: one, Cancelled: true}, task.ErrCancelled, ""},
		{"cancelled kernel", builtinTask(t, "filter"), rankdtest.Case{Params: map[string]any{"pred_id": "p"}, Preds: map[string]string{"p": less},
			Inputs: rankdtest.Inputs(rankdtest.Rows(make([]int64, 1<<20)...)), Cancelled: true}, task.ErrCancelled, ""},
		{"asks where it computes", own(task.Computes, func(c *task.Ctx) (rowset.RowSet, error) {
			_, err := c.Redis(new(registry.Endpoint)).Do("PING")
			return c.Inputs[0], err
		}),
			rankdtest.Case{Inputs: one}, nil, "must have Place Waits or OnLoop"},
		{"no Redis", builtinTask(t, "media"), rankdtest.Case{Params: endpoint, Inputs: one}, task.ErrRedis, `no reply for "LRANGE media:1 0 1"`},
		{"no reply", builtinTask(t, "media"), rankdtest.Case{Params: endpoint, Inputs: one, Redis: rankdtest.Replies(nil)}, task.ErrRedis,
			`no reply for "LRANGE media:1 0 1"`},
		{"error reply", builtinTask(t, "media"), rankdtest.Case{Params: endpoint, Inputs: one, Redis: redis(errors.New("WRONGTYPE here"))},
			task.ErrRedis, "WRONGTYPE here"},
		{"reply of another kind", builtinTask(t, "media"), rankdtest.Case{Params: endpoint, Inputs: one, Redis: redis(nil)},
			task.ErrRedis, "reply is null, want array"},
		{"lost connection", builtinTask(t, "media"), rankdtest.Case{Params: endpoint, Inputs: one, Redis: redis(rankdtest.Failure{Err: lost})}, lost, "ep_0001"},
		{"reply that is not one", builtinTask(t, "media"), rankdtest.Case{Params: endpoint, Inputs: one, Redis: redis([]any{struct{}{}})}, nil, "struct {}"},
		{"another batch", own(task.Waits, func(c *task.Ctx) (rowset.RowSet, error) {
			ep, _ := c.Registry.Endpoint("ep_0001")
			b := new(resp.Batch)
			b.Cmd("PING")
			_, err := c.Redis(ep).Send(b)
			return c.Inputs[0], err
		}), rankdtest.Case{Inputs: one}, task.ErrRedis, "not of this task's NewBatch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := rankdtest.Run(tt.spec, tt.c)
			require.ErrorContains(t, err, tt.text)
			if tt.class != nil {
				assert.ErrorIs(t, err, tt.class)
			}
			assert.Zero(t, out)
		})
	}
}

// A task that keeps a view of a reply reads garbage after it has waited again.
func TestRunInvalidatesReplies(t *testing.T) {
	for name, wait := range map[string]func(c *task.Ctx, redis task.Redis) error{
		"sleep": func(c *task.Ctx, _ task.Redis) error { return c.Sleep(time.Second) },
		"call":  func(_ *task.Ctx, redis task.Redis) error { _, err := redis.Do("GET", "b"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			var kept []byte
			_, err := rankdtest.Run(task.Spec{Op: "test::keeps", Output: task.Source, Place: task.Waits,
				Params: []plan.ParamSchema{{Name: "endpoint", Type: plan.Endpoint, Required: true}},
				Run: func(c *task.Ctx) (rowset.RowSet, error) {
					redis := c.Redis(c.Node.Endpoint)
					reply, err := redis.Do("GET", "a")
					if err != nil {
						return rowset.RowSet{}, err
					}
					kept = reply.Bytes()
					assert.Equal(t, "abc", string(kept))
					err = wait(c, redis)
					assert.Equal(t, "???", string(kept))
					return rankdtest.Rows(), err
				},
			}, rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001"}, Redis: func([]string) any { return "abc" }})
			require.NoError(t, err)
		})
	}
}

func TestRowsHelpers(t *testing.T) {
	rows := rankdtest.Select(rankdtest.Rows(1, 2, 3), 2, 0)
	assert.Equal(t, []int64{3, 1}, rankdtest.IDs(rows))
	rows = rankdtest.WithStrings(rankdtest.WithFloats(rows, 1001, 0.5, nil), 3001, nil, "US")
	assert.Equal(t, []any{0.5, nil}, rankdtest.Values(rows, 1001))
	assert.Equal(t, []any{nil, "US"}, rankdtest.Values(rows, 3001))
	assert.Nil(t, rankdtest.Values(rows, 1002))
	assert.Nil(t, rankdtest.Values(rowset.RowSet{}, 1001))
	assert.Panics(t, func() { rankdtest.WithFloats(rows, 1001, "US", 1) })
	assert.Panics(t, func() { rankdtest.WithStrings(rows, 3001, "US", 1) })
	assert.Panics(t, func() { rankdtest.WithFloats(rows, 1001, 1) }, "one value for two rows")
}
