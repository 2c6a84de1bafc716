package gbdt

import (
	"fmt"
	"math"
	"slices"
)

// planter checks trees and lays them out. One goroutine at a time.
type planter struct {
	nodes []node // of XGBoost: input is feature*2, plus 1 if the default is right, until forest
	trees []tree

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
	t.widest = &p.widest
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
}

// grow lays a tree out, and returns how many nodes a row can reach. The error names the list and the node.
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
						return 0, fmt.Errorf("%s[%d]: %s is reached twice: the nodes form no tree", side.list, i, t.describe(side.child))
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
	return len(order), nil
}

func (t *rawTree) size() int                            { return len(t.left) }
func (t *rawTree) children(i int32) (left, right int32) { return t.left[i], t.right[i] }
func (t *rawTree) lists() (left, right string)          { return "left_children", "right_children" }
func (t *rawTree) describe(i int32) string              { return fmt.Sprintf("node %d", i) }

func (t *rawTree) node(i int32, leaf bool) (node, error) {
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
	if len(t.kind) != 0 && len(t.kind) != n { // files before categorical splits have none
		return fmt.Errorf("split_type: has %d elements, left_children has %d", len(t.kind), n)
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
	if t.kind != nil && t.kind[i] != 0 {
		return node{}, fmt.Errorf("split_type[%d]: categorical splits are not supported", i)
	}
	feature := t.feature[i]
	if feature < 0 || feature >= MaxFeatures {
		return node{}, fmt.Errorf("split_indices[%d]: is %d, must be from 0 to %d", i, feature, MaxFeatures-1)
	}
	n := node{bound: orderKey(t.condition[i]), input: feature * 2}
	if !t.defaultLeft[i] {
		n.input++
	}
	return n, nil
}

// forest numbers the inputs that the splits read, and returns the trees. It is the last call on p.
func (p *planter) forest() forest {
	f := forest{nodes: p.nodes, trees: p.trees}
	place := make([]int32, 2*(p.widest.feature+1)) // of each input in a block
	for _, n := range f.nodes {
		if !n.isLeaf() {
			place[n.input] = 1
		}
	}
	for code, used := range place {
		if used == 0 {
			continue
		}
		place[code] = int32(len(f.inputs) * blockRows)
		in := input{feature: code / 2, missing: missingLeft}
		if code%2 == 1 {
			in.missing = missingRight
		}
		f.inputs = append(f.inputs, in)
	}
	for i := range f.nodes {
		if n := &f.nodes[i]; !n.isLeaf() {
			n.input = place[n.input]
		}
	}
	f.nodes = slices.Clip(f.nodes)
	return f
}

// isLeaf reports whether n is a leaf. No number has the key of its bound.
func (n *node) isLeaf() bool { return n.bound == math.MinInt32 }
