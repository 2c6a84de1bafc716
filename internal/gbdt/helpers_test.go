package gbdt

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// document is a model file, as the reference reads it.
type document struct {
	Learner struct {
		FeatureNames []string `json:"feature_names"`
		Params       struct {
			BaseScore string `json:"base_score"`
			Classes   string `json:"num_class"`
			Features  string `json:"num_feature"`
			Targets   string `json:"num_target"`
		} `json:"learner_model_param"`
		Objective struct {
			Name string `json:"name"`
		} `json:"objective"`
		Booster struct {
			Name  string `json:"name"`
			Model struct {
				TreeInfo []int      `json:"tree_info"`
				Trees    []jsonTree `json:"trees"`
			} `json:"model"`
		} `json:"gradient_booster"`
	} `json:"learner"`
	Version []int `json:"version"`
}

// jsonTree is a tree of a model file.
type jsonTree struct {
	Param struct {
		Nodes    string `json:"num_nodes"`
		LeafSize string `json:"size_leaf_vector"`
	} `json:"tree_param"`
	Left        []int     `json:"left_children"`
	Right       []int     `json:"right_children"`
	Features    []int     `json:"split_indices"`
	Conditions  []float32 `json:"split_conditions"`
	DefaultLeft []int     `json:"default_left"`
	Kinds       []int     `json:"split_type"`
	Covers      []float32 `json:"sum_hessian,omitempty"`
	Categories  []int     `json:"categories,omitempty"`
	Splits      []int     `json:"categories_nodes,omitempty"`
	Segments    []int     `json:"categories_segments,omitempty"`
	Sizes       []int     `json:"categories_sizes,omitempty"`
}

// categories makes a node a categorical split, from which these categories go right.
func (t *jsonTree) categories(node int, right ...int) {
	if node < len(t.Kinds) {
		t.Kinds[node] = 1
	}
	t.Splits, t.Segments, t.Sizes = append(t.Splits, node), append(t.Segments, len(t.Categories)), append(t.Sizes, len(right))
	t.Categories = append(t.Categories, right...)
}

// goesRight reports whether a value is a category that goes right from a categorical split.
func (t *jsonTree) goesRight(node int, v float32) bool {
	i := slices.Index(t.Splits, node)
	return v >= 0 && v < 1<<24 && slices.Contains(t.Categories[t.Segments[i]:t.Segments[i]+t.Sizes[i]], int(v))
}

// shape describes a random model.
type shape struct {
	features, trees, depth int
	split                  float64 // share of the nodes above depth that are splits
	numbers                []float32
	categories             bool // a quarter of the splits are categorical
}

// randomModel returns a model file of random trees. Thresholds are chosen among the numbers, if
// there are any.
func randomModel(rng *rand.Rand, s shape) *document {
	d := new(document)
	l := &d.Learner
	d.Version = []int{1, 7, 4}
	l.Params.BaseScore, l.Params.Classes, l.Params.Features, l.Params.Targets = "5E-1", "0", fmt.Sprint(s.features), "1"
	l.FeatureNames, l.Booster.Model.TreeInfo, l.Booster.Model.Trees = []string{}, []int{}, []jsonTree{}
	l.Objective.Name, l.Booster.Name = "reg:squarederror", "gbtree"
	for range s.trees {
		l.Booster.Model.TreeInfo = append(l.Booster.Model.TreeInfo, 0)
		l.Booster.Model.Trees = append(l.Booster.Model.Trees, randomTree(rng, s))
	}
	return d
}

func randomTree(rng *rand.Rand, s shape) (t jsonTree) {
	var grow func(depth int) int
	grow = func(depth int) int {
		at := len(t.Left)
		t.Left, t.Right = append(t.Left, -1), append(t.Right, -1)
		t.Features, t.Kinds = append(t.Features, rng.IntN(s.features)), append(t.Kinds, 0)
		t.DefaultLeft = append(t.DefaultLeft, rng.IntN(2))
		number := float32(rng.NormFloat64())
		t.Covers = append(t.Covers, 1+float32(rng.IntN(100)))
		if len(s.numbers) > 0 && rng.IntN(4) > 0 {
			number = s.numbers[rng.IntN(len(s.numbers))]
		}
		t.Conditions = append(t.Conditions, number)
		if depth < s.depth && rng.Float64() < s.split {
			if s.categories && rng.IntN(4) == 0 {
				t.categories(at, rng.IntN(3), 30+rng.IntN(3), rng.IntN(200))
			}
			if rng.IntN(2) == 0 { // the order of nodes in the file does not matter
				t.Left[at] = grow(depth + 1)
				t.Right[at] = grow(depth + 1)
			} else {
				t.Right[at] = grow(depth + 1)
				t.Left[at] = grow(depth + 1)
			}
		}
		return at
	}
	grow(0)
	t.Param.Nodes, t.Param.LeafSize = fmt.Sprint(len(t.Left)), "0"
	return t
}

func (d *document) text(t testing.TB) []byte {
	text, err := json.Marshal(d)
	require.NoError(t, err)
	return text
}

// margin walks the trees for one row, as the format defines it.
func (d *document) margin(base float32, row []float32) float32 {
	for _, t := range d.Learner.Booster.Model.Trees {
		at := 0
		for t.Left[at] >= 0 {
			v := row[t.Features[at]]
			left := v < t.Conditions[at]
			if t.Kinds[at] == 1 {
				left = !t.goesRight(at, v)
			}
			if math.IsNaN(float64(v)) {
				left = t.DefaultLeft[at] == 1
			}
			if left {
				at = t.Left[at]
			} else {
				at = t.Right[at]
			}
		}
		base += t.Conditions[at]
	}
	return base
}

// columnsOf returns a Column for each feature of these rows.
func columnsOf[T float32 | float64](rows [][]T, features int) []Column {
	columns := make([]Column, features)
	for f := range columns {
		columns[f] = func(values []float64, from int) {
			for i := range values {
				values[i] = float64(rows[from+i][f])
			}
		}
	}
	return columns
}

// randomRows returns rows of the numbers and of others. That share of the values is missing.
func randomRows(rng *rand.Rand, count, features int, missing float64, numbers []float32) [][]float32 {
	rows := make([][]float32, count)
	for i := range rows {
		rows[i] = make([]float32, features)
		for f := range rows[i] {
			switch {
			case rng.Float64() < missing:
				rows[i][f] = float32(math.NaN())
			case len(numbers) > 0 && rng.IntN(2) == 0:
				rows[i][f] = numbers[rng.IntN(len(numbers))]
			default:
				rows[i][f] = float32(rng.NormFloat64())
			}
		}
	}
	return rows
}

var nan = float32(math.NaN())

// edges are numbers for which an order of keys could go wrong.
var edges = []float32{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
	math.MaxFloat32, -math.MaxFloat32, 1, -1, 1 + 1.0/(1<<23), 0.1}
