package recorder

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/trace/record"
)

// IDs is the name of the ids among columns.
const IDs = "id"

// valuesMax is how many bytes of values the nodes of a request have in its record.
const valuesMax = 64 << 10

// A digester makes digests of rows. A column that nodes pass on with the same rows has its digest once. One goroutine at a time.
type digester struct {
	buf    []byte
	known  map[shown]uint64
	pinned map[string]pinned // by plan, of resident rows, which many requests have
	values int               // bytes of values that may still be kept
}

// pinned has the digests of a version of resident rows. Immutable.
type pinned struct {
	of     *taskrun.Resident
	digest string
	known  map[shown]uint64
}

// shown is a column, or ids, and which rows of it are there.
type shown struct {
	column rowset.Column
	ids    *int64
	rows   *int32
	n      int
}

// reset makes d ready for another request.
func (d *digester) reset() {
	clear(d.known)
	d.values = valuesMax
}

// rowsOf returns the digests of rows, with all values if whole, and otherwise with those of columns that no input has. texts are
// those of the ids; nil: these are integers.
func (d *digester) rowsOf(rs rowset.RowSet, texts *rowset.IDTexts, reg *registry.Registry, whole bool, inputs ...rowset.RowSet) (r record.Rows) {
	r.N = rs.N
	if rs.Batch == nil {
		return r
	}
	at := shown{n: rs.N}
	if len(rs.Rows) > 0 {
		at.rows = &rs.Rows[0]
	}
	ids := at
	if len(rs.Batch.IDs) > 0 {
		ids.ids = &rs.Batch.IDs[0]
	}
	r.IDs = d.column(IDs, ids, whole || !d.has(ids), func(dst []byte) []byte { return appendIDs(dst, rs, texts) })
	for _, c := range rs.Batch.Columns() {
		key, ok := reg.Key(c.KeyID())
		if !ok {
			continue
		}
		made := whole || !slices.ContainsFunc(inputs, func(in rowset.RowSet) bool { return in.Batch != nil && in.Batch.Column(key.ID) == c })
		at.column = c
		r.Columns = append(r.Columns, d.column(key.Name, at, made, func(dst []byte) []byte { return appendColumn(dst, c, rs) }))
	}
	slices.SortFunc(r.Columns, func(a, b record.Column) int { return strings.Compare(a.Name, b.Name) })
	return r
}

func (d *digester) has(s shown) bool {
	_, ok := d.find(s)
	return ok
}

func (d *digester) find(s shown) (digest uint64, ok bool) {
	if digest, ok = d.known[s]; ok {
		return digest, true
	}
	for _, p := range d.pinned {
		if digest, ok = p.known[s]; ok {
			return digest, true
		}
	}
	return 0, false
}

// pin returns the digest of resident rows, and keeps their digests until the plan has others.
func (d *digester) pin(plan string, r *taskrun.Resident, reg *registry.Registry) (digest string) {
	if p := d.pinned[plan]; p.of == r {
		return p.digest
	}
	rows, known := residentRows(r, reg)
	if d.pinned == nil {
		d.pinned = make(map[string]pinned)
	}
	d.pinned[plan] = pinned{r, digestOf(&rows), known}
	return d.pinned[plan].digest
}

// residentRows returns resident rows with their values, and the digests of their columns.
func residentRows(r *taskrun.Resident, reg *registry.Registry) (record.Rows, map[shown]uint64) {
	d := digester{values: math.MaxInt}
	var texts *rowset.IDTexts
	if r.IDs != nil {
		texts = r.IDs.Texts()
	}
	return d.rowsOf(r.Rows, texts, reg, true), d.known
}

// column returns a column with its digest, and with the text form that write makes if values are wanted.
func (d *digester) column(name string, s shown, values bool, write func(dst []byte) []byte) record.Column {
	digest, ok := d.find(s)
	if ok && !values {
		return record.Column{Name: name, Digest: digest}
	}
	d.buf = write(d.buf[:0])
	c := record.Column{Name: name, Digest: xxhash.Sum64(d.buf)}
	if d.known == nil {
		d.known = make(map[shown]uint64)
	}
	if d.known[s] = c.Digest; values && len(d.buf) <= d.values {
		d.values -= len(d.buf)
		c.Values = slices.Clone(d.buf)
	}
	return c
}

