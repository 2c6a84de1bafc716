package resp

import (
	"iter"
	"math"
	"strconv"
)

// A Kind is the type of a reply.
type Kind uint8

// The kinds of reply in RESP2. A null bulk string and a null array are both Null.
//
// RESP3 adds only Push. Its other values get the kinds that a server sends to RESP2 clients: a map is an Array of
// alternating keys and values, a set is an Array, a double, a big number or a verbatim string is a Bulk, and an error
// with a length is an Error. Only a boolean differs: it is the SimpleString "t" or "f".
const (
	SimpleString Kind = iota + 1
	Error
	Integer
	Bulk
	Null
	Array
	Push // like an Array, but sent by the server unasked; it does not answer a command
)

// nests reports whether a value of the kind holds others.
func (k Kind) nests() bool { return k >= Array }

// String returns the kind's name in lower case.
func (k Kind) String() string {
	switch k {
	case SimpleString:
		return "simple string"
	case Error:
		return "error"
	case Integer:
		return "integer"
	case Bulk:
		return "bulk string"
	case Null:
		return "null"
	case Array:
		return "array"
	case Push:
		return "push"
	default:
		return "kind " + strconv.Itoa(int(k))
	}
}

// A value is one entry of a tape. A nested reply is its array's entry followed by
// those of its elements (preorder), so one flat slice without pointers holds
// any tree.
type value struct {
	kind Kind
	// off is where the bytes begin in tape.data; of an array: the index of the
	// first entry behind its last descendant.
	off uint32
	// n is the number of bytes; of an array: of elements.
	n uint32
}

// A tape is n replies: the bytes as read, and an index of the values in them.
type tape struct {
	data  []byte
	vals  []value
	roots []uint32         // roots[i] is the entry at which reply i begins; ascending.
	list  []Reply          // holds the replies instead if they are on other tapes
	errs  map[uint32]error // by entry: why there is no reply; mostly nil
}

// after returns the index of the entry that follows entry i and all inside it.
func (t *tape) after(i uint32) uint32 {
	if v := &t.vals[i]; v.kind.nests() {
		return v.off
	}
	return i + 1
}

// reset empties the tape and keeps its memory, unless it is far too large.
func (t *tape) reset() {
	if cap(t.vals) > tapeKeepValues {
		t.vals, t.roots = nil, nil
	}
	t.data, t.vals, t.roots = nil, t.vals[:0], t.roots[:0]
}

// fail notes why an entry has no reply.
func (t *tape) fail(entry uint32, err error) {
	if t.errs == nil {
		t.errs = make(map[uint32]error)
	}
	t.errs[entry] = err
}

// clear empties a tape that owns its bytes and keeps its memory, within reason.
func (t *tape) clear() {
	data := t.data
	t.reset()
	t.errs = nil
	if cap(data) <= tapeKeepBytes {
		t.data = data[:0]
	}
}

// span returns the range of bytes that holds the contents of entries from to end-1.
func (t *tape) span(from, end uint32) (first, last uint32) {
	for ; from < end; from++ {
		if v := &t.vals[from]; !v.kind.nests() {
			first = v.off
			break
		}
	}
	for ; from < end; end-- {
		if v := &t.vals[end-1]; !v.kind.nests() {
			return first, v.off + v.n
		}
	}
	return 0, 0
}

// copyOf appends a copy of a reply, bytes included, and returns its entry. The copy is not
// among the roots.
func (t *tape) copyOf(r Reply) (entry uint32) {
	entry = uint32(len(t.vals))
	end := r.t.after(r.i)
	first, last := r.t.span(r.i, end)
	moved := uint32(len(t.data)) - first // modulo 2^32, as the additions below
	t.data = append(t.data, r.t.data[first:last]...)
	for _, v := range r.t.vals[r.i:end] {
		if v.kind.nests() {
			v.off += entry - r.i
		} else {
			v.off += moved
		}
		t.vals = append(t.vals, v)
	}
	return entry
}

// The largest tape kept for reuse. 64 Ki entries of 12 bytes are a thousand hashes
// of thirty fields, far above a usual batch.
const (
	tapeKeepValues = 64 << 10
	tapeKeepBytes  = 1 << 20
)

// Replies is a view of replies, in the order of their commands: to one batch, or to a part of
// one. It and every Reply taken from it are valid until the callback that received them
// returns: they point into the connection's read buffer, or into copies that the call keeps. A
// callback that keeps something copies it. Any goroutine may read it until then. The zero value
// holds no replies.
type Replies struct {
	t        *tape
	first, n uint32 // n of its replies, from first on
}

// Len returns the number of replies.
func (r Replies) Len() int { return int(r.n) }

// At returns reply i, the answer to command i.
func (r Replies) At(i int) Reply {
	if uint(i) >= uint(r.n) {
		panic("resp: reply " + strconv.Itoa(i) + " of " + strconv.Itoa(r.Len()))
	}
	if r.t.list != nil {
		return r.t.list[r.first+uint32(i)]
	}
	return Reply{r.t, r.t.roots[r.first+uint32(i)]}
}

// Slice returns a view of replies from to to-1.
func (r Replies) Slice(from, to int) Replies {
	if from < 0 || from > to || to > r.Len() {
		panic("resp: replies " + strconv.Itoa(from) + " to " + strconv.Itoa(to) + " of " + strconv.Itoa(r.Len()))
	}
	return Replies{t: r.t, first: r.first + uint32(from), n: uint32(to - from)}
}

// All iterates over the replies in order.
func (r Replies) All() iter.Seq2[int, Reply] {
	return func(yield func(int, Reply) bool) { r.each(yield) }
}

