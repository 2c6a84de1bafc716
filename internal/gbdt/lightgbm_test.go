package gbdt

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lightDocument is a model file of LightGBM, as the reference reads it.
type lightDocument struct {
	features  int
	objective string
	trees     []lightDocumentTree
}

type lightDocumentTree struct {
	features, decisions, left, right, catBoundaries []int
	thresholds, leaves                              []float64
	catThreshold                                    []uint32
}

// spaced writes a list as LightGBM does, with its names of infinities.
func spaced[T any](list []T) string {
	return strings.NewReplacer("+Inf", "inf", "-Inf", "-inf").Replace(strings.Trim(fmt.Sprint(list), "[]"))
}

func (d *lightDocument) text() string {
	var b strings.Builder
	names := make([]string, d.features)
	for f := range names {
		names[f] = fmt.Sprintf("Column_%d", f)
	}
	fmt.Fprintf(&b, "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=%d\nobjective=%s\nfeature_names=%s\nfeature_infos=none\ntree_sizes=1\n\n",
		d.features-1, d.objective, spaced(names))
	for i, t := range d.trees {
		fmt.Fprintf(&b, "Tree=%d\nnum_leaves=%d\nnum_cat=%d\nsplit_feature=%s\nsplit_gain=\nthreshold=%s\ndecision_type=%s\nleft_child=%s\nright_child=%s\nleaf_value=%s\n",
			i, len(t.leaves), max(0, len(t.catBoundaries)-1), spaced(t.features), spaced(t.thresholds), spaced(t.decisions), spaced(t.left), spaced(t.right), spaced(t.leaves))
		counts := make([]int, 2*len(t.leaves)-1)
		for j := range counts {
			counts[j] = 1 + j*7%5
		}
		fmt.Fprintf(&b, "leaf_count=%s\ninternal_count=%s\n", spaced(counts[:len(t.leaves)]), spaced(counts[len(t.leaves):]))
		if len(t.catBoundaries) > 0 {
			fmt.Fprintf(&b, "cat_boundaries=%s\ncat_threshold=%s\n", spaced(t.catBoundaries), spaced(t.catThreshold))
		}
		b.WriteString("is_linear=0\nshrinkage=0.1\n\n\n")
	}
	b.WriteString("end of trees\n\nfeature_importances:\nColumn_0=3\n\nparameters:\n[boosting: gbdt]\nend of parameters\n\npandas_categorical:null\n")
	return b.String()
}

// margin walks the trees for one row, as Tree::Decision of LightGBM's include/LightGBM/tree.h does.
func (d *lightDocument) margin(row []float64) (sum float64) {
	for _, t := range d.trees {
		at := 0
		if len(t.leaves) == 1 {
			at = -1
		}
		for at >= 0 {
			if t.goesLeft(at, row[t.features[at]]) {
				at = t.left[at]
			} else {
				at = t.right[at]
			}
		}
		sum += t.leaves[^at]
	}
	return sum
}

func (t *lightDocumentTree) goesLeft(at int, v float64) bool {
	decision := t.decisions[at]
	if decision&1 != 0 {
		if math.IsNaN(v) || v >= 1<<31 || int(max(v, -2)) < 0 {
			return false
		}
		set := int(t.thresholds[at])
		for i, word := range t.catThreshold[t.catBoundaries[set]:t.catBoundaries[set+1]] {
			if i == int(v)/32 {
				return word&(1<<(int(v)%32)) != 0
			}
		}
		return false
	}
	missing := decision >> 2
	if math.IsNaN(v) && missing != 2 {
		v = 0
	}
	if missing == 1 && math.Abs(v) <= float64(float32(1e-35)) || missing == 2 && math.IsNaN(v) {
		return decision&2 != 0
	}
	return v <= t.thresholds[at]
}

// lightNumbers are values and thresholds for which a comparison could go wrong.
var lightNumbers = []float64{0, math.Copysign(0, -1), 1e-36, -1e-36, float64(float32(1e-35)), -float64(float32(1e-35)), 1.1e-35, 0.1, float64(float32(0.1)),
	1, 1 + 1.0/(1<<52), 1 - 1.0/(1<<53), -0.5, -1, 2, 31, 32, 33.9, 64, 1e300, -1e300, math.SmallestNonzeroFloat64, 1 << 31, 1<<31 - 1, math.Inf(1), math.Inf(-1)}

