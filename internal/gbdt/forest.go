package gbdt

import (
	"math"
	"slices"
)

// forest is the trees of a model, laid out for evaluation. Immutable once built.
type forest struct {
	nodes  []node
	trees  []tree
	inputs []input
	wide   []float64 // what leaves add, by node, if they are summed in float64; nil: node.leaf in float32
	means  []float32 // the average result of the tree for rows that reach a node, by node; nil: the file does not have it
}

// tree is a part of the nodes of a forest.
type tree struct {
	first, end int // its nodes are nodes[first:end]; the root is the first
	depth      int // steps from the root to the deepest leaf
}

// A node is a split or a leaf. From a split a row goes to the node before next if its value is less than bound,
// and to next otherwise. Those are the left and the right child. From a leaf every row goes to the leaf again: no value is
// less than its bound, and next is the leaf itself.
type node struct {
	bound int32   // a key: see orderKey
	input int32   // place of the input's values in a block: see block
	next  int32   // number within the tree
	leaf  float32 // what the leaf adds to the margin
}

// An input is a feature as read by one kind of split: it says how a value becomes a key.
type input struct {
	feature int
	kind    inputKind
	missing int32     // the key of a missing value
	bounds  []float64 // of ranks: the thresholds, in order
	set     []uint32  // of members: a bit for each category that goes left; of others: right
}

// inputKind says what the key of an input is.
type inputKind uint8

const (
	singles      inputKind = iota // orderKey of the value as float32; NaN is missing
	ranks                         // how many bounds are less than the value; NaN is missing
	ranksNaNZero                  // the same; NaN is 0, and nothing is missing
	ranksNoZero                   // the same; NaN and all numbers up to tiny are missing
	members                       // 0 for a category of the set, otherwise 1; nothing is missing
	others                        // of XGBoost: 1 for a category of the set, otherwise 0; NaN is missing
)

// tiny is the greatest magnitude that LightGBM takes for 0.
const tiny = float64(float32(1e-35))

// The keys of a missing value. No number has them: among floats, only NaNs would have these keys.
const (
	missingLeft  = math.MinInt32
	missingRight = math.MaxInt32
)

// orderKey maps numbers to integers, keeping the order. Both zeros have the same key. v must not be a NaN.
func orderKey(v float32) int32 {
	b := int32(math.Float32bits(v + 0)) // -0 + 0 is 0
	return b ^ int32(uint32(b>>31)>>1)  // a negative number's magnitude counts backwards
}

func (f *forest) uses(feature int) bool {
	return slices.ContainsFunc(f.inputs, func(in input) bool { return in.feature == feature })
}
