package gbdt

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
)

// MaxCategorySplits bounds the different categorical splits of a model: each is an input of its own.
const MaxCategorySplits = 1 << 14

// The bits of a split's decision_type: see Tree::NumericalDecision in LightGBM's include/LightGBM/tree.h.
const (
	decisionCategorical = 1
	decisionDefaultLeft = 2
	decisionMissing     = 2 // how far the missing type is shifted
)

// isLightGBM reports whether a file begins as LightGBM's text format does.
func isLightGBM(text []byte) bool {
	line, _, _ := strings.Cut(string(text[:min(len(text), 6)]), "\n")
	return strings.TrimSuffix(line, "\r") == "tree"
}

// readLightGBM reads a model in LightGBM's text format, as Booster.save_model writes it: versions v2, v3 and v4. LightGBM
// has one reader for them, which does not look at the version.
//
// It refuses, by name: several classes, random forests (average_output), linear trees, and unknown objectives. It
// ignores what follows the trees, such as the training parameters.
func readLightGBM(text string) (*Model, error) {
	r := &lightReader{lines: text, kinds: make(map[string]int32)}
	m, err := r.model()
	if err != nil && !strings.Contains(text, "\nend of trees") {
		err = fmt.Errorf("%w; no line says \"end of trees\": the file is cut off, or still being written", err)
	}
	return m, err
}