func randomLight(rng *rand.Rand, features, trees, leaves int) *lightDocument {
	d := &lightDocument{features: features, objective: "regression"}
	for range trees {
		var t lightDocumentTree
		t.leaves = []float64{rng.NormFloat64()}
		slots := []*int{nil} // the place of leaf i in its parent
		for range rng.IntN(leaves) {
			t.features, t.left, t.right = append(t.features, rng.IntN(features)), append(t.left, 0), append(t.right, 0)
			t.leaves = append(t.leaves, rng.NormFloat64())
		}
		n := len(t.features)
		for split := range n {
			// A split replaces a leaf, which becomes its left child. Its right child is a new
			// leaf.
			leaf := rng.IntN(split + 1)
			if slots[leaf] != nil {
				*slots[leaf] = split
			}
			t.left[split], t.right[split] = ^leaf, ^(split + 1)
			slots[leaf] = &t.left[split]
			slots = append(slots, &t.right[split])
			if rng.IntN(3) == 0 {
				if t.catBoundaries == nil {
					t.catBoundaries = []int{0}
				}
				t.decisions, t.thresholds = append(t.decisions, 1+4*rng.IntN(3)), append(t.thresholds, float64(len(t.catBoundaries)-1))
				for range rng.IntN(3) {
					t.catThreshold = append(t.catThreshold, rng.Uint32())
				}
				t.catBoundaries = append(t.catBoundaries, len(t.catThreshold))
				continue
			}
			threshold := rng.NormFloat64()
			if rng.IntN(3) > 0 {
				threshold = lightNumbers[rng.IntN(len(lightNumbers))]
			}
			t.decisions, t.thresholds = append(t.decisions, 2*rng.IntN(6)), append(t.thresholds, threshold)
		}
		d.trees = append(d.trees, t)
	}
	return d
}

func randomDoubles(rng *rand.Rand, count, features int) [][]float64 {
	rows := make([][]float64, count)
	for i := range rows {
		rows[i] = make([]float64, features)
		for f := range rows[i] {
			switch rng.IntN(6) {
			case 0:
				rows[i][f] = math.NaN()
			case 1:
				rows[i][f] = rng.NormFloat64()
			case 2:
				rows[i][f] = float64(rng.IntN(70))
			case 3:
				rows[i][f] = math.Inf(rng.IntN(2)*2 - 1)
			default:
				rows[i][f] = lightNumbers[rng.IntN(len(lightNumbers))]
			}
		}
	}
	return rows
}

// A model has random trees with splits of all kinds. Its predictions equal a walk of each row
// through each tree, as LightGBM does it, bit for bit.
func TestLightGBMIsTheWalkOfEachRow(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 26))
		d := randomLight(rng, 1+rng.IntN(6), rng.IntN(12), 1+rng.IntN(40))
		m, err := Read([]byte(d.text()))
		require.NoError(t, err, "seed %d", seed)
		rows := randomDoubles(rng, rng.IntN(150), d.features)
		out := make([]float64, len(rows))
		require.True(t, m.Predict(nil, columnsOf(rows, d.features), Prediction, out))
		for i, row := range rows {
			require.Equal(t, d.margin(row), out[i], "seed %d row %d: %v", seed, i, row)
			each := make([]float64, d.features)
			sum, ok := m.Contributions(columnsOf(rows[i:i+1], d.features), each)
			require.True(t, ok)
			for _, v := range each {
				sum += v
			}
			require.InDelta(t, out[i], sum, 1e-4*max(1, math.Abs(out[i])), "seed %d row %d", seed, i)
		}
		assert.Equal(t, len(d.trees), m.Trees())
	}
}

// lightStump returns a model of one split with a decision type. Its leaves are 10 and 20.
func lightStump(decision int, threshold float64) *lightDocument {
	t := lightDocumentTree{features: []int{0}, decisions: []int{decision}, thresholds: []float64{threshold}, left: []int{-1}, right: []int{-2}, leaves: []float64{10, 20}}
	if decision&1 != 0 {
		t.catBoundaries, t.catThreshold = []int{0, 2}, []uint32{1<<3 | 1<<0, 1 << 1} // the categories 0, 3, 33
	}
	return &lightDocument{features: 1, objective: "regression", trees: []lightDocumentTree{t}}
}

