package expr

import (
	"math/bits"

	"github.com/rankd/rankd/rowset"
)

// chunkRows is how many rows an operation handles before the next operation runs. A register then takes 8 KiB. Three
// of them, an operation's operands and result, fit the L1 cache of any CPU, and the cost of dispatch per row is
// negligible. A multiple of 64 lets each chunk of a dense row set start at a word of a Bitmap.
const (
	chunkRows  = 1024
	chunkWords = chunkRows / 64
)

// A chunk is a part of the active list, at most chunkRows long.
type chunk struct {
	n    int     // rows
	lo   int     // if rows is nil: the batch row of position 0
	rows []int32 // batch row of each position; nil: lo, lo+1, ...
	// level counts how often positions were compacted (evaluator.testCompacted).
	level int
}

// row returns the batch row of a position.
func (c *chunk) row(pos int) int32 {
	if c.rows == nil {
		return int32(c.lo + pos)
	}
	return c.rows[pos]
}

// words returns the number of words that the chunk uses of a mask.
func (c *chunk) words() int { return (c.n + 63) / 64 }

// chunks splits the active list into chunks, until the list ends or stop ends it.
type chunks struct {
	in      rowset.RowSet
	next    int         // position of the next chunk's first row
	stop    rowset.Stop // nil: never
	stopped bool        // advance returned false because of stop
}

// advance makes c the next chunk, or returns false at the end. Every evaluation
// comes through here before each chunk, so advance asks whether to stop.
func (s *chunks) advance(c *chunk) bool {
	if s.next >= s.in.N {
		return false
	}
	if s.stop != nil && s.stop.Cancelled() {
		s.stopped = true
		return false
	}
	*c = chunk{n: min(chunkRows, s.in.N-s.next), lo: s.next}
	if s.in.Rows != nil {
		c.rows = s.in.Rows[s.next : s.next+c.n]
	}
	s.next += c.n
	return true
}

// A mask has a bit for each position of a chunk. Bits past the chunk's end in
// its last word are 0. Nobody reads the words after that.
type mask [chunkWords]uint64

// fullMask returns the mask of all n positions.
func fullMask(n int) (m mask) {
	full := n / 64
	for i := range m[:full] {
		m[i] = ^uint64(0)
	}
	if rest := uint(n) % 64; rest != 0 {
		m[full] = 1<<rest - 1
	}
	return m
}

func countOnes(words []uint64) (n int) {
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}

func anyOnes(words []uint64) bool {
	for _, w := range words {
		if w != 0 {
			return true
		}
	}
	return false
}