// model reads the whole file.
func (r *lightReader) model() (*Model, error) {
	if err := r.header(); err != nil {
		return nil, err
	}
	for r.line != "end of trees" {
		if len(r.planter.trees) == MaxTrees {
			return nil, fmt.Errorf("the file has more than %d trees", MaxTrees)
		}
		name := fmt.Sprintf("Tree=%d", len(r.planter.trees))
		if r.line != name {
			return nil, fmt.Errorf("line %d: must be %s or the end of trees, not %s", r.number, name, errtext.Quote(r.line))
		}
		if err := r.tree(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return &Model{objective: r.objective, names: r.names, features: r.features, forest: r.forest()}, nil
}

// lightReader reads one file. One goroutine at a time.
type lightReader struct {
	lines  string // what follows
	line   string // the line read last
	number int    // of that line

	objective objective
	names     []string
	features  int

	planter planter // an input is a number in inputs, until forest
	inputs  []input
	sets    int              // inputs that are categorical splits
	kinds   map[string]int32 // the number of an input, by what it reads
	bounds  []float64        // of the nodes: the threshold of a numerical split
	wide    []float64        // of the nodes: what a leaf adds
}

// next reads a line. It returns false after the last.
func (r *lightReader) next() bool {
	if r.lines == "" {
		return false
	}
	r.line, r.lines, _ = strings.Cut(r.lines, "\n")
	r.line = strings.TrimSuffix(r.line, "\r")
	r.number++
	return true
}

// fields reads lines "name=value" up to a line that starts a tree or ends them, and returns those of known names.
func (r *lightReader) fields(known ...string) (map[string]string, error) {
	found := make(map[string]string, len(known))
	for r.next() {
		if r.line == "end of trees" || strings.HasPrefix(r.line, "Tree=") {
			return found, nil
		}
		name, value, valid := strings.Cut(r.line, "=")
		switch _, twice := found[name]; {
		case r.line == "":
		case r.line == "average_output":
			return nil, errors.New("average_output: random forests are not supported")
		case !valid:
			return nil, fmt.Errorf("line %d: must be name=value, not %s", r.number, errtext.Quote(r.line))
		case twice:
			return nil, fmt.Errorf("line %d: %s stands twice", r.number, name)
		case slices.Contains(known, name):
			found[name] = value
		}
	}
	return nil, fmt.Errorf("line %d: the file ends before the end of trees", r.number)
}

// header reads what precedes the trees.
func (r *lightReader) header() error {
	r.next() // "tree"
	found, err := r.fields("version", "num_class", "num_tree_per_iteration", "max_feature_idx", "objective", "feature_names")
	if err != nil {
		return err
	}
	if v := found["version"]; v != "v2" && v != "v3" && v != "v4" {
		return fmt.Errorf("version: is %s, must be v2, v3 or v4", errtext.Quote(v))
	}
	for _, name := range [...]string{"num_class", "num_tree_per_iteration"} {
		if n, err := natural(found, name); err != nil {
			return err
		} else if n != 1 {
			return fmt.Errorf("%s: is %d: models of several classes are not supported", name, n)
		}
	}
	last, err := natural(found, "max_feature_idx")
	if err != nil {
		return err
	}
	if last >= MaxFeatures {
		return fmt.Errorf("max_feature_idx: is %d, must be from 0 to %d", last, MaxFeatures-1)
	}
	r.features = last + 1
	if r.names = strings.Fields(found["feature_names"]); len(r.names) != r.features {
		return fmt.Errorf("feature_names: has %d names, max_feature_idx is %d", len(r.names), last)
	}
	objective, given := found["objective"]
	if !given {
		objective = "custom" // a custom function of the trainer; predictions are margins
	}
	r.objective, err = lightObjective(objective)
	return err
}

// lightObjectives lists those of LightGBM whose predictions are one number per row: see ConvertOutput of each in src/objective.
var lightObjectives = [...]objective{
	{name: "regression"}, {name: "regression_l1"}, {name: "huber"}, {name: "fair"}, {name: "quantile"}, {name: "mape"}, {name: "custom"},
	{name: "poisson", link: exponential}, {name: "gamma", link: exponential}, {name: "tweedie", link: exponential},
	{name: "binary", link: logistic, slope: 1},
	{name: "cross_entropy", link: logistic, slope: 1},
	{name: "cross_entropy_lambda", link: softplus},
	{name: "lambdarank"}, {name: "rank_xendcg"},
}

// lightObjective reads the line of the objective: a name, and options as "sigmoid:2" or "sqrt".
func lightObjective(line string) (objective, error) {
	name, options, _ := strings.Cut(line, " ")
	i := slices.IndexFunc(lightObjectives[:], func(o objective) bool { return o.name == name })
	if i < 0 {
		return objective{}, fmt.Errorf("objective: %s is not supported", errtext.Quote(line))
	}
	o := lightObjectives[i]
	for option := range strings.FieldsSeq(options) {
		slope, isSlope := strings.CutPrefix(option, "sigmoid:")
		switch {
		case isSlope && name == "binary":
			v, err := strconv.ParseFloat(slope, 64)
			if err != nil || !(v > 0 && v <= math.MaxFloat64) {
				return objective{}, fmt.Errorf("objective: sigmoid must be a number above 0, not %s", errtext.Quote(slope))
			}
			o.slope = v
		case option == "sqrt" && o.link == identity:
			o.link = signedSquare
		}
	}
	return o, nil
}

// natural reads a field with an integer that is not negative.
func natural(found map[string]string, name string) (int, error) {
	n, err := strconv.ParseInt(found[name], 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: must be an integer that is not negative, not %s", name, errtext.Quote(found[name]))
	}
	return int(n), nil
}

// numbers reads a field with so many numbers.
func numbers[T any](found map[string]string, name string, count int, want string, parse func(text string) (T, error)) ([]T, error) {
	list := make([]T, 0, min(count, len(found[name])))
	for text := range strings.FieldsSeq(found[name]) {
		v, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: must be %s, not %s", name, len(list), want, errtext.Text(text))
		}
		if list = append(list, v); len(list) > count {
			break
		}
	}
	switch {
	case len(list) > count:
		return nil, fmt.Errorf("%s: has more than %d elements", name, count)
	case len(list) < count:
		return nil, fmt.Errorf("%s: has %d elements, must have %d", name, len(list), count)
	}
	return list, nil
}

func integers(found map[string]string, name string, count int) ([]int32, error) {
	return numbers(found, name, count, "an integer of 32 bits", func(text string) (int32, error) {
		n, err := strconv.ParseInt(text, 10, 32)
		return int32(n), err
	})
}

func doubles(found map[string]string, name string, count int) ([]float64, error) {
	return numbers(found, name, count, "a finite number", func(text string) (float64, error) {
		v, err := strconv.ParseFloat(text, 64)
		if err == nil && (math.IsInf(v, 0) || v != v) {
			err = strconv.ErrRange
		}
		return v, err
	})
}

// thresholds is doubles, and takes infinities: of "inf" only missing values go right.
func thresholds(found map[string]string, count int) ([]float64, error) {
	return numbers(found, "threshold", count, "a number, inf or -inf", func(text string) (float64, error) {
		v, err := strconv.ParseFloat(text, 64)
		if v != v {
			err = strconv.ErrRange
		}
		return v, err
	})
}

// lightTree is a tree of LightGBM. The file numbers its splits from 0, and its leaves from 0, too; a child that is
// leaf n is written as ^n. Here leaves follow the splits: leaf n is node splits+n.
type lightTree struct {
	reader                         *lightReader
	splits                         int
	left, right, feature, decision []int32 // of the splits
	threshold                      []float64
	values                         []float64 // of the leaves
	sets                           [][]uint32
	counts                         []float64 // of the rows of each leaf in training; nil: the file does not have it
	covers                         []float64 // the same of each split
}

// tree reads a tree and plants it.
func (r *lightReader) tree() error {
	found, err := r.fields("num_leaves", "num_cat", "split_feature", "threshold", "decision_type", "left_child", "right_child", "leaf_value",
		"cat_boundaries", "cat_threshold", "is_linear", "leaf_count", "internal_count")
	if err != nil {
		return err
	}
	if linear := found["is_linear"]; linear != "" && linear != "0" {
		return errors.New("is_linear: linear trees are not supported")
	}
	leaves, err := natural(found, "num_leaves")
	switch {
	case err != nil:
		return err
	case leaves == 0:
		return errors.New("num_leaves: is 0, must be at least 1")
	case leaves > MaxNodes || len(r.planter.nodes)+2*leaves-1 > MaxNodes:
		return fmt.Errorf("num_leaves: the trees have more than %d nodes together", MaxNodes)
	}
	t := &lightTree{reader: r, splits: leaves - 1}
	if t.values, err = doubles(found, "leaf_value", leaves); err != nil {
		return err
	}
	for _, list := range [...]struct {
		name string
		to   *[]int32
	}{{"split_feature", &t.feature}, {"decision_type", &t.decision}, {"left_child", &t.left}, {"right_child", &t.right}} {
		if *list.to, err = integers(found, list.name, t.splits); err != nil {
			return err
		}
	}
	if t.threshold, err = thresholds(found, t.splits); err != nil {
		return err
	}
	if found["leaf_count"] != "" && (leaves == 1 || found["internal_count"] != "") {
		if t.counts, err = doubles(found, "leaf_count", leaves); err != nil {
			return err
		}
		if t.covers, err = doubles(found, "internal_count", t.splits); err != nil {
			return err
		}
	}
	if t.sets, err = categorySets(found); err != nil {
		return err
	}
	if err := t.place("left_child", t.left); err != nil {
		return err
	}
	if err := t.place("right_child", t.right); err != nil {
		return err
	}
	reached, err := r.planter.grow(t)
	if err == nil && reached != t.size() {
		err = fmt.Errorf("left_child: the root leads to %d of %d nodes", reached, t.size())
	}
	return err
}

// categorySets reads the sets of the categorical splits: set i is cat_threshold[cat_boundaries[i]:cat_boundaries[i+1]].
func categorySets(found map[string]string) ([][]uint32, error) {
	count, err := natural(found, "num_cat")
	if err != nil || count == 0 {
		return nil, err
	}
	if count > MaxNodes {
		return nil, fmt.Errorf("num_cat: is %d, more than %d", count, MaxNodes)
	}
	bounds, err := integers(found, "cat_boundaries", count+1)
	if err != nil {
		return nil, err
	}
	if bounds[0] != 0 || !slices.IsSorted(bounds) {
		return nil, errors.New("cat_boundaries: must rise from 0 on")
	}
	words, err := numbers(found, "cat_threshold", int(bounds[count]), "an integer of 32 bits without a sign", func(text string) (uint32, error) {
		n, err := strconv.ParseUint(text, 10, 32)
		return uint32(n), err
	})
	if err != nil {
		return nil, err
	}
	sets := make([][]uint32, count)
	for i := range sets {
		sets[i] = words[bounds[i]:bounds[i+1]]
	}
	return sets, nil
}

// place turns the children of a list into numbers of nodes.
func (t *lightTree) place(name string, children []int32) error {
	for i, c := range children {
		if int(c) >= t.splits || int(^c) > t.splits {
			return fmt.Errorf("%s[%d]: is %d, must be from %d to %d", name, i, c, -t.splits-1, t.splits-1)
		}
		if c < 0 {
			children[i] = int32(t.splits) + ^c
		}
	}
	return nil
}

func (t *lightTree) size() int                            { return t.splits + len(t.values) }
func (t *lightTree) leaf(i int32) (bool, error)           { return int(i) >= t.splits, nil }
func (t *lightTree) children(i int32) (left, right int32) { return t.left[i], t.right[i] }
func (t *lightTree) lists() (left, right string)          { return "left_child", "right_child" }

func (t *lightTree) describe(i int32) string {
	if n := int(i) - t.splits; n >= 0 {
		return fmt.Sprintf("leaf %d", n)
	}
	return fmt.Sprintf("split %d", i)
}

func (t *lightTree) node(i int32, leaf bool) (node, error) {
	r := t.reader
	if leaf {
		r.wide, r.bounds = append(r.wide, t.values[int(i)-t.splits]), append(r.bounds, 0)
		return node{bound: math.MinInt32}, nil
	}
	in, err := t.input(i)
	if err != nil {
		return node{}, err
	}
	number, err := r.inputNumber(in)
	if err != nil {
		return node{}, fmt.Errorf("split_feature[%d]: %w", i, err)
	}
	r.wide, r.bounds = append(r.wide, 0), append(r.bounds, t.threshold[i])
	return node{input: number}, nil
}

func (t *lightTree) value(i int32) float64 { return t.values[int(i)-t.splits] }

func (t *lightTree) cover(i int32) float64 {
	switch n := int(i) - t.splits; {
	case t.counts == nil:
		return 0
	case n >= 0:
		return max(0, t.counts[n])
	}
	return max(0, t.covers[i])
}

// input returns what split i reads.
func (t *lightTree) input(i int32) (input, error) {
	feature, decision := int(t.feature[i]), t.decision[i]
	if feature < 0 || feature >= t.reader.features {
		return input{}, fmt.Errorf("split_feature[%d]: is %d, must be from 0 to max_feature_idx, %d", i, feature, t.reader.features-1)
	}
	in := input{feature: feature, missing: missingRight}
	if decision&decisionDefaultLeft != 0 {
		in.missing = missingLeft
	}
	switch {
	case decision < 0 || decision>>decisionMissing > 2:
		return input{}, fmt.Errorf("decision_type[%d]: is %d, must be from 0 to 11", i, decision)
	case decision&decisionCategorical != 0:
		set := t.threshold[i]
		if !(set >= 0 && set < float64(len(t.sets))) || set != math.Trunc(set) {
			return input{}, fmt.Errorf("threshold[%d]: is %v, must be the number of a set below num_cat, %d", i, set, len(t.sets))
		}
		in.kind, in.missing, in.set = members, 0, t.sets[int(set)]
	case decision>>decisionMissing == 0:
		in.kind, in.missing = ranksNaNZero, 0 // nothing is missing
	case decision>>decisionMissing == 1:
		in.kind = ranksNoZero
	default:
		in.kind = ranks
	}
	return in, nil
}

// inputNumber returns the number of an input. Splits that read the same share one.
func (r *lightReader) inputNumber(in input) (int32, error) {
	name := in.name()
	number, known := r.kinds[name]
	if !known {
		if in.kind == members {
			in.set = slices.Clone(in.set)
			if r.sets++; r.sets > MaxCategorySplits {
				return 0, fmt.Errorf("the trees have more than %d different categorical splits", MaxCategorySplits)
			}
		}
		number = int32(len(r.inputs))
		r.kinds[name] = number
		r.inputs = append(r.inputs, in)
	}
	return number, nil
}

// forest orders the inputs by feature and turns thresholds into ranks. It is the last call on r.
func (r *lightReader) forest() forest {
	f := forest{nodes: slices.Clip(r.planter.nodes), trees: r.planter.trees, inputs: r.inputs, wide: r.wide, means: slices.Clip(r.planter.means)}
	if f.wide == nil {
		f.wide = []float64{} // no tree
	}
	for at := range f.nodes {
		n := &f.nodes[at]
		if n.isLeaf() {
			continue
		}
		if in := &f.inputs[n.input]; in.kind != members {
			in.bounds = append(in.bounds, r.bounds[at])
		}
	}
	for i := range f.inputs {
		in := &f.inputs[i]
		slices.Sort(in.bounds)
		in.bounds = slices.Clip(slices.Compact(in.bounds))
	}
	order := make([]int32, len(f.inputs))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(f.inputs[a].feature, f.inputs[b].feature) })
	place, sorted := make([]int32, len(order)), make([]input, len(order))
	for at, i := range order {
		place[i], sorted[at] = int32(at*blockRows), f.inputs[i]
	}
	for at := range f.nodes {
		n := &f.nodes[at]
		if n.isLeaf() {
			continue
		}
		n.bound = 1 // of a set: its members have the key 0
		if in := &f.inputs[n.input]; in.kind != members {
			rank, _ := slices.BinarySearch(in.bounds, r.bounds[at])
			n.bound = int32(rank) + 1
		}
		n.input = place[n.input]
	}
	f.inputs = sorted
	return f
}