// The wanted values were computed by hand from Tree::Decision of LightGBM's
// include/LightGBM/tree.h, not by LightGBM.
func TestLightGBMSplits(t *testing.T) {
	missing := math.NaN()
	for name, c := range map[string]struct {
		decision    int
		threshold   float64
		left, right []float64
	}{
		"up to the threshold":              {0, 0.1, []float64{0.1, -5, math.Inf(-1), missing}, []float64{0.1 + 1.0/(1<<56), math.Inf(1)}},
		"none: NaN is 0":                   {0, -1, []float64{-1}, []float64{missing, 0}},
		"none: the default does not count": {2, -1, []float64{-1}, []float64{missing, 0}},
		"zero, right":                      {4, 1, []float64{1, 0.5, 1.1e-35}, []float64{missing, 0, 1e-35, -1e-35, 2}},
		"zero, left":                       {6, -1, []float64{missing, 0, 1e-35, -1e-36, -1}, []float64{0.5, -0.5}},
		"NaN, right":                       {8, 1, []float64{0, 1}, []float64{missing, 2}},
		"NaN, left":                        {10, -1, []float64{missing, -1}, []float64{0, 2}},
		"missing against the rest":         {8, math.Inf(1), []float64{0, -5, math.MaxFloat64, math.Inf(-1), math.Inf(1)}, []float64{missing}},
		"the rest against missing":         {10, math.Inf(-1), []float64{missing, math.Inf(-1)}, []float64{0, -math.MaxFloat64, math.Inf(1)}},
		"categories":                       {1, 0, []float64{0, 3, 33, 3.9, -0.5}, []float64{1, 2, 32, 34, 64, 1e9, 1e300, -1, -3, missing, math.Inf(1), math.Inf(-1)}},
		"categories, missing is NaN":       {9, 0, []float64{0, 33}, []float64{missing, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Read([]byte(lightStump(c.decision, c.threshold).text()))
			require.NoError(t, err)
			for want, values := range map[float64][]float64{10: c.left, 20: c.right} {
				for _, v := range values {
					out := make([]float64, 1)
					m.Predict(nil, columnsOf([][]float64{{v}}, 1), Prediction, out)
					assert.Equal(t, want, out[0], "%v", v)
				}
			}
		})
	}
}

