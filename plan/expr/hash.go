package expr

import (
	"math"

	"github.com/rankd/rankd/rowset"
)

// The bits of hash and random are a promise: they are the same on every machine and in every version. TestHashBits has vectors.
//
//	mix(v)        v ^= v >> 30, v *= 0xbf58476d1ce4e5b9, v ^= v >> 27, v *= 0x94d049bb133111eb, v ^= v >> 31
//	fold(number)  mix(v + 0x9e3779b97f4a7c15), where v is the number as an integer of 64 bits or, of one that is not integral, its bits
//	fold(string)  mix(v + 0x9e3779b97f4a7c15), where v is FNV-1a of 64 bits over its bytes
//	draw(x, seed) mix(fold(x) ^ mix(fold(seed) + 0x9e3779b97f4a7c15))
//
// All arithmetic is modulo 2^64. mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014; constants of Stafford's variant 13), and FNV-1a has the offset 14695981039346656037 and the prime 1099511628211.
const golden = 0x9e3779b97f4a7c15

func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// FoldInt returns the 64 bits that stand for an integer, an id for example, in Draw.
func FoldInt(x int64) uint64 { return mix(uint64(x) + golden) }

// FoldNumber is FoldInt for a double. An integral one that fits has the bits of that integer.
func FoldNumber(x float64) uint64 {
	if x == math.Trunc(x) && x >= -1<<63 && x < 1<<63 {
		return FoldInt(int64(x))
	}
	return mix(math.Float64bits(x) + golden)
}

// FoldString is FoldInt for a string.
func FoldString(s string) uint64 {
	v := uint64(14695981039346656037)
	for i := range len(s) {
		v = (v ^ uint64(s[i])) * 1099511628211
	}
	return mix(v + golden)
}

// Draw returns 64 bits that look random, and depend on what x and seed stand for alone.
func Draw(x, seed uint64) uint64 { return mix(x ^ mix(seed+golden)) }

// Uniform returns the first 53 of the bits of a Draw as a number from 0 to below 1.
func Uniform(draw uint64) float64 { return float64(draw>>11) * 0x1p-53 }

// hashOf is the value of the operator hash: the first 53 bits of a Draw, as an integer.
func hashOf(draw uint64) float64 { return float64(draw >> 11) }

// hashed computes an opHash: the operator's draw function of the folds of x and of the seed. Both lie in registers as the bits of doubles.
func (ev *evaluator) hashed(in *instruction, c *chunk, dst *register, free int) vector {
	x := ev.folds(in.a, c, dst, free)
	seed := ev.folds(in.b, c, ev.reg(free), free+1)
	vals := dst.vals[:c.n]
	for i, v := range seed.vals {
		vals[i] = in.of.draw(Draw(math.Float64bits(x.vals[i]), math.Float64bits(v)))
	}
	return vector{vals, bothValid(dst, c, x.valid, seed.valid)}
}

// folds returns the folds of an operand: of instruction at, or of the leaf -1-at.
func (ev *evaluator) folds(at int32, c *chunk, dst *register, free int) vector {
	vals, valid := dst.vals[:c.n], dst.valid[:c.words()]
	if at >= 0 {
		v := ev.eval(at, c, dst, free)
		if !allFinite(v.vals) {
			v.valid = keepFinite(&dst.valid, v.vals, v.valid)
		}
		for i, x := range v.vals {
			vals[i] = math.Float64frombits(FoldNumber(x))
		}
		return vector{vals, v.valid}
	}
	l, b := &ev.code.leaves[-1-at], &ev.boundLeaves[-1-at]
	kind := b.kind
	if l.text && ev.params.IDs() == nil {
		kind = bindIDs // The ids of this request are integers.
	}
	switch kind {
	case bindScalar:
		fold := FoldInt(b.whole())
		if l.typ == String {
			fold = FoldString(b.value.text)
		}
		fill(vals, math.Float64frombits(fold))
		return vector{vals: vals}
	case bindIDs, bindInts:
		column := ev.batch.IDs
		var nulls rowset.Bitmap
		if kind == bindInts {
			column, nulls = b.ints.Values, b.ints.Valid
		}
		for i := range vals {
			vals[i] = math.Float64frombits(FoldInt(column[c.row(i)]))
		}
		return vector{vals, readValid(nulls, c, dst)}
	case bindColumn:
		clear(valid)
		for i := range vals {
			vals[i] = 0
			if code := b.strings.Codes[c.row(i)]; code >= 0 {
				vals[i] = math.Float64frombits(FoldString(b.strings.Dict.Values[code]))
				valid[i/64] |= 1 << (uint(i) % 64)
			}
		}
		return vector{vals, valid}
	}
	clear(vals)
	clear(valid)
	return vector{vals, valid}
}

// folded compiles an operand of hash and random: a value that is read exactly is a leaf, anything else a number.
func (c *compiler) folded(n *node, need *uint8) int32 {
	if n.typ == Int || n.typ == String {
		return -1 - c.leaf(n, n.typ)
	}
	at := c.expr(n)
	*need = max(*need, increased(c.program[at].need))
	return at
}
