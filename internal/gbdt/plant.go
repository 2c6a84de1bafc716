package gbdt

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// planter checks trees and lays them out. One goroutine at a time.
type planter struct {
	nodes []node // of XGBoost: input is feature*2, plus 1 if the default is right, or -1 less the place in sets, until forest
	trees []tree
	sets  []input          // of XGBoost: its categorical splits, each different one once
	known map[string]int32 // their places, by what they are
	means []float32        // as of a forest
	blind bool             // some tree does not say how many rows its nodes had: there are no means

	widest widest
}

// widest is the split of the highest feature.
type widest struct {
	feature, tree, node int
	trees               int // planted so far
}

// plant adds a tree of XGBoost. The error names the list and the node.
func (p *planter) plant(t *rawTree) error {
	if err := t.check(); err != nil {
		return err
	}
	if len(p.nodes)+len(t.left) > MaxNodes {
		return fmt.Errorf("left_children: the trees have more than %d nodes together", MaxNodes)
	}
	t.planter, t.widest = p, &p.widest
	t.widest.trees = len(p.trees)
	_, err := p.grow(t)
	return err
}

// fileTree is a tree as a file has it. Its nodes have numbers; 0 is the root.
type fileTree interface {
	size() int
	leaf(i int32) (bool, error)
	children(i int32) (left, right int32) // of a split
	lists() (left, right string)          // names of the lists that hold the children
	describe(i int32) string              // node i, for errors
	// node returns node i without its place in the tree. It is called once for each, in the order of the layout.
	node(i int32, leaf bool) (node, error)
	// cover returns the weight of the rows that reached node i in training, or 0 if the file does not have it.
	cover(i int32) float64
	value(i int32) float64 // of a leaf: what it adds
}

// grow lays out a tree, and returns how many nodes a row can reach. The error names the list and the node.
func (p *planter) grow(t fileTree) (reached int, err error) {
	first, depth := len(p.nodes), -1
	order := make([]int32, 1, t.size()) // numbers of nodes, breadth first; the root is 0
	seen := make([]bool, t.size())
	seen[0] = true
	leftList, rightList := t.lists()
	for at := 0; at < len(order); depth++ {
		for end := len(order); at < end; at++ {
			i := order[at]
			leaf, err := t.leaf(i)
			if err != nil {
				return 0, err
			}
			next := int32(at)
			if !leaf {
				left, right := t.children(i)
				for _, side := range [...]struct {
					list  string
					child int32
				}{{leftList, left}, {rightList, right}} {
					switch {
					case side.child < 0 || int(side.child) >= t.size():
						return 0, fmt.Errorf("%s[%d]: is %d, must be from 0 to %d", side.list, i, side.child, t.size()-1)
					case seen[side.child]:
						return 0, fmt.Errorf("%s[%d]: %s is reached twice: the nodes do not form a tree", side.list, i, t.describe(side.child))
					}
					seen[side.child] = true
					order = append(order, side.child)
				}
				next = int32(len(order) - 1)
			}
			n, err := t.node(i, leaf)
			if err != nil {
				return 0, err
			}
			n.next = next
			p.nodes = append(p.nodes, n)
		}
	}
	p.trees = append(p.trees, tree{first: first, end: len(p.nodes), depth: depth})
	p.average(t, p.nodes[first:], order)
	return len(order), nil
}

// average notes the means of a tree, whose nodes have the numbers in order. The mean of a leaf is what it adds; that
// of a split is the weighted mean of its children.
func (p *planter) average(t fileTree, nodes []node, order []int32) {
	first := len(p.means)
	if p.blind = p.blind || t.cover(0) == 0; p.blind {
		p.means = nil
		return
	}
	p.means = append(p.means, make([]float32, len(nodes))...)
	means := p.means[first:]
	for at := len(nodes) - 1; at >= 0; at-- { // children come behind their parent
		n := &nodes[at]
		if int(n.next) == at {
			means[at] = float32(t.value(order[at]))
			continue
		}
		left, right := t.cover(order[n.next-1]), t.cover(order[n.next])
		share := 0.5
		if left+right > 0 {
			share = left / (left + right)
		}
		means[at] = float32(float64(share*float64(means[n.next-1])) + float64((1-share)*float64(means[n.next])))
	}
}

