package rowset

import (
	"math/bits"
	"sync"
	"unsafe"
)

// A Pool keeps slices of ended requests for later ones. Such a slice costs neither fresh memory, which has to be
// cleared, nor a garbage collection. Plans on few rows make many small slices, which are parts of
// few blocks. Any goroutine.
type Pool struct {
	config PoolConfig

	mu        sync.Mutex // guards all below
	bytes     int        // of what is kept; at most config.BytesMax
	ids       shelf[int64]
	floats    shelf[float64]
	rows      shelf[int32]
	scratches []*sortScratch
}

// PoolConfig sets a Pool up. The zero value means the defaults. Immutable once NewPool has it.
type PoolConfig struct {
	// BytesMax bounds what is kept. Zero means 64 MB. A full pool drops all its slices, so that the sizes now in use
	// replace earlier ones.
	BytesMax int
	// LengthMin is the length from which on slices are kept. Zero means 64: for fewer elements the way
	// to the pool costs more than it saves.
	LengthMin int
	// Poison has the pool overwrite what comes back. Tests set it: code that still reads such a slice
	// finds wrong values.
	Poison bool
}

// NewPool returns an empty pool.
func NewPool(config PoolConfig) *Pool {
	if config.BytesMax <= 0 {
		config.BytesMax = 64 << 20
	}
	if config.LengthMin <= 0 {
		config.LengthMin = 64
	}
	return &Pool{config: config}
}

// Bytes returns how many bytes the pool keeps.
func (p *Pool) Bytes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// A shelf has the slices of one type that a Pool keeps, by the logarithm of their capacity, which is
// a power of two. Pool.mu guards it.
type shelf[T any] [bits.UintSize][][]T

// take returns a slice of that capacity, or nil. Its elements have any values.
func (s *shelf[T]) take(class int) []T {
	last := len(s[class]) - 1
	if last < 0 {
		return nil
	}
	slice := s[class][last]
	s[class][last] = nil
	s[class] = s[class][:last]
	return slice
}

// keep makes room for so many bytes and counts them. False means that they are too many. The caller
// holds mu.
func (p *Pool) keep(bytes int) bool {
	if bytes > p.config.BytesMax {
		return false
	}
	if p.bytes+bytes > p.config.BytesMax {
		p.ids, p.floats, p.rows, p.scratches = shelf[int64]{}, shelf[float64]{}, shelf[int32]{}, nil
		p.bytes = 0
	}
	p.bytes += bytes
	return true
}

// takeScratch returns the scratch memory of a sort.
func (p *Pool) takeScratch() *sortScratch {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.scratches) - 1
	if last < 0 {
		return new(sortScratch)
	}
	s := p.scratches[last]
	p.scratches[last] = nil
	p.scratches = p.scratches[:last]
	p.bytes -= s.bytes()
	return s
}

func (p *Pool) putScratch(s *sortScratch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keep(s.bytes()) {
		p.scratches = append(p.scratches, s)
	}
}

// A Memory lends the slices of a Pool to the nodes of one request, and takes them back when the request
// has ended. A nil Memory allocates. Any goroutine, except SetLending and Release: the owner, while no
// body has it.
type Memory struct {
	lending bool

	mu    sync.Mutex // guards what is lent
	loans Loans
}

// Loans are slices of a pool that somebody has. The zero value is none. One goroutine at a time.
type Loans struct {
	pool   *Pool
	ids    loan[int64]
	floats loan[float64]
	rows   loan[int32]
}

// A loan is what is lent of one type.
type loan[T any] struct {
	slices [][]T // of the pool, whole
	rest   []T   // of the block among them whose parts are lent now
	class  int   // of that block
}

// The first block of a request has 512 elements. Each further one has twice as many, up to 4,096. A slice of 512
// elements or more is not part of a block.
const blockClassMin, blockClassMax = 9, 12

// NewMemory returns a Memory of p that lends nothing yet. A nil pool gives a nil Memory.
func NewMemory(p *Pool) *Memory {
	if p == nil {
		return nil
	}
	return &Memory{loans: Loans{pool: p}}
}

// SetLending says whether slices are lent from now on. A request that may leave references behind gets allocated
// slices instead.
func (m *Memory) SetLending(lending bool) { m.lending = lending }

// IDs returns a slice of n elements with any values, for ids or the values of an int column.
func (m *Memory) IDs(n int) []int64 {
	if !m.lends(n) {
		return make([]int64, n)
	}
	return lend(m, &m.loans.ids, &m.loans.pool.ids, n)
}

// Floats returns a slice of n elements with any values.
func (m *Memory) Floats(n int) []float64 {
	if !m.lends(n) {
		return make([]float64, n)
	}
	return lend(m, &m.loans.floats, &m.loans.pool.floats, n)
}