func TestLightGBMLinks(t *testing.T) {
	for objective, want := range map[string]float64{
		"regression": 1.5, "regression sqrt": 2.25, "lambdarank": 1.5, "rank_xendcg": 1.5, "custom": 1.5,
		"binary sigmoid:1": 1 / (1 + math.Exp(-1.5)), "binary sigmoid:2": 1 / (1 + math.Exp(-3)),
		"cross_entropy": 1 / (1 + math.Exp(-1.5)), "cross_entropy_lambda": math.Log(1 + math.Exp(1.5)),
		"poisson": math.Exp(1.5), "gamma": math.Exp(1.5), "tweedie tweedie_variance_power:1.5": math.Exp(1.5),
		"huber": 1.5, "quantile alpha:0.9": 1.5,
	} {
		d := &lightDocument{features: 1, objective: objective, trees: []lightDocumentTree{{leaves: []float64{1}}, {leaves: []float64{0.5}}}}
		m, err := Read([]byte(d.text()))
		require.NoError(t, err, objective)
		out := make([]float64, 1)
		m.Predict(nil, columnsOf([][]float64{{0}}, 1), Prediction, out)
		assert.InDelta(t, want, out[0], 1e-15*want, objective)
		m.Predict(nil, columnsOf([][]float64{{0}}, 1), Margin, out)
		assert.InDelta(t, 1.5, out[0], 0, objective)
	}
	m, err := Read([]byte(strings.Replace(lightStump(0, 1).text(), "objective=regression\n", "", 1)))
	require.NoError(t, err)
	assert.Equal(t, "custom", m.Objective())
	for _, text := range []string{strings.ReplaceAll(lightStump(0, 1).text(), "\n", "\r\n"), "\ufeff" + lightStump(0, 1).text()} {
		m, err = Read([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, []string{"Column_0"}, m.Names())
	}
}

func TestReadRefusesOfLightGBM(t *testing.T) {
	sound := randomLight(rand.New(rand.NewPCG(1, 1)), 2, 0, 1)
	sound.trees = []lightDocumentTree{{features: []int{0, 1}, decisions: []int{0, 1}, thresholds: []float64{0.5, 0}, left: []int{1, -1}, right: []int{-2, -3},
		leaves: []float64{1, 2, 3}, catBoundaries: []int{0, 1}, catThreshold: []uint32{5}}}
	_, err := Read([]byte(sound.text()))
	require.NoError(t, err)
	for name, c := range map[string]struct{ old, with, want string }{
		"an old version":         {"version=v4", "version=v1", `version: is "v1", must be v2, v3 or v4`},
		"no version":             {"version=v4\n", "", `version: is "", must be v2, v3 or v4`},
		"classes":                {"num_class=1", "num_class=3", "num_class: is 3: models of several classes are not supported"},
		"trees of classes":       {"iteration=1", "iteration=2", "num_tree_per_iteration: is 2: models of several classes are not supported"},
		"an objective":           {"=regression", "=multiclass num_class:1", `objective: "multiclass num_class:1" is not supported`},
		"a slope":                {"=regression", "=binary sigmoid:0", `objective: sigmoid must be a number above 0, not "0"`},
		"a random forest":        {"label_index=0", "average_output", "average_output: random forests are not supported"},
		"no features":            {"max_feature_idx=1", "max_feature_idx=-1", `max_feature_idx: must be an integer that is not negative, not "-1"`},
		"too many features":      {"max_feature_idx=1", "max_feature_idx=65536", "max_feature_idx: is 65536, must be from 0 to 65535"},
		"too few names":          {"Column_0 Column_1", "Column_0", "feature_names: has 1 names, max_feature_idx is 1"},
		"a line":                 {"label_index=0", "rubbish", `line 5: must be name=value, not "rubbish"`},
		"a name twice":           {"label_index=0", "version=v4", "line 5: version stands twice"},
		"another tree":           {"Tree=0", "Tree=1", `line 12: must be Tree=0 or the end of trees, not "Tree=1"`},
		"no end":                 {"end of trees", "", "Tree=0: line 32: must be name=value, not \"feature_importances:\"; no line says \"end of trees\": the file is cut off, or still being written"},
		"no leaves":              {"num_leaves=3", "num_leaves=0", "Tree=0: num_leaves: is 0, must be at least 1"},
		"too many leaves":        {"num_leaves=3", "num_leaves=2147483647", "Tree=0: num_leaves: the trees have more than 8388608 nodes together"},
		"other leaves":           {"num_leaves=3", "num_leaves=4", "Tree=0: leaf_value: has 3 elements, must have 4"},
		"fewer leaves":           {"num_leaves=3", "num_leaves=2", "Tree=0: leaf_value: has more than 2 elements"},
		"a feature too high":     {"split_feature=0 1", "split_feature=0 2", "Tree=0: split_feature[1]: is 2, must be from 0 to max_feature_idx, 1"},
		"a negative feature":     {"split_feature=0 1", "split_feature=-1 1", "Tree=0: split_feature[0]: is -1, must be from 0 to max_feature_idx, 1"},
		"a missing type":         {"decision_type=0 1", "decision_type=12 1", "Tree=0: decision_type[0]: is 12, must be from 0 to 11"},
		"a negative decision":    {"decision_type=0 1", "decision_type=-2 1", "Tree=0: decision_type[0]: is -2, must be from 0 to 11"},
		"a cycle":                {"left_child=1 -1", "left_child=0 -1", "Tree=0: left_child[0]: split 0 is reached twice: the nodes do not form a tree"},
		"a shared leaf":          {"right_child=-2 -3", "right_child=-2 -1", "Tree=0: right_child[1]: leaf 0 is reached twice: the nodes do not form a tree"},
		"a split left behind":    {"left_child=1 -1", "left_child=-1 -1", "Tree=0: left_child: the root leads to 3 of 5 nodes"},
		"a child too high":       {"left_child=1 -1", "left_child=2 -1", "Tree=0: left_child[0]: is 2, must be from -3 to 1"},
		"a leaf too high":        {"right_child=-2 -3", "right_child=-2 -4", "Tree=0: right_child[1]: is -4, must be from -3 to 1"},
		"a fraction":             {"left_child=1 -1", "left_child=1.5 -1", "Tree=0: left_child[0]: must be an integer of 32 bits, not 1.5"},
		"a threshold":            {"threshold=0.5 0", "threshold=nan 0", "Tree=0: threshold[0]: must be a number, inf or -inf, not nan"},
		"a threshold too high":   {"threshold=0.5 0", "threshold=1e999 0", "Tree=0: threshold[0]: must be a number, inf or -inf, not 1e999"},
		"an infinite set":        {"threshold=0.5 0", "threshold=0.5 inf", "Tree=0: threshold[1]: is +Inf, must be the number of a set below num_cat, 1"},
		"a leaf's value":         {"leaf_value=1 2 3", "leaf_value=1 2 1e999", "Tree=0: leaf_value[2]: must be a finite number, not 1e999"},
		"a set too high":         {"threshold=0.5 0", "threshold=0.5 1", "Tree=0: threshold[1]: is 1, must be the number of a set below num_cat, 1"},
		"half a set":             {"threshold=0.5 0", "threshold=0.5 0.5", "Tree=0: threshold[1]: is 0.5, must be the number of a set below num_cat, 1"},
		"many sets":              {"num_cat=1", "num_cat=2147483647", "Tree=0: num_cat: is 2147483647, more than 8388608"},
		"no sets":                {"num_cat=1", "num_cat=0", "Tree=0: threshold[1]: is 0, must be the number of a set below num_cat, 0"},
		"falling bounds of sets": {"cat_boundaries=0 1", "cat_boundaries=0 -1", "Tree=0: cat_boundaries: must rise from 0 on"},
		"late bounds of sets":    {"cat_boundaries=0 1", "cat_boundaries=1 1", "Tree=0: cat_boundaries: must rise from 0 on"},
		"a long set":             {"cat_boundaries=0 1", "cat_boundaries=0 2147483647", "Tree=0: cat_threshold: has 1 elements, must have 2147483647"},
		"a negative word":        {"cat_threshold=5", "cat_threshold=-5", "Tree=0: cat_threshold[0]: must be an integer of 32 bits without a sign, not -5"},
		"linear leaves":          {"is_linear=0", "is_linear=1", "Tree=0: is_linear: linear trees are not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, sound.text(), c.old)
			_, err := Read([]byte(strings.Replace(sound.text(), c.old, c.with, 1)))
			require.EqualError(t, err, c.want)
		})
	}
	for end := range strings.Index(sound.text(), "end of trees") {
		_, err := Read([]byte(sound.text()[:end]))
		require.Error(t, err, "cut at byte %d", end)
		if end > len("tree") {
			require.ErrorContains(t, err, "the file is cut off, or still being written", "cut at byte %d", end)
		}
	}
}

