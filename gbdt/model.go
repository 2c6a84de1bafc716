package gbdt

import "sync"

// Bounds of a model. A file beyond them is refused.
const (
	MaxFileBytes = 256 << 20 // of a file
	MaxTrees     = 1 << 16
	MaxNodes     = 1 << 23 // of all trees together: 128 MB of nodes
	MaxFeatures  = 1 << 16
)

// Model is a checked model. Immutable once read; any goroutine.
type Model struct {
	objective  objective
	baseMargin float32
	names      []string // of the features; nil if the file names none
	features   int
	forest     forest
	scratch    sync.Pool // of *block; only scratch memory
}

// Features returns the number of features. Every row has as many values, in the order of training.
func (m *Model) Features() int { return m.features }

// Names returns the names of the features, in the order of training, or nil if the file has none. The
// caller must not change them.
func (m *Model) Names() []string { return m.names }

// Uses reports whether some split reads a feature. Predictions do not depend on the others.
func (m *Model) Uses(feature int) bool { return m.forest.uses(feature) }

// Trees returns the number of trees.
func (m *Model) Trees() int { return len(m.forest.trees) }

// Objective returns the name of the objective that the model was trained for: "rank:ndcg".
func (m *Model) Objective() string { return m.objective.name }