// Rows returns a slice of n elements with any values, for a list of rows or the codes of a column of strings or sets.
func (m *Memory) Rows(n int) []int32 {
	if !m.lends(n) {
		return make([]int32, n)
	}
	return lend(m, &m.loans.rows, &m.loans.pool.rows, n)
}

// lends reports whether a slice of n elements is lent. A slice of more than a quarter of the pool would leave no room
// for others, and rounding it up would waste too much.
func (m *Memory) lends(n int) bool {
	return m != nil && m.lending && n >= m.loans.pool.config.LengthMin && n <= m.loans.pool.config.BytesMax/32
}

// lend returns a slice of n elements: one of the shelf, or a part of a block.
func lend[T any](m *Memory, to *loan[T], from *shelf[T], n int) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if class := bits.Len(uint(n - 1)); class >= blockClassMin {
		return to.add(m.loans.pool, from, class)[:n:n]
	}
	if len(to.rest) < n {
		to.class = min(max(to.class+1, blockClassMin), blockClassMax)
		to.rest = to.add(m.loans.pool, from, to.class)
	}
	part := to.rest[:n:n]
	to.rest = to.rest[n:]
	return part
}

// add returns a slice of the shelf or a new one, and notes it.
func (l *loan[T]) add(p *Pool, from *shelf[T], class int) []T {
	p.mu.Lock()
	slice := from.take(class)
	if slice != nil {
		p.bytes -= sizeOf(slice)
	}
	p.mu.Unlock()
	if slice == nil {
		slice = make([]T, 1<<class)
	}
	l.slices = append(l.slices, slice)
	return slice
}

// sizeOf returns the bytes of a slice.
func sizeOf[T any](slice []T) int { return len(slice) * int(unsafe.Sizeof(*new(T))) }

// scratch returns the scratch memory of a sort that ends when stop says so. The caller gives it
// back to freeScratch.
func (m *Memory) scratch(stop Stop) *sortScratch {
	var s *sortScratch
	if m != nil {
		s = m.loans.pool.takeScratch()
	} else {
		s = new(sortScratch)
	}
	s.stop, s.memory = stop, m
	return s
}

func (m *Memory) freeScratch(s *sortScratch) {
	if m != nil {
		s.stop, s.stopped, s.memory = nil, false, nil
		m.loans.pool.putScratch(s)
	}
}

// copyMax is how many values Release copies at most: some 10 µs on the loop.
const copyMax = 4096

// Release ends a request whose answer has these outputs. It copies small outputs and takes all slices back to the
// pool. If an output is larger, the slices stay the answer's for good. Nothing else may refer to them.
func (m *Memory) Release(outputs []RowSet) { m.ReleaseTo(outputs, nil) }

// ReleaseTo is Release for a request whose slices somebody still reads: held gets them, in exchange for its own, and who
// has it takes them back. A nil held is that of Release.
func (m *Memory) ReleaseTo(outputs []RowSet, held *Loans) {
	if m == nil || len(m.loans.ids.slices)+len(m.loans.floats.slices)+len(m.loans.rows.slices) == 0 {
		return
	}
	values := 0
	for _, out := range outputs {
		if out.Batch != nil {
			values += out.N * (1 + out.Batch.Count())
		}
	}
	if values > copyMax {
		m.loans.forget()
		return
	}
	for i, out := range outputs {
		if out.Batch != nil {
			outputs[i] = Concat(nil, out)
		}
	}
	if held == nil {
		m.loans.TakeBack()
		return
	}
	held.pool = m.loans.pool
	*held, m.loans = m.loans, *held
}

// forget notes nothing any more.
func (l *Loans) forget() {
	l.ids.forget()
	l.floats.forget()
	l.rows.forget()
}

// forget notes nothing any more.
func (l *loan[T]) forget() {
	clear(l.slices)
	l.slices, l.rest, l.class = l.slices[:0], nil, 0
}

// TakeBack gives the slices back to their pool. Nothing may refer to them any more.
func (l *Loans) TakeBack() {
	p := l.pool
	if p == nil {
		return
	}
	if p.config.Poison {
		poison(l.ids.slices, -1)
		poison(l.floats.slices, -1)
		poison(l.rows.slices, 0)
	}
	p.mu.Lock()
	putBack(p, &p.ids, l.ids.slices)
	putBack(p, &p.floats, l.floats.slices)
	putBack(p, &p.rows, l.rows.slices)
	p.mu.Unlock()
	l.forget()
}

// putBack puts slices on the shelf. The caller holds mu.
func putBack[T any](p *Pool, to *shelf[T], lent [][]T) {
	for _, slice := range lent {
		if p.keep(sizeOf(slice)) {
			class := bits.Len(uint(len(slice) - 1))
			to[class] = append(to[class], slice)
		}
	}
}

// poison overwrites slices that nobody may read any more.
func poison[T any](lent [][]T, with T) {
	for _, slice := range lent {
		for i := range slice {
			slice[i] = with
		}
	}
}
