package gbdt

import "sync"

// Bounds of a model. A file beyond them is refused.
const (
	MaxFileBytes = 256 << 20 // of a file
	MaxTrees     = 1 << 16
	MaxNodes     = 1 << 23 // of all trees together: 128 MB of nodes
	MaxFeatures  = 1 << 16

	MaxCategories = 1 << 16 // of a categorical feature of XGBoost
)

// Model is a checked model. Immutable once read; any goroutine.
type Model struct {
	objective  objective
	baseMargin float32
	names      []string // of the features; nil if the file has no names
	features   int
	forest     forest
	scratch    sync.Pool // of *block; only scratch memory
}

// Features returns the number of features. Every row has as many values, in the order of training.
func (m *Model) Features() int { return m.features }

// Contributions computes what each feature contributes to the margin of the first row of columns, and writes it to
// out, which has one number per feature. On the way from a root to a leaf, each split contributes a change of the
// mean: the mean of the training rows in the next node, minus the mean in its own node. base is the mean of all rows;
// base plus the sum of out is the margin, up to rounding. This is the method of Saabas (Interpreting random forests,
// 2014), XGBoost's pred_contribs with approx_contribs. Contributions returns false if the file does not say how many
// rows its nodes had.
func (m *Model) Contributions(columns []Column, out []float64) (base float64, ok bool) {
	f := &m.forest
	clear(out)
	if f.means == nil && len(f.trees) > 0 {
		return 0, false
	}
	b := &block{keys: make([]int32, max(1, len(f.inputs))*blockRows)}
	b.load(f.inputs, columns, 0, 1)
	if base = float64(m.baseMargin); f.wide != nil {
		base = 0
	}
	for _, t := range f.trees {
		nodes, means := f.nodes[t.first:t.end], f.means[t.first:t.end]
		at := int32(0)
		for base += float64(means[0]); int(nodes[at].next) != int(at); {
			n := &nodes[at]
			next := n.next + below(b.keys[n.input], n.bound)
			out[f.inputs[n.input/blockRows].feature] += float64(means[next]) - float64(means[at])
			at = next
		}
		if f.wide != nil { // The means are rounded.
			base += f.wide[t.first+int(at)] - float64(means[at])
		}
	}
	return base, true
}

// Names returns the names of the features, in the order of training, or nil if the file has none. The
// caller must not change them.
func (m *Model) Names() []string { return m.names }

// Uses reports whether some split reads a feature. Predictions do not depend on the others.
func (m *Model) Uses(feature int) bool { return m.forest.uses(feature) }

// Trees returns the number of trees.
func (m *Model) Trees() int { return len(m.forest.trees) }

// Objective returns the name of the objective that the model was trained for: "rank:ndcg".
func (m *Model) Objective() string { return m.objective.name }
