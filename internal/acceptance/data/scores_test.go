package data_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/rankdtest"
)

// scoresPlan follows, scores with every task that scores, and keeps the country of the followed
// users in a separate column.
const scoresPlan = `{"schema_version": 1, "plan_name": "scores", "outputs": ["top"],
	"expr_table": {"e_id": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 0.01}},
		"e_more": {"op": "mul", "a": {"op": "key_ref", "key_id": 2001}, "b": {"op": "const_number", "value": 2}},
		"e_sum": {"op": "add", "a": {"op": "key_ref", "key_id": 1001}, "b": {"op": "key_ref", "key_id": 2001}},
		"e_back": {"op": "neg", "x": {"op": "key_ref", "key_id": 2002}}},
	"pred_table": {"p_us": {"op": "in", "lhs": {"op": "key_ref", "key_id": 3001}, "list": ["US", "CA"]}},
	"nodes": [
		{"node_id": "me",     "op": "viewer",    "inputs": [],         "params": {"endpoint": "ep_0001"}},
		{"node_id": "all",    "op": "follow",    "inputs": ["me"],     "params": {"endpoint": "ep_0001", "fanout": 200}},
		{"node_id": "score",  "op": "vm",        "inputs": ["all"],    "params": {"out_key": 2002, "expr_id": "e_id"}},
		{"node_id": "model",  "op": "model",     "inputs": ["score"],  "params": {"model": "example", "features": ["id", "score"], "out_key": "model_score_1"}},
		{"node_id": "light",  "op": "model",     "inputs": ["model"],  "params": {"model": "light", "features": ["id", "model_score_1"], "out_key": "model_score_1"}},
		{"node_id": "norm",   "op": "normalize", "inputs": ["light"],  "params": {"by": "model_score_1", "out_key": "model_score_2", "method": "reciprocal_rank"}},
		{"node_id": "group",  "op": "aggregate", "inputs": ["norm"],   "params": {"by": ["country"], "values": [{"method": "mean", "column": "id", "out_key": "score"},
			{"method": "count", "out_key": "model_score_2"}]}},
		{"node_id": "boost",  "op": "boost",     "inputs": ["group"],  "params": {"score": "model_score_2", "out_key": "final_score", "mode": "all",
			"rules": [{"pred_id": "p_us", "expr_id": "e_more", "name": "near"}]}},
		{"node_id": "drawn",  "op": "sample",    "inputs": ["boost"],  "params": {"count": 120, "weight": "final_score", "seed": 11, "propensity": "model_score_2"}},
		{"node_id": "few",    "op": "cap",       "inputs": ["drawn"],  "params": {"by": "country", "max": 30}},
		{"node_id": "spread", "op": "diversify", "inputs": ["few"],    "params": {"by": "country", "max": 2, "window": 5}},
		{"node_id": "decay",  "op": "diversify", "inputs": ["spread"], "params": {"by": "country", "method": "decay", "score": "final_score", "out_key": "model_score_2"}},
		{"node_id": "top",    "op": "top",       "inputs": ["decay"],  "params": {"expr_id": "e_sum", "out_key": "score", "count": 15, "threshold": 0.1,
			"rerank_expr_id": "e_back", "rerank_count": 20, "rerank_out_key": "final_score"}}]}`

// A plan of all tasks that score has the same answer with each engine, scheduling mode and kind
// of Redis.
func TestScoresAreTheSameEverywhere(t *testing.T) {
	embedded, err := rankdtest.StartRedis()
	require.NoError(t, err)
	defer embedded.Close()
	kinds := map[string]string{"embedded": embedded.Addr()}
	if os.Getenv("RANKD_REDIS_SERVER") != "" || os.Getenv("RANKD_REQUIRE_REDIS") != "" {
		server := testworld.StartRedis(t)
		require.NoError(t, devredis.Load(t.Context(), server.Addr))
		kinds["redis-server"] = server.Addr
	}
	var first []string
	for kind, addr := range kinds {
		for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
			for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll} {
				if model != rankd.Reactor && mode != rankd.Adaptive {
					continue // only the reactor has modes
				}
				t.Run(fmt.Sprint(kind, " ", model, " ", mode), func(t *testing.T) {
					e, err := rankd.Open(rankd.Options{Redis: addr, Model: model, Scheduling: rankd.Scheduling{Mode: mode},
						Models: os.DirFS("testdata/models"), PlanFile: "scores.plan.json", PlanText: []byte(scoresPlan)})
					require.NoError(t, err)
					defer e.Close()
					for range 3 { // nodes may move as their times are learned
						a, err := e.Rank(t.Context(), rankd.Request{UserID: 7})
						require.NoError(t, err)
						var rows []string
						for c := range a.Candidates() {
							score, _ := c.Float("score")
							final, _ := c.Float("final_score")
							modelled, _ := c.Float("model_score_1")
							rows = append(rows, fmt.Sprint(c.ID(), score, final, modelled))
						}
						require.Len(t, rows, 15)
						if first == nil {
							first = rows
						}
						assert.Equal(t, first, rows)
					}
				})
			}
		}
	}
}

func TestOpenRefusesModels(t *testing.T) {
	for name, c := range map[string]struct {
		options rankd.Options
		want    string
	}{
		"a bad file": {rankd.Options{Models: fstest.MapFS{"bad.json": {Data: []byte("{}")}}},
			`the model folder: bad.json: learner.gradient_booster.name: is "", must be "gbtree"`},
		"a plan with an unknown model": {rankd.Options{Models: fstest.MapFS{}, PlanFile: "s.plan.json", PlanText: []byte(scoresPlan)},
			`s.plan.json: node "model": nodes[3].params.model: there is no model "example": there are no files *.json or *.lightgbm in the model folder`},
		"a plan with a model and no folder": {rankd.Options{PlanFile: "s.plan.json", PlanText: []byte(scoresPlan)},
			`s.plan.json: node "model": nodes[3].params.model: there is no model "example": no folder of models is given (--model_dir)`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rankd.Open(c.options)
			assert.EqualError(t, err, c.want)
		})
	}
}

// Open reads the models once: later changes of the folder have no effect.
func TestModelsAreReadAtOpen(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Join("testdata", "models"))))
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	defer redis.Close()
	e, err := rankd.Open(rankd.Options{Redis: redis.Addr(), Models: os.DirFS(folder), PlanFile: "scores.plan.json", PlanText: []byte(scoresPlan)})
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, os.RemoveAll(folder))
	_, err = e.Rank(t.Context(), rankd.Request{UserID: 7})
	assert.NoError(t, err)
}
