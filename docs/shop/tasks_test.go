package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/task"
)

func TestDistinct(t *testing.T) {
	out, err := rankdtest.Run(distinct(), rankdtest.Case{
		Inputs: rankdtest.Inputs(rankdtest.Rows(5, 7, 5, 9, 7)),
	})
	require.NoError(t, err)
	assert.Equal(t, []int64{5, 7, 9}, rankdtest.IDs(out))
}

func TestActivity(t *testing.T) {
	out, err := rankdtest.Run(activity(), rankdtest.Case{
		Params: map[string]any{"endpoint": "ep_0001", "out_key": 2002},
		Inputs: rankdtest.Inputs(rankdtest.Rows(5, 7)),
		Redis:  rankdtest.Replies(map[string]any{"LLEN follow:5": 3, "LLEN follow:7": 0}),
	})
	require.NoError(t, err)
	assert.Equal(t, []any{3.0, 0.0}, rankdtest.Values(out, 2002))
}

func TestActivityFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		outKey int
		reply  any
		class  error
		text   string
	}{
		{"read-only key", 1, 3, task.ErrInvalid, "out_key is 1"},
		{"reply of the wrong kind", 2002, "three", task.ErrRedis, "LLEN follow:5: reply is bulk string, want integer"},
		{"error reply", 2002, errors.New("WRONGTYPE"), task.ErrRedis, "WRONGTYPE"},
		{"lost connection", 2002, rankdtest.Failure{Err: errors.New("lost")}, task.ErrRedis, "lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := rankdtest.Run(activity(), rankdtest.Case{
				Params: map[string]any{"endpoint": "ep_0001", "out_key": tt.outKey},
				Inputs: rankdtest.Inputs(rankdtest.Rows(5)),
				Redis:  rankdtest.Replies(map[string]any{"LLEN follow:5": tt.reply}),
			})
			assert.ErrorIs(t, err, tt.class)
			assert.ErrorContains(t, err, tt.text)
		})
	}
}

func TestFans(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply any
		want  any
		text  string
	}{
		{"a list", 3, 3.0, ""},
		{"no list", 0, 0.0, ""},
		{"a reply of the wrong kind", "three", nil, "LLEN fans:5: reply is bulk string, want integer"},
		{"an error reply", errors.New("WRONGTYPE"), nil, "WRONGTYPE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := rankdtest.Run(fans(), rankdtest.Case{
				Params: map[string]any{"endpoint": "ep_0001", "out_key": 2002},
				Inputs: rankdtest.Inputs(rankdtest.Rows(5, 7)),
				Redis:  rankdtest.Replies(map[string]any{"LLEN fans:5": tt.reply, "LLEN fans:7": 1}),
			})
			if tt.text != "" {
				assert.ErrorIs(t, err, task.ErrRedis)
				assert.ErrorContains(t, err, tt.text)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []any{tt.want, 1.0}, rankdtest.Values(out, 2002))
		})
	}
}

func TestProgram(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	defer redis.Close()
	var out bytes.Buffer
	require.NoError(t, run(&out, redis.Addr()))
	assert.Equal(t, "323 101\n306 88\n168 81\n", out.String())
}

func TestInStock(t *testing.T) {
	spec := inStock(func(_ context.Context, ids []int64) ([]bool, error) {
		have := make([]bool, len(ids))
		for i, id := range ids {
			have[i] = id > 5
		}
		return have, nil
	})
	out, err := rankdtest.Run(spec, rankdtest.Case{Inputs: rankdtest.Inputs(rankdtest.Rows(5, 7, 9))})
	require.NoError(t, err)
	assert.Equal(t, []int64{7, 9}, rankdtest.IDs(out))
}