func (t *rawTree) size() int                            { return len(t.left) }
func (t *rawTree) children(i int32) (left, right int32) { return t.left[i], t.right[i] }
func (t *rawTree) lists() (left, right string)          { return "left_children", "right_children" }
func (t *rawTree) describe(i int32) string              { return fmt.Sprintf("node %d", i) }

func (t *rawTree) node(i int32, leaf bool) (node, error) {
	if t.condition[i] != t.condition[i] && (leaf || t.kind == nil || t.kind[i] == 0) {
		return node{}, fmt.Errorf("split_conditions[%d]: is not a number", i)
	}
	if leaf {
		return node{bound: math.MinInt32, leaf: t.condition[i]}, nil
	}
	n, err := t.split(i)
	if w := t.widest; err == nil && int(t.feature[i]) > w.feature {
		w.feature, w.tree, w.node = int(t.feature[i]), w.trees, int(i)
	}
	return n, err
}

// check checks what holds for all nodes, whether a row can reach them or not: pruning leaves nodes behind.
func (t *rawTree) check() error {
	n := len(t.left)
	switch {
	case n == 0:
		return fmt.Errorf("left_children: is missing or empty")
	case t.nodes > 0 && t.nodes != int64(n):
		return fmt.Errorf("left_children: has %d nodes, num_nodes is %d", n, t.nodes)
	case t.leafSize > 1:
		return fmt.Errorf("tree_param.size_leaf_vector: is %d: models of several outputs are not supported", t.leafSize)
	}
	for _, list := range [...]struct {
		name   string
		length int
	}{
		{"right_children", len(t.right)}, {"split_indices", len(t.feature)}, {"split_conditions", len(t.condition)},
		{"default_left", len(t.defaultLeft)},
	} {
		if list.length != n {
			return fmt.Errorf("%s: has %d elements, left_children has %d", list.name, list.length, n)
		}
	}
	for _, list := range [...]struct { // which older files lack
		name   string
		length int
	}{{"split_type", len(t.kind)}, {"sum_hessian", len(t.hessian)}} {
		if list.length != 0 && list.length != n {
			return fmt.Errorf("%s: has %d elements, left_children has %d", list.name, list.length, n)
		}
	}
	return t.checkCategories()
}

// checkCategories checks the lists of categories, and notes which part of them each node has.
func (t *rawTree) checkCategories() error {
	t.set = make(map[int32][]int32, len(t.setNodes))
	if len(t.setBegins) != len(t.setNodes) || len(t.setSizes) != len(t.setNodes) {
		return fmt.Errorf("categories_segments: has %d elements and categories_sizes %d, categories_nodes has %d", len(t.setBegins), len(t.setSizes), len(t.setNodes))
	}
	for i, node := range t.setNodes {
		begin, size := int64(t.setBegins[i]), int64(t.setSizes[i])
		switch _, twice := t.set[node]; {
		case node < 0 || int(node) >= len(t.left) || twice:
			return fmt.Errorf("categories_nodes[%d]: is %d, must be another node from 0 to %d", i, node, len(t.left)-1)
		case begin < 0 || size < 0 || begin+size > int64(len(t.categories)):
			return fmt.Errorf("categories_segments[%d]: %d categories from %d on are not in the list of %d", i, size, begin, len(t.categories))
		}
		t.set[node] = t.categories[begin : begin+size]
	}
	for i, category := range t.categories {
		if category < 0 || category >= MaxCategories {
			return fmt.Errorf("categories[%d]: is %d, must be from 0 to %d", i, category, MaxCategories-1)
		}
	}
	return nil
}

// leaf reports whether node i is a leaf: both children are -1. A node with one child is neither leaf nor split.
func (t *rawTree) leaf(i int32) (bool, error) {
	left, right := t.left[i], t.right[i]
	switch {
	case left == -1 && right == -1:
		return true, nil
	case left < -1:
		return false, fmt.Errorf("left_children[%d]: is %d, must be -1 or a node", i, left)
	case left == -1:
		return false, fmt.Errorf("right_children[%d]: is %d, must be -1 as left_children[%d] is", i, right, i)
	}
	return false, nil // the caller looks at the children
}

