package rowset

import (
	"errors"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/rankd/rankd/registry"
)

// Bounds of ids that are texts.
const (
	IDBytesMax     = 256      // of one id
	idDictBytesMax = 64 << 20 // of all ids of a request
)

// ErrTooManyIDs says that the texts of the ids of one request are too long together.
var ErrTooManyIDs = errors.New("the ids of the request have more than 64 MiB")

// ValidID reports whether a text may be an id: it has 1 to IDBytesMax bytes.
func ValidID[T string | []byte](text T) bool { return len(text) > 0 && len(text) <= IDBytesMax }

// IDDict gives numbers to the text ids of one request. Rows have these numbers as ids. Equal texts have equal
// numbers; otherwise the numbers mean nothing, since they depend on which node came first. An IDDict only grows, so
// what Texts has returned stays true. Any goroutine. A body on the loop may wait for the lock. So nobody holds it for
// more than numberAtOnce texts, each of which costs a bounded number of steps, however many texts there are.
type IDDict struct {
	base *IDDict // has numbers already, and gets no more; nil: none

	mu    sync.Mutex
	texts *IDTexts   // as of the last call of Texts; nil: there was none. Guarded by mu
	own   textList   // guarded by mu; its texts do not change
	index idIndex    // of own; guarded by mu
	block textBlocks // of the newest texts; guarded by mu
	bytes int        // of own; guarded by mu
}

// NewIDDict returns an empty dictionary.
func NewIDDict() *IDDict { return new(IDDict) }

// Extend returns a dictionary that has the numbers of d, which must get no more texts; nil has none. It takes no time,
// and its own texts alone count towards ErrTooManyIDs. Many may extend d.
func (d *IDDict) Extend() *IDDict { return &IDDict{base: d} }

