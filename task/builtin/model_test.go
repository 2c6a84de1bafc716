package builtin

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// modelTree is a tree of a model file. Node i has two children, or -1 for a leaf. A split has a
// feature and a condition, a leaf has a value.
type modelTree struct {
	Left       []int     `json:"left_children"`
	Right      []int     `json:"right_children"`
	Features   []int     `json:"split_indices"`
	Conditions []float32 `json:"split_conditions"`
	Default    []bool    `json:"default_left"`
	Covers     []float32 `json:"sum_hessian,omitempty"`
}

// modelFile returns a model for XGBoost's squared error, with a base score of 0.
func modelFile(t testing.TB, names []string, features int, trees ...modelTree) []byte {
	if names == nil {
		names = []string{}
	}
	text, err := json.Marshal(map[string]any{"learner": map[string]any{
		"feature_names": names, "learner_model_param": map[string]any{"base_score": "[0E0]", "num_feature": json.Number("1").String()},
		"objective": map[string]any{"name": "reg:squarederror"}, "gradient_booster": map[string]any{"name": "gbtree", "model": map[string]any{"trees": trees}},
	}})
	require.NoError(t, err)
	return []byte(strings.Replace(string(text), `"num_feature":"1"`, `"num_feature":"`+string(rune('0'+features))+`"`, 1))
}

// stump is a tree with one split.
func stump(feature int, below float32, defaultLeft bool, left, right float32) modelTree {
	return modelTree{Left: []int{1, -1, -1}, Right: []int{2, -1, -1}, Features: []int{feature, 0, 0}, Conditions: []float32{below, left, right},
		Default: []bool{defaultLeft, false, false}}
}

// testModels are models of stumps, whose sums are exact.
func testModels(t testing.TB) *gbdt.Set {
	four := []modelTree{stump(0, 0.5, true, 1, 2), stump(1, 0, false, 10, 20), stump(2, 1, true, 100, 200), stump(3, 4, false, 1000, 2000)}
	first, second := stump(0, 1.5, true, 1, 2), stump(1, 0, false, 10, 20)
	first.Covers, second.Covers = []float32{4, 1, 3}, []float32{4, 2, 2}
	s, err := gbdt.ReadFolder(fstest.MapFS{
		"told.json":    {Data: modelFile(t, []string{"k1001", "k5001"}, 2, first, second)},
		"named.json":   {Data: modelFile(t, []string{"k1001", "k5001", "k5101", "id"}, 4, four...)},
		"unnamed.json": {Data: modelFile(t, nil, 4, four...)},
		"unused.json":  {Data: modelFile(t, []string{"nowhere", "k5001"}, 2, stump(1, 0, true, 1, 2))},
		"strange.json": {Data: modelFile(t, []string{"a key", "k5001"}, 2, stump(0, 0, true, 1, 2))},
		"text.json":    {Data: modelFile(t, []string{"k3001"}, 1, stump(0, 0, true, 1, 2))},
		"score.json":   {Data: modelFile(t, []string{"second"}, 1, stump(0, 0, true, 1, 2))},
		"huge.json":    {Data: modelFile(t, []string{"k5001"}, 1, stump(0, 0, true, 3e38, 3e38), stump(0, 0, true, 3e38, 3e38))},
	}, "models")
	require.NoError(t, err)
	return s
}

// modelReference returns the sum of the four stumps for one row.
func modelReference(row plainRow) float64 {
	choose := func(v float64, ok bool, below float32, defaultLeft bool, left, right float64) float64 {
		if ok && float32(v) < below || !ok && defaultLeft {
			return left
		}
		return right
	}
	x, xOK := row.number(keyFloat)
	n, nOK := row.number(keyInt)
	b, bOK := row.fields[keyBool].(bool)
	flag := 0.0
	if b {
		flag = 1
	}
	id, _ := row.number(registry.IDKey)
	return choose(x, xOK, 0.5, true, 1, 2) + choose(n, nOK, 0, false, 10, 20) + choose(flag, bOK, 1, true, 100, 200) + choose(id, true, 4, false, 1000, 2000)
}

func TestModelIsTheReference(t *testing.T) {
	for name, params := range map[string]map[string]any{
		"by the names of the file": {"model": "named", "out_key": "strict"},
		"by a list":                {"model": "unnamed", "out_key": "strict", "features": []any{"k1001", "k5001", 5101, "id"}},
		"a list before names":      {"model": "named", "out_key": "strict", "features": []any{"k1001", "k5001", 5101, "id"}},
		"the margin":               {"model": "named", "out_key": "score", "output": "margin"},
	} {
		t.Run(name, func(t *testing.T) {
			run := nodeCase{params: params}.runner(t, model(testModels(t)))
			eachRandom(t, 60, func(t *testing.T, _ *rand.Rand, in rowset.RowSet) {
				rows := plainRows(in)
				out, err := run(in, 0)
				require.NoError(t, err)
				for i, row := range plainRows(out) {
					require.Equal(t, rows[i].row, row.row)
					got, ok := row.number(keyStrict)
					if params["out_key"] == "score" {
						got, ok = row.number(keyScore)
					}
					require.True(t, ok)
					require.Equal(t, modelReference(rows[i]), got)
				}
			})
		})
	}
}