// appendIDs appends the text form of ids.
func appendIDs(dst []byte, rs rowset.RowSet, texts *rowset.IDTexts) []byte {
	if texts != nil {
		dst = append(dst, byte(registry.String))
		for i := range rs.N {
			text := texts.At(rs.ID(i))
			dst = append(binary.AppendUvarint(append(dst, 1), uint64(len(text))), text...)
		}
		return dst
	}
	dst = append(dst, byte(registry.Int))
	for i := range rs.N {
		dst = binary.LittleEndian.AppendUint64(append(dst, 1), uint64(rs.ID(i)))
	}
	return dst
}

// appendColumn appends the text form of a column: see record.Column.
func appendColumn(dst []byte, column rowset.Column, rs rowset.RowSet) []byte {
	dst = append(dst, byte(column.Type()))
	if c, ok := column.(*rowset.VectorColumn); ok {
		dst = binary.AppendUvarint(dst, uint64(c.Dims))
	}
	for i := range rs.N {
		row, ok := int(rs.Row(i)), false
		at := len(dst)
		dst = append(dst, 1)
		switch c := column.(type) {
		case *rowset.FloatColumn:
			var v float64
			v, ok = c.Value(row)
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		case *rowset.IntColumn:
			var v int64
			v, ok = c.Value(row)
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
		case *rowset.BoolColumn:
			var v bool
			if v, ok = c.Value(row); v {
				dst = append(dst, 1)
			} else {
				dst = append(dst, 0)
			}
		case *rowset.StringColumn:
			var v string
			v, ok = c.Value(row)
			dst = append(binary.AppendUvarint(dst, uint64(len(v))), v...)
		case *rowset.SetColumn:
			var few [16]string
			var members []string
			members, ok = c.AppendValues(few[:0], row)
			dst = binary.AppendUvarint(dst, uint64(len(members)))
			for _, m := range members {
				dst = append(binary.AppendUvarint(dst, uint64(len(m))), m...)
			}
		case *rowset.VectorColumn:
			var v []float32
			v, ok = c.Value(row)
			for _, x := range v {
				dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
			}
		}
		if !ok {
			dst = append(dst[:at], 0)
		}
	}
	return dst
}

// columnBytesMax is the most bytes that the numbers of a column of vectors take in memory.
const columnBytesMax = 256 << 20

// decode returns a column of n rows from its text form, for a key; id 0 stands for any. The error says that the bytes are not such a column.
func decode(text []byte, n int, id registry.KeyID) (c rowset.Column, err error) {
	defer func() {
		if v := recover(); v != nil {
			c, err = nil, fmt.Errorf("a recorded column is malformed: %v", v)
		}
	}()
	key, rest := registry.Key{ID: id, Type: registry.Type(text[0])}, text[1:]
	if key.Type == registry.Vector {
		dims, at := binary.Uvarint(rest)
		if key.Dims, rest = int(dims), rest[at:]; dims == 0 || dims > registry.VectorDimsMax {
			return nil, fmt.Errorf("a recorded column has vectors of %d elements", dims)
		}
	}
	if n > len(rest) || n > columnBytesMax/(4*max(key.Dims, 1)) { // A row takes a byte here. A null vector takes them all in memory.
		return nil, fmt.Errorf("a recorded column of %d bytes has %d rows, and vectors of %d elements", len(rest), n, key.Dims)
	}
	b := rowset.NewBuilder(nil, &key, n)
	if b == nil {
		return nil, fmt.Errorf("a recorded column has the type %d", text[0])
	}
	for range n {
		there := rest[0]
		if rest = rest[1:]; there == 0 {
			b.AppendNull()
		} else {
			rest = b.AppendBinary(rest)
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("a recorded column has %d bytes too many", len(rest))
	}
	return b.Column(), nil
}

// digestOf returns the digest of rows, in hex.
func digestOf(r *record.Rows) string {
	text := binary.AppendUvarint(nil, uint64(r.N))
	text = binary.LittleEndian.AppendUint64(text, r.IDs.Digest)
	for _, c := range r.Columns {
		text = append(append(text, c.Name...), 0)
		text = binary.LittleEndian.AppendUint64(text, c.Digest)
	}
	return fmt.Sprintf("%016x", xxhash.Sum64(text))
}
