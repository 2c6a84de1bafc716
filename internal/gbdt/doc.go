// Package gbdt evaluates gradient-boosted tree models that XGBoost saved as JSON, or LightGBM as text.
//
// Read checks a file and lays its trees out; Predict evaluates a Model for many rows:
//
//	file ── Read ──▶ Model ── Predict(columns) ──▶ one number per row
//	        │                  │
//	        checked once       blocks of rows × inputs, tree by tree
//
// A Model answers as XGBoost 1.7 to 3.x does, in the same arithmetic: it compares float32 values, takes the default
// direction of a split for a missing value, and adds leaves in float32 in the order of the trees. A Model of LightGBM
// compares and adds in float64, and each split defines what a missing value is.
//
// # Layout
//
// A tree is an array of nodes in breadth-first order. Both children of a split are adjacent, so a step is an addition
// without a branch that a CPU could mispredict. A leaf leads to itself, so all rows take as many steps as the tree is
// deep.
//
// Values become integers whose order is the order of the floats. A missing value becomes the least integer for
// a split whose default is left, and the greatest for the other splits. So a step needs no test
// for missing values. A feature with splits of both kinds is two inputs.
//
// A value for LightGBM becomes its rank among the thresholds of its feature: how many are less than it. Ranks
// compare as the doubles do. Each set of categories is an input of its own, whose key says whether the
// value is a member. So one walk serves both formats.
package gbdt