func TestModelReads(t *testing.T) {
	for name, want := range map[string][]registry.KeyID{"named": {registry.IDKey, 1001, 5001, 5101}, "unused": {5001}} {
		spec := model(testModels(t))
		node, err := nodeCase{params: map[string]any{"model": name, "out_key": "score"}}.load(t, spec)
		require.NoError(t, err)
		assert.Equal(t, want, spec.Reads(node, testRegistry()), name)
	}
}

func TestModelFails(t *testing.T) {
	in := rowset.Dense(batchOf(7))
	_, err := nodeCase{params: map[string]any{"model": "huge", "out_key": "score"}}.runner(t, model(testModels(t)))(in, 0)
	assert.EqualError(t, err, "model: the prediction of row 0, id 7, is not finite")

	node, err := nodeCase{params: map[string]any{"model": "named", "out_key": "score"}}.load(t, model(testModels(t)))
	require.NoError(t, err)
	ctx := &task.Ctx{Node: node, Inputs: []rowset.RowSet{in}, Registry: testRegistry()}
	cancel(ctx)
	_, err = invoke(ctx)
	assert.ErrorIs(t, err, task.ErrCancelled)
}

func TestModelRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		params map[string]any
		want   string
	}{
		"an unknown model":      {map[string]any{"model": "name"}, `params.model: there is no model "name" in models; the nearest is "named"`},
		"no name":               {map[string]any{"model": "unnamed"}, "params.features: is missing: the model does not name its 4 features"},
		"too few features":      {map[string]any{"model": "named", "features": []any{"k1001"}}, "params.features: lists 1 columns, and the model has 4 features"},
		"an unknown key":        {map[string]any{"model": "strange"}, `params.model: feature "a key" is not a registered key; features can list the columns`},
		"a text":                {map[string]any{"model": "text"}, `params.model: feature "k3001" is a key of type string, must be int, float or bool`},
		"a text in the list":    {map[string]any{"model": "unused", "features": []any{"k1001", "k3001"}}, `params.features[1]: must be a key of type int, float or bool, not key 3001 (k3001) of type string`},
		"an unknown output":     {map[string]any{"model": "named", "output": "class"}, `params.output: must be "prediction" or "margin", not "class"`},
		"a column that is read": {map[string]any{"model": "named", "out_key": "fixed"}, "params.out_key: must be a key that the task may write, and key 6004 (fixed) is read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			params := map[string]any{"out_key": "score"}
			for name, v := range c.params {
				params[name] = v
			}
			nodeCase{params: params}.refuses(t, model(testModels(t)), c.want)
		})
	}
	_, err := nodeCase{params: map[string]any{"model": "score", "out_key": "score"}}.load(t, model(testModels(t)))
	assert.EqualError(t, err, `p.plan.json: node "it": nodes[0]: reads column "second" (6002), which no node before it writes`)
	nodeCase{params: map[string]any{"model": "x", "out_key": "score"}}.refuses(t, model(nil), `params.model: there is no model "x": no folder of models is given (--model_dir)`)
}

// A model of LightGBM compares doubles, and a null takes the default direction.
func TestModelOfLightGBM(t *testing.T) {
	models, err := gbdt.ReadFolder(fstest.MapFS{"light.lightgbm": {Data: []byte("tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\n" +
		"objective=lambdarank\nfeature_names=k1001\n\nTree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\nthreshold=0.5\ndecision_type=10\n" +
		"left_child=-1\nright_child=-2\nleaf_value=1 2\n\nend of trees\n")}}, "models")
	require.NoError(t, err)
	run := nodeCase{params: map[string]any{"model": "light", "out_key": "score"}}.runner(t, model(models))
	eachRandom(t, 30, func(t *testing.T, _ *rand.Rand, in rowset.RowSet) {
		rows := plainRows(in)
		out, err := run(in, 0)
		require.NoError(t, err)
		for i, row := range plainRows(out) {
			want := 1.0
			if x, ok := rows[i].number(keyFloat); ok && x > 0.5 {
				want = 2
			}
			got, ok := row.number(keyScore)
			require.True(t, ok)
			require.Equal(t, want, got)
		}
	})
}
