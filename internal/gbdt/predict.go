package gbdt

import "math"

// A Column fills values with one feature of the rows from, from+1 and so on. A NaN is a missing value.
// It is called on the goroutine of Predict.
type Column func(values []float64, from int)

// A Stop tells Predict that nobody waits for its result any more. Predict checks it for each block of rows. Any
// goroutine.
type Stop interface{ Cancelled() bool }

// Output says what Predict returns.
type Output uint8

// The outputs.
const (
	Prediction Output = iota // the value that XGBoost's predict returns: a probability for binary:logistic
	Margin                   // the sum of the leaves and the base score, before the objective's link
)

// blockRows is how many rows the trees see at once. The values of a block with 60 inputs take 15 KiB,
// so that they stay in the first-level cache beside a tree.
const blockRows = 64

// block is the values of up to blockRows rows, as keys. Value r of input i is at keys[i*blockRows+r].
// It is scratch memory: one call uses it at a time.
type block struct {
	keys   []int32
	column [blockRows]float64
	sums   [blockRows]float32
}

// Predict writes the prediction of each row to out. columns has one Column for each feature; it may be
// nil for a feature that the model does not use. Predict returns false, with out incomplete, once stop says so. A nil stop never does.
//
// It allocates nothing that grows with the rows. Any goroutine.
func (m *Model) Predict(stop Stop, columns []Column, output Output, out []float64) bool {
	b, _ := m.scratch.Get().(*block)
	if b == nil {
		b = &block{keys: make([]int32, max(1, len(m.forest.inputs))*blockRows)}
	}
	defer m.scratch.Put(b)
	for from := 0; from < len(out); from += blockRows {
		if stop != nil && stop.Cancelled() {
			return false
		}
		part := out[from:min(from+blockRows, len(out))]
		b.load(m.forest.inputs, columns, from, len(part))
		if m.forest.wide != nil {
			clear(part)
			m.forest.addWide(part, b.keys)
		} else {
			sums := b.sums[:len(part)]
			for i := range sums {
				sums[i] = m.baseMargin
			}
			m.forest.add(sums, b.keys)
			for i, sum := range sums {
				part[i] = float64(sum)
			}
		}
		if output == Prediction {
			m.objective.apply(part)
		}
	}
	return true
}

// load fills the block with n rows. The inputs of a feature are adjacent.
func (b *block) load(inputs []input, columns []Column, from, n int) {
	values := b.column[:n]
	for i := range inputs {
		in := &inputs[i]
		if i == 0 || inputs[i-1].feature != in.feature {
			columns[in.feature](values, from)
		}
		keys := b.keys[i*blockRows:][:n]
		if in.kind != singles {
			for r, v := range values {
				keys[r] = in.key(v)
			}
			continue
		}
		missing := in.missing
		for r, v := range values {
			key := missing
			if v == v {
				key = orderKey(float32(v))
			}
			keys[r] = key
		}
	}
}

// key returns the key of a value for splits of LightGBM and for sets of categories.
func (in *input) key(v float64) int32 {
	switch {
	case in.kind == members:
		return 1 - in.member(v)
	case in.kind == others && v == v:
		if v < 0 { // not a category, even without its fraction
			return 0
		}
		return in.member(v)
	case v != v && in.kind == ranksNaNZero:
		v = 0
	case v != v, in.kind == ranksNoZero && v >= -tiny && v <= tiny:
		return in.missing
	}
	rank, n := 0, len(in.bounds)
	for n > 0 {
		if half := n / 2; in.bounds[rank+half] < v {
			rank += half + 1
			n -= half + 1
		} else {
			n = half
		}
	}
	return int32(rank)
}

// member returns 1 if v, without its fraction, is a category of the set, otherwise 0. A NaN, or a number beyond
// int32, is not a category.
func (in *input) member(v float64) int32 {
	if !(v > -1 && v < 1<<31) {
		return 0
	}
	category := int(v)
	if category/32 >= len(in.set) {
		return 0
	}
	return int32(in.set[category/32] >> (category % 32) & 1)
}

// add adds the leaves that rows reach to their sums, tree by tree.
func (f *forest) add(sums []float32, keys []int32) {
	for _, t := range f.trees {
		nodes := f.nodes[t.first:t.end]
		r := 0
		for ; r+4 <= len(sums); r += 4 {
			a, b, c, d := walkFour(nodes, keys[r:], t.depth)
			four := sums[r : r+4]
			four[0] += nodes[a].leaf
			four[1] += nodes[b].leaf
			four[2] += nodes[c].leaf
			four[3] += nodes[d].leaf
		}
		for ; r < len(sums); r++ {
			sums[r] += nodes[walk(nodes, keys[r:], t.depth)].leaf
		}
	}
}

// addWide is add for leaves that add up in float64.
func (f *forest) addWide(sums []float64, keys []int32) {
	for _, t := range f.trees {
		nodes, leaves := f.nodes[t.first:t.end], f.wide[t.first:t.end]
		r := 0
		for ; r+4 <= len(sums); r += 4 {
			a, b, c, d := walkFour(nodes, keys[r:], t.depth)
			four := sums[r : r+4]
			four[0] += leaves[a]
			four[1] += leaves[b]
			four[2] += leaves[c]
			four[3] += leaves[d]
		}
		for ; r < len(sums); r++ {
			sums[r] += leaves[walk(nodes, keys[r:], t.depth)]
		}
	}
}

// stride is how many steps rows take before a check whether all of them are at a leaf. Most trees are no deeper. In a
// deeper one most leaves are near the root.
const stride = 8

// walkFour returns the leaves that four adjacent rows reach. The rows take their steps side by side, because each
// step of a row depends on its previous one.
func walkFour(nodes []node, keys []int32, depth int) (a, b, c, d int32) {
	for ; depth > 0; depth -= stride {
		for range min(depth, stride) {
			na, nb, nc, nd := &nodes[a], &nodes[b], &nodes[c], &nodes[d]
			a = na.next + below(keys[na.input], na.bound)
			b = nb.next + below(keys[nb.input+1], nb.bound)
			c = nc.next + below(keys[nc.input+2], nc.bound)
			d = nd.next + below(keys[nd.input+3], nd.bound)
		}
		if nodes[a].next == a && nodes[b].next == b && nodes[c].next == c && nodes[d].next == d {
			break
		}
	}
	return a, b, c, d
}

// walk returns the leaf that one row reaches.
func walk(nodes []node, keys []int32, depth int) (at int32) {
	for range depth {
		n := &nodes[at]
		at = n.next + below(keys[n.input], n.bound)
	}
	return at
}

// below returns -1 if key is less than bound, otherwise 0. It has no branch.
func below(key, bound int32) int32 { return int32((int64(key) - int64(bound)) >> 63) }

// isNumber reports whether v is finite.
func isNumber(v float32) bool { return !math.IsInf(float64(v), 0) && v == v }