func (r Replies) each(yield func(int, Reply) bool) {
	for i := range r.Len() {
		if !yield(i, r.At(i)) {
			return
		}
	}
}

// A Reply is a view of one reply or of one element of an array; see Replies for how
// long it is valid. The zero value may only be asked for its Kind, which is 0.
// Any goroutine may read it until then.
type Reply struct {
	t *tape
	i uint32
}

// Kind returns the type of the reply.
func (r Reply) Kind() Kind {
	if r.t == nil {
		return 0
	}
	return r.t.vals[r.i].kind
}

// Bytes returns the text of a simple string or an error, the digits of an integer,
// or the content of a bulk string, which is empty but not nil if it has none. It is
// nil for Null, Array and Push. The bytes are a view, not to be changed.
func (r Reply) Bytes() []byte {
	v := &r.t.vals[r.i]
	if v.kind.nests() || v.kind == Null {
		return nil
	}
	end := v.off + v.n
	return r.t.data[v.off:end:end]
}

// Int returns the value of an Integer, and 0 for any other kind.
func (r Reply) Int() int64 {
	if r.Kind() != Integer {
		return 0
	}
	n, _ := r.ParseInt()
	return n
}

// ParseInt returns the value of an Integer, or of a string that is an int64 in
// decimal, and whether there was one.
func (r Reply) ParseInt() (int64, bool) {
	if r.Kind() == Error {
		return 0, false
	}
	return parseInt(r.Bytes())
}

// parseInt reads an int64 in decimal. Unlike strconv.ParseInt it does not allocate for other texts, since a million
// values may be such.
func parseInt(text []byte) (n int64, ok bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative || len(text) > 0 && text[0] == '+' {
		text = text[1:]
	}
	if len(text) == 0 {
		return 0, false
	}
	// Counted downwards, since the most negative number has no positive counterpart.
	for _, c := range text {
		digit := int64(c) - '0'
		if digit < 0 || digit > 9 || n < math.MinInt64/10 {
			return 0, false
		}
		n *= 10
		if n < math.MinInt64+digit {
			return 0, false
		}
		n -= digit
	}
	if negative {
		return n, true
	}
	return -n, n != math.MinInt64
}

// Len returns the number of elements of an Array or a Push, and 0 for any other kind.
func (r Reply) Len() int {
	v := &r.t.vals[r.i]
	if !v.kind.nests() {
		return 0
	}
	return int(v.n)
}

// At returns element i of an Array or a Push. It takes constant time in an array without
// arrays in it; otherwise it walks over the elements before i.
func (r Reply) At(i int) Reply {
	v := &r.t.vals[r.i]
	if !v.kind.nests() || uint(i) >= uint(v.n) {
		panic("resp: element " + strconv.Itoa(i) + " of a reply that has " + strconv.Itoa(r.Len()))
	}
	at := r.i + 1
	if v.off == at+v.n { // No element holds more than itself.
		return Reply{r.t, at + uint32(i)}
	}
	for range i {
		at = r.t.after(at)
	}
	return Reply{r.t, at}
}

// All iterates over the elements of an Array or a Push in order; any other kind has none.
// Ranging over it does not allocate.
func (r Reply) All() iter.Seq[Reply] { return func(yield func(Reply) bool) { r.each(yield) } }

func (r Reply) each(yield func(Reply) bool) {
	at := r.i + 1
	for range r.Len() {
		if !yield(Reply{r.t, at}) {
			return
		}
		at = r.t.after(at)
	}
}

// Pairs iterates over the elements of an Array or a Push two by two, as HGETALL answers field and value. A last
// element without a partner is left out; an odd Len shows that there is one. Ranging over it does not allocate.
func (r Reply) Pairs() iter.Seq2[Reply, Reply] {
	return func(yield func(Reply, Reply) bool) { r.eachPair(yield) }
}

func (r Reply) eachPair(yield func(Reply, Reply) bool) {
	at := r.i + 1
	for range r.Len() / 2 {
		second := r.t.after(at)
		if !yield(Reply{r.t, at}, Reply{r.t, second}) {
			return
		}
		at = r.t.after(second)
	}
}

// Field returns the value that follows a name in an Array or a Push of names and values, as HGETALL answers. ok is
// false if the reply lacks the name. A last name without a value does not count.
func (r Reply) Field(name string) (value Reply, ok bool) {
	at := r.i + 1
	for range r.Len() / 2 {
		second := r.t.after(at)
		if string(Reply{r.t, at}.Bytes()) == name {
			return Reply{r.t, second}, true
		}
		at = r.t.after(second)
	}
	return Reply{}, false
}

// Append appends the reply in RESP2, as a server sends it.
func (r Reply) Append(dst []byte) []byte {
	bytes := r.Bytes()
	switch kind := r.Kind(); kind {
	case Null:
		return append(dst, "$-1\r\n"...)
	case Bulk:
		dst = append(strconv.AppendInt(append(dst, '$'), int64(len(bytes)), 10), "\r\n"...)
	case Array, Push:
		dst = append(strconv.AppendInt(append(dst, '*'), int64(r.Len()), 10), "\r\n"...)
		for e := range r.All() {
			dst = e.Append(dst)
		}
		return dst
	default:
		dst = append(dst, "+-:"[kind-SimpleString])
	}
	return append(append(dst, bytes...), "\r\n"...)
}

// Err returns a *ServerError if the reply is an Error, and nil otherwise. With a Redis Cluster it is an *OpError if
// no reply came from the node that has the key. The error owns its text and outlives the reply.
func (r Reply) Err() error {
	if r.Kind() != Error {
		return nil
	}
	if err := r.t.errs[r.i]; err != nil {
		return err
	}
	return &ServerError{Message: string(r.Bytes())}
}