// Number appends the numbers of texts to ids, in their order. It copies those that are new. The error is ErrTooManyIDs.
func (d *IDDict) Number(ids []int64, texts ...[]byte) (_ []int64, err error) {
	for part := range slices.Chunk(texts, numberAtOnce) {
		if ids, err = d.number(ids, part); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// numberAtOnce is how many texts are numbered under the lock: some 20 µs.
const numberAtOnce = 256

func (d *IDDict) number(ids []int64, texts [][]byte) ([]int64, error) {
	first, isNew := len(ids), false
	for _, text := range texts {
		id := findID(d.base, text)
		isNew = isNew || id < 0
		ids = append(ids, id)
	}
	if !isNew {
		return ids, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, text := range texts {
		if ids[first+i] >= 0 {
			continue
		}
		at, hash := findText(&d.own, &d.index, text)
		if at < 0 {
			if d.bytes += len(text); d.bytes > idDictBytesMax {
				return nil, ErrTooManyIDs
			}
			at = d.add(d.block.copy(text), hash)
		}
		ids[first+i] = int64(d.base.len() + at)
	}
	return ids, nil
}

// Merge numbers all texts of another dictionary, which must get no more, and returns their numbers by those that they
// have there. It holds the lock all the while: nobody else may use d yet. The texts do not count towards ErrTooManyIDs.
func (d *IDDict) Merge(from *IDDict) []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	texts := from.Texts()
	ids := make([]int64, texts.Len())
	for i := range ids {
		text := texts.At(int64(i))
		if ids[i] = findID(d.base, text); ids[i] >= 0 {
			continue
		}
		at, hash := findText(&d.own, &d.index, text)
		if at < 0 {
			at = d.add(text, hash)
		}
		ids[i] = int64(d.base.len() + at)
	}
	return ids
}

// add adds a new text with that hash and returns its number among the own ones.
func (d *IDDict) add(text string, hash uint64) int {
	at := d.own.len()
	d.own.add(text)
	d.index.add(&d.own, hash, at)
	return at
}

// Find returns the number of a text. ok is false if it has none.
func (d *IDDict) Find(text string) (id int64, ok bool) {
	if id = findID(d.base, text); id < 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		at, _ := findText(&d.own, &d.index, text)
		if at < 0 {
			return 0, false
		}
		id = int64(d.base.len() + at)
	}
	return id, true
}

// Texts returns the texts of all numbers given so far.
func (d *IDDict) Texts() *IDTexts {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.own.len(); d.texts == nil || d.texts.own.len() < n {
		d.texts = &IDTexts{own: d.own}
		if d.base != nil {
			d.texts.base, d.texts.from = d.base.Texts(), d.base.len()
		}
	}
	return d.texts
}

// len returns how many numbers a dictionary that gets no more has given; nil has none.
func (d *IDDict) len() int {
	if d == nil {
		return 0
	}
	return d.base.len() + d.own.len()
}

// findID returns the number of a text in a dictionary that gets no more, or -1; nil has none.
func findID[T string | []byte](d *IDDict, text T) int64 {
	if d == nil {
		return -1
	}
	if id := findID(d.base, text); id >= 0 {
		return id
	}
	if at, _ := findText(&d.own, &d.index, text); at >= 0 {
		return int64(d.base.len() + at)
	}
	return -1
}

// IDTexts are texts by the numbers that rows have as ids. Immutable; any goroutine.
type IDTexts struct {
	base *IDTexts // of the numbers below from; nil: there are none
	from int
	own  textList
}

// At returns the text of a number.
func (t *IDTexts) At(id int64) string {
	if int(id) < t.from {
		return t.base.At(id)
	}
	return t.own.at(int(id) - t.from)
}

// Shares reports whether t and other are of one dictionary, so that equal numbers mean equal texts. It is false if
// that is not certain.
func (t *IDTexts) Shares(other *IDTexts) bool {
	return t == other || t.base == other.base && t.own.len() > 0 && other.own.len() > 0 && t.own.first() == other.own.first()
}

// TextsOf returns the texts whose numbers are their places in values, which must not change.
func TextsOf(values []string) *IDTexts {
	t := &IDTexts{own: textList{last: values}}
	for len(t.own.last) > textChunk {
		t.own.full, t.own.last = append(t.own.full, t.own.last[:textChunk]), t.own.last[textChunk:]
	}
	return t
}

// Len returns how many numbers there are: they are from 0 on.
func (t *IDTexts) Len() int { return t.from + t.own.len() }

// Column returns the ids of a batch as a column of strings, in time that grows with its rows alone.
func (t *IDTexts) Column(ids []int64) *StringColumn {
	c := &StringColumn{Key: registry.IDKey, Places: make([]int32, len(ids)), Dict: newDict()}
	one := t.from == 0 && t.own.full == nil // chunk
	if one || t.Len() <= 2*len(ids) {       // The numbers are the places.
		if c.Dict.Values = t.own.last; !one {
			c.Dict.Values = make([]string, t.Len())
			for id := range c.Dict.Values {
				c.Dict.Values[id] = t.At(int64(id))
			}
		}
		for i, id := range ids {
			c.Places[i] = int32(id)
		}
		return c
	}
	codes := make(map[int64]int32, len(ids))
	for i, id := range ids {
		code, ok := codes[id]
		if !ok {
			code = int32(len(c.Dict.Values))
			codes[id], c.Dict.Values = code, append(c.Dict.Values, t.At(id))
		}
		c.Places[i] = code
	}
	return c
}

// textChunk is how many texts a chunk of a textList has.
const textChunk = 1024

// A textList is a list of texts that grows by a chunk at a time, so that adding one never copies more than a chunk and
// the list of the chunks. A copy of it is a list as it was, while one goroutine goes on adding.
type textList struct {
	full [][]string
	last []string
}

func (l *textList) len() int { return len(l.full)*textChunk + len(l.last) }

func (l *textList) at(i int) string {
	if c := i / textChunk; c < len(l.full) {
		return l.full[c][i%textChunk]
	}
	return l.last[i%textChunk]
}

// first returns where the first text is. There is one.
func (l *textList) first() *string {
	if len(l.full) > 0 {
		return &l.full[0][0]
	}
	return &l.last[0]
}

func (l *textList) add(text string) {
	if len(l.last) == textChunk {
		l.full, l.last = append(l.full, l.last), nil
		l.last = make([]string, 0, textChunk)
	}
	l.last = append(l.last, text)
}

// An idIndex finds texts of a list by extendible hashing: adding one never moves more than the texts of a segment and
// the list of the segments, since a full segment is split in two while all others stay. The zero value is empty. One goroutine at a time
// may add.
type idIndex struct {
	seed     maphash.Seed
	segments []*idSegment // by the first bits of the hash; nil while there are at most dictScanMax texts
	depth    int          // how many bits those are
	moved    int          // texts that segments have moved, for tests
}

// An idSegment is an open-addressing table of numbers plus 1, at most half full.
type idSegment struct {
	depth int // how many of the first bits of the hash its texts share
	used  int
	slots []int32
}

// Sizes of a segment, in slots.
const segmentSlotsMin, segmentSlotsMax = 64, 1024

// findText returns the place of a text in the list, or -1, and its hash.
func findText[T string | []byte](texts *textList, x *idIndex, text T) (at int, hash uint64) {
	if x.segments == nil {
		for i, s := range texts.last {
			if s == string(text) {
				return i, 0
			}
		}
		return -1, 0
	}
	hash = maphash.Bytes(x.seed, []byte(text))
	s := x.segment(hash)
	for slot := hash; ; slot++ {
		switch code := s.slots[slot&uint64(len(s.slots)-1)]; {
		case code == 0:
			return -1, hash
		case texts.at(int(code)-1) == string(text):
			return int(code) - 1, hash
		}
	}
}

func (x *idIndex) segment(hash uint64) *idSegment { return x.segments[hash>>(64-x.depth)] }

// add adds the text that the list has at that place.
func (x *idIndex) add(texts *textList, hash uint64, at int) {
	if x.segments == nil {
		if at < dictScanMax {
			return
		}
		x.seed = maphash.MakeSeed()
		x.segments = []*idSegment{{slots: make([]int32, segmentSlotsMin)}}
		for i := range at + 1 {
			x.segments[0].put(maphash.String(x.seed, texts.at(i)), int32(i)+1)
		}
		return
	}
	s := x.segment(hash)
	for 2*s.used == len(s.slots) {
		x.grow(texts, s, hash)
		s = x.segment(hash)
	}
	s.put(hash, int32(at)+1)
}

func (s *idSegment) put(hash uint64, code int32) {
	slot := hash
	for s.slots[slot&uint64(len(s.slots)-1)] != 0 {
		slot++
	}
	s.slots[slot&uint64(len(s.slots)-1)] = code
	s.used++
}

// grow makes room in the segment of a hash.
func (x *idIndex) grow(texts *textList, s *idSegment, hash uint64) {
	x.moved += s.used
	old := s.slots
	if len(old) < segmentSlotsMax {
		s.slots, s.used = make([]int32, 2*len(old)), 0
		for _, code := range old {
			if code != 0 {
				s.put(maphash.String(x.seed, texts.at(int(code)-1)), code)
			}
		}
		return
	}
	if s.depth == x.depth { // Each segment has two places now.
		segments := make([]*idSegment, 0, 2*len(x.segments))
		for _, of := range x.segments {
			segments = append(segments, of, of)
		}
		x.segments, x.depth = segments, x.depth+1
	}
	s.depth++
	halves := [2]*idSegment{s, {depth: s.depth, slots: make([]int32, segmentSlotsMax)}}
	s.slots, s.used = make([]int32, segmentSlotsMax), 0
	for _, code := range old {
		if code != 0 {
			of := maphash.String(x.seed, texts.at(int(code)-1))
			halves[of>>(64-s.depth)&1].put(of, code)
		}
	}
	places := 1 << (x.depth - s.depth) // of each half
	first := int(hash>>(64-x.depth)) &^ (2*places - 1)
	for i := range places {
		x.segments[first+places+i] = halves[1]
	}
}
