package data_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/enginetest"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// givenTables have lists of both kinds of ids and of scores, and products, whose ids are strings.
func givenTables() fstest.MapFS {
	params := registrytest.Param(1, "ids", "int_list", registrytest.Nullable, "context = true")
	params += registrytest.Param(2, "skus", "string_list", registrytest.Nullable, "context = true")
	params += registrytest.Param(3, "bm25", "float_list", registrytest.Nullable, "context = true", "override = true")
	params += registrytest.Param(4, "weight", "float", registrytest.Nullable)
	tables := registrytest.Tables{Keys: registrytest.ID + registrytest.Key(10, "score", "float", registrytest.Nullable, registrytest.Writable) +
		registrytest.Key(11, "text_score", "float", registrytest.Nullable, registrytest.Writable), Params: params, Endpoints: registrytest.Redis}.FS()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"product\"\nid = \"string\"\n")}
	return tables
}

// givenPlan returns a plan of one node.
func givenPlan(name, params string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "outputs": ["g"], "nodes": [{"node_id": "g", "op": "given", "inputs": [], "params": %s}]}`, name, params)
}

// The rows of given are the ids of the request in their order, each once, with the score of its first place.
func TestRequestsGiveRows(t *testing.T) {
	folder := fstest.MapFS{}
	for name, params := range map[string]string{
		"ids": `{"ids_param_id": 1}`, "scored": `{"ids_param_id": 1, "scores_param_id": 3}`, "named": `{"ids_param_id": 1, "scores_param_id": 3, "out_key": "text_score"}`,
		"skus": `{"ids_param_id": 2, "scores_param_id": 3, "entity": "product"}`,
	} {
		folder[name+".plan.json"] = &fstest.MapFile{Data: []byte(givenPlan(name, params))}
	}
	rng := rand.New(rand.NewPCG(57, 5))
	enginetest.ForModels(t, rankd.Options{Plans: folder, Registry: givenTables()}, func(t *testing.T, e *rankd.Engine) {
		for i := range 60 {
			for name, column := range map[string]string{"ids": "", "scored": "score", "named": "text_score", "skus": "score"} {
				n := rng.IntN(40)
				ids, skus, scores, want, seen := []any{}, []any{}, []any{}, "[", map[int]bool{}
				for range n {
					id, score := rng.IntN(30)-5, any(float64(rng.IntN(100))/8)
					if rng.IntN(5) == 0 {
						score = nil
					}
					ids, skus, scores = append(ids, int64(id)), append(skus, fmt.Sprint("sku ", id)), append(scores, score)
					if seen[id] {
						continue
					}
					if len(seen) > 0 {
						want += ","
					}
					seen[id] = true
					if want += fmt.Sprintf(`{"id":%d`, id); name == "skus" {
						want = want[:len(want)-len(fmt.Sprint(id))] + fmt.Sprintf(`"sku %d"`, id)
					}
					if column != "" && score != nil { // an answer leaves out nulls
						want += fmt.Sprintf(`,%q:%v`, column, score)
					}
					want += "}"
				}
				r := rankd.Request{Plan: name, UserID: 1, Context: map[string]any{"ids": ids, "skus": skus}}
				if i%2 == 0 {
					r.Context["bm25"] = scores
				} else {
					r.Context["bm25"], r.Params = []any{1}, map[string]any{"bm25": scores} // an override counts
				}
				got, err := e.Rank(t.Context(), r)
				require.NoError(t, err)
				require.JSONEq(t, want+"]", enginetest.JSONMember(t, string(got.AppendJSON(nil, rankd.FormatFlat)), "candidates"), name)
			}
		}
	})
}

func TestRequestsGiveWrongRows(t *testing.T) {
	folder := fstest.MapFS{
		"scored.plan.json": {Data: []byte(givenPlan("scored", `{"ids_param_id": 1, "scores_param_id": 3}`))},
		"skus.plan.json":   {Data: []byte(givenPlan("skus", `{"ids_param_id": 2, "entity": "product"}`))},
	}
	enginetest.OnReactor(t, rankd.Options{Plans: folder, Registry: givenTables(), MaxRows: 100}, func(t *testing.T, e *rankd.Engine) {
		for document, want := range map[string]string{
			`"context": {"ids": [1, 2], "bm25": [0.5]}`:                                             `Invalid request: context member "bm25" must have a score for each of the 2 ids of "ids", got 1`,
			`"context": {"ids": [], "bm25": [0.5]}`:                                                 `for each of the 0 ids of "ids", got 1`,
			`"context": {"ids": [1, 2]}`:                                                            `Invalid request: context member "bm25" is missing, and has the scores of the 2 ids of "ids"`,
			`"context": {"ids": [1, 2], "bm25": null}`:                                              `context member "bm25" is missing`,
			`"context": {"bm25": [0.5]}`:                                                            `Invalid request: context member "ids" is missing, and has the ids of the rows`,
			`"context": {"ids": [1, null], "bm25": [0.5, 1]}`:                                       `must be a list of integers of 64 bits, but item 2 is null`,
			`"context": {"ids": [1], "bm25": ["0.5"]}`:                                              `must be a list of numbers, but item 1 is "0.5"`,
			`"context": {"ids": [1], "bm25": 0.5}`:                                                  `must be a list of numbers, got the number 0.5`,
			`"plan": "skus", "context": {"skus": ["a", ""]}`:                                        `context member "skus" must have ids of 1 to 256 bytes, but item 2 is ""`,
			`"plan": "skus", "context": {"ids": [1]}`:                                               `context member "skus" is missing`,
			`"context": {"ids": [1], "bm25": [0.5]}, "param_overrides": {"bm25": [1, 2]}`:           `got 2`,
			`"context": {"ids": [` + fmt.Sprint(1) + `], "bm25": [1]}, "param_overrides": {"x": 1}`: `unknown parameter "x"`,
		} {
			r, err := e.ParseRequest([]byte(`{"user_id": 1, "plan": "scored", ` + document + `}`))
			if err == nil {
				_, err = e.Rank(t.Context(), r)
			}
			require.ErrorIs(t, err, rankd.ErrInvalidRequest, document)
			assert.ErrorContains(t, err, want, document)
		}
		many := make([]int64, 101)
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "scored", UserID: 1, Context: map[string]any{"ids": many, "bm25": make([]float64, 101)}})
		assert.ErrorIs(t, err, rankd.ErrTooManyRows)
	})
}

// A plan says which lists have the ids and the scores. The lists fit the ids of the entity.
func TestPlansTakeRowsOfRequests(t *testing.T) {
	reg, err := registry.Load(givenTables(), "dev")
	require.NoError(t, err)
	for params, want := range map[string]string{
		`{"ids_param_id": 1}`: "", `{"ids_param_id": 2, "entity": "product", "scores_param_id": 3, "out_key": "text_score"}`: "",
		`{}`:                   "params.ids_param_id: is missing",
		`{"ids_param_id": 3}`:  "params.ids_param_id: must be a parameter of type int_list or string_list, not the integer 3",
		`{"ids_param_id": 9}`:  "params.ids_param_id: must be a parameter of type int_list or string_list, not the integer 9",
		`{"ids_param_id": -1}`: "params.ids_param_id: must be",
		`{"ids_param_id": 2}`:  "params.ids_param_id: is skus of type string_list, and the ids are integers",
		`{"ids_param_id": 1, "entity": "product"}`:  "params.ids_param_id: is ids of type int_list, and the ids of entity product are strings",
		`{"ids_param_id": 1, "scores_param_id": 4}`: "params.scores_param_id: must be a parameter of type float_list, not the integer 4",
		`{"ids_param_id": 1, "out_key": "score"}`:   "params.out_key: has no effect without scores",
	} {
		_, err := plan.Load("p.plan.json", []byte(givenPlan("p", params)), builtin.Catalog(), reg)
		if want == "" {
			assert.NoError(t, err, params)
			continue
		}
		assert.ErrorContains(t, err, want, params)
	}
}