func TestLightGBMBoundsCategoricalSplits(t *testing.T) {
	var d lightDocument
	d.features, d.objective = 1, "regression"
	for i := range MaxCategorySplits + 1 {
		tree := lightStump(1, 0).trees[0]
		tree.catThreshold = []uint32{uint32(i), 1}
		d.trees = append(d.trees, tree)
	}
	_, err := Read([]byte(d.text()))
	require.EqualError(t, err, fmt.Sprintf("Tree=%d: split_feature[0]: the trees have more than %d different categorical splits", MaxCategorySplits, MaxCategorySplits))
	for i := range d.trees {
		d.trees[i].catThreshold = []uint32{uint32(i % 3), 1}
	}
	m, err := Read([]byte(d.text()))
	require.NoError(t, err)
	assert.Len(t, m.forest.inputs, 3, "splits with the same set share an input")
}

func TestReadFolderOfLightGBM(t *testing.T) {
	light := &fstest.MapFile{Data: []byte(lightStump(0, 1).text())}
	s, err := ReadFolder(fstest.MapFS{"clicks.lightgbm": light, "likes.json": {Data: small().text(t)}}, "models")
	require.NoError(t, err)
	m, err := s.Get("clicks")
	require.NoError(t, err)
	assert.Equal(t, 1, m.Trees())
	_, err = ReadFolder(fstest.MapFS{"clicks.lightgbm": light, "clicks.json": light}, "models")
	assert.EqualError(t, err, "models: clicks.lightgbm: the model has two files")
}

// Read returns a model that predicts, or an error of one line, whatever follows the first line
// of LightGBM's format.
func FuzzReadLightGBM(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 26))
	for range 4 {
		f.Add(randomLight(rng, 3, 2, 6).text()[len("tree\n"):])
	}
	f.Fuzz(func(t *testing.T, text string) { readOrOneLine(t, []byte("tree\n"+text)) })
}