// split returns the split at node i, without its place in the tree.
func (t *rawTree) split(i int32) (node, error) {
	feature := t.feature[i]
	if feature < 0 || feature >= MaxFeatures {
		return node{}, fmt.Errorf("split_indices[%d]: is %d, must be from 0 to %d", i, feature, MaxFeatures-1)
	}
	if t.kind != nil && t.kind[i] != 0 {
		return t.categorical(i)
	}
	n := node{bound: orderKey(t.condition[i]), input: feature * 2}
	if !t.defaultLeft[i] {
		n.input++
	}
	return n, nil
}

// categorical returns the split at node i by a set of categories: those of the set go right.
func (t *rawTree) categorical(i int32) (node, error) {
	set, ok := t.set[i]
	if t.kind[i] != 1 || !ok {
		return node{}, fmt.Errorf("split_type[%d]: is %d, and categories_nodes %s the node: must be 1 with categories, or 0", i, t.kind[i], map[bool]string{true: "has", false: "lacks"}[ok])
	}
	in := input{feature: int(t.feature[i]), kind: others, missing: missingLeft}
	if !t.defaultLeft[i] {
		in.missing = missingRight
	}
	for _, category := range set {
		for int(category)/32 >= len(in.set) {
			in.set = append(in.set, 0)
		}
		in.set[category/32] |= 1 << (category % 32)
	}
	p, name := t.planter, in.name()
	number, known := p.known[name]
	if !known {
		if len(p.sets) == MaxCategorySplits {
			return node{}, fmt.Errorf("split_type[%d]: the trees have more than %d different categorical splits", i, MaxCategorySplits)
		}
		if p.known == nil {
			p.known = make(map[string]int32)
		}
		number = int32(len(p.sets))
		p.known[name] = number
		p.sets = append(p.sets, in)
	}
	return node{bound: 1, input: -1 - number}, nil
}

// name returns what tells inputs apart, except for their bounds.
func (in *input) name() string {
	name := make([]byte, 0, 16)
	name = append(binary.AppendVarint(append(name, byte(in.kind)), int64(in.feature)), byte(in.missing&1))
	for _, word := range in.set {
		name = binary.LittleEndian.AppendUint32(name, word)
	}
	return string(name)
}

func (t *rawTree) value(i int32) float64 { return float64(t.condition[i]) }

func (t *rawTree) cover(i int32) float64 {
	if t.hessian == nil {
		return 0
	}
	return float64(max(0, t.hessian[i]))
}

// forest numbers the inputs that the splits read, and returns the trees. It is the last call on p.
func (p *planter) forest() forest {
	f := forest{nodes: p.nodes, trees: p.trees, means: slices.Clip(p.means)}
	place := make([]int32, 2*(p.widest.feature+1)) // of each input in a block
	for _, n := range f.nodes {
		if !n.isLeaf() && n.input >= 0 {
			place[n.input] = 1
		}
	}
	sets := make([]int32, len(p.sets)) // in the order of their features
	for i := range sets {
		sets[i] = int32(i)
	}
	slices.SortStableFunc(sets, func(a, b int32) int { return cmp.Compare(p.sets[a].feature, p.sets[b].feature) })
	setPlace, next := make([]int32, len(sets)), 0
	for code, used := range place {
		if used != 0 {
			place[code] = int32(len(f.inputs) * blockRows)
			in := input{feature: code / 2, missing: missingLeft}
			if code%2 == 1 {
				in.missing = missingRight
			}
			f.inputs = append(f.inputs, in)
		}
		for ; code%2 == 1 && next < len(sets) && p.sets[sets[next]].feature == code/2; next++ {
			setPlace[sets[next]] = int32(len(f.inputs) * blockRows)
			f.inputs = append(f.inputs, p.sets[sets[next]])
		}
	}
	for i := range f.nodes {
		switch n := &f.nodes[i]; {
		case n.isLeaf():
		case n.input < 0:
			n.input = setPlace[-1-n.input]
		default:
			n.input = place[n.input]
		}
	}
	f.nodes = slices.Clip(f.nodes)
	return f
}

// isLeaf reports whether n is a leaf. No number has the key of its bound.
func (n *node) isLeaf() bool { return n.bound == math.MinInt32 }
