package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"
)

// inlineBytes is the length from which on bytes are a blob.
const inlineBytes = 64

// decodedBytesMax bounds the memory of one decoded value, its blobs included.
const decodedBytesMax = 1 << 30

var timeType = reflect.TypeFor[time.Time]()

// An encoder writes a value by its type: docs/reference/record-format.md has the rules. Equal values have equal bytes. One goroutine.
type encoder struct {
	body     []byte
	blobs    []digest // that the body names, by their index
	contents [][]byte // of blobs
	indexes  map[digest]int
}

func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		e.body = append(e.body, 0)
		if v.Bool() {
			e.body[len(e.body)-1] = 1
		}
	case reflect.Int, reflect.Int64:
		e.body = binary.AppendVarint(e.body, v.Int())
	case reflect.Uint8:
		e.body = append(e.body, byte(v.Uint()))
	case reflect.Uint64:
		e.body = binary.LittleEndian.AppendUint64(e.body, v.Uint())
	case reflect.Float64:
		e.body = binary.LittleEndian.AppendUint64(e.body, math.Float64bits(v.Float()))
	case reflect.String:
		e.body = append(e.number(v.Len()), v.String()...)
	case reflect.Array: // of bytes
		e.body = append(e.body, v.Bytes()...)
	case reflect.Slice:
		switch {
		case v.IsNil():
			e.body = append(e.body, 0)
		case v.Type().Elem().Kind() == reflect.Uint8:
			e.bytes(v.Bytes())
		default:
			e.body = e.number(v.Len() + 1)
			for i := range v.Len() {
				e.value(v.Index(i))
			}
		}
	case reflect.Map: // of texts to texts
		if v.IsNil() {
			e.body = append(e.body, 0)
			return
		}
		e.body = e.number(v.Len() + 1)
		texts := v.Interface().(map[string]string)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			e.body = append(e.number(len(key)), key...)
			e.body = append(e.number(len(texts[key])), texts[key]...)
		}
	case reflect.Pointer:
		if v.IsNil() {
			e.body = append(e.body, 0)
			return
		}
		e.body = append(e.body, 1)
		e.value(v.Elem())
	case reflect.Struct:
		if v.Type() == timeType {
			if at := v.Interface().(time.Time); at.IsZero() {
				e.body = append(e.body, 0)
			} else {
				e.body = binary.AppendVarint(append(e.body, 1), at.Unix())
				e.body = e.number(at.Nanosecond())
			}
			return
		}
		before := len(e.body)
		for i := range v.NumField() {
			e.value(v.Field(i))
		}
		var room [binary.MaxVarintLen64]byte
		e.body = slices.Insert(e.body, before, binary.AppendUvarint(room[:0], uint64(len(e.body)-before))...)
	default:
		panic("no rule for " + v.Type().String())
	}
}

func (e *encoder) number(n int) []byte { return binary.AppendUvarint(e.body, uint64(n)) }

// bytes writes 1+2n and n bytes, or 2+2i for the blob of index i.
func (e *encoder) bytes(p []byte) {
	if len(p) < inlineBytes {
		e.body = append(e.number(1+2*len(p)), p...)
		return
	}
	key := digestOf(p)
	i, ok := e.indexes[key]
	if !ok {
		if i = len(e.blobs); e.indexes == nil {
			e.indexes = map[digest]int{}
		}
		e.indexes[key] = i
		e.blobs, e.contents = append(e.blobs, key), append(e.contents, p)
	}
	e.body = e.number(2 + 2*i)
}

// reset forgets what was written.
func (e *encoder) reset() {
	clear(e.contents)
	clear(e.indexes)
	e.body, e.blobs, e.contents = e.body[:0], e.blobs[:0], e.contents[:0]
}

// encode writes *v.
func (e *encoder) encode(v any) { e.value(reflect.ValueOf(v).Elem()) }

var errBody = errors.New("the body does not end where its fields do, or has a field of another form")

// decode reads what encode has written into *v. load returns the blob of an index; a nil load leaves blobs nil. The value shares memory with body and
// with blobs.
func decode(body []byte, v any, blobs int, load func(i int) ([]byte, error)) (err error) {
	d := decoder{rest: body, room: decodedBytesMax, blobs: make([][]byte, blobs), load: load}
	d.value(reflect.ValueOf(v).Elem())
	if d.err == nil && len(d.rest) > 0 {
		d.fail(errBody)
	}
	return d.err
}

// A decoder reads what an encoder has written. After an error it reads zeros. One goroutine.
type decoder struct {
	rest  []byte
	room  int // bytes of memory that the value may still take
	blobs [][]byte
	load  func(i int) ([]byte, error)
	err   error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err, d.rest = err, nil
	}
}

// take returns the next n bytes.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail(errBody)
		return nil
	}
	p := d.rest[:n:n]
	d.rest = d.rest[n:]
	return p
}

// fixed returns the next n bytes, n at most 8, as an integer.
func (d *decoder) fixed(n uint64) uint64 {
	var room [8]byte
	copy(room[:], d.take(n))
	return binary.LittleEndian.Uint64(room[:])
}

func (d *decoder) number() uint64 {
	x, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail(errBody)
		return 0
	}
	d.rest = d.rest[n:]
	return x
}

// flag returns the next byte, which is 0 or 1.
func (d *decoder) flag() bool {
	b := d.fixed(1)
	if b > 1 {
		d.fail(errBody)
	}
	return b == 1
}

func (d *decoder) varint() int64 {
	x, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail(errBody)
		return 0
	}
	d.rest = d.rest[n:]
	return x
}

// count returns how many elements follow, and false for nil. Each element takes a byte of the body at least, and size bytes of memory.
func (d *decoder) count(size uintptr) (n int, ok bool) {
	x := d.number()
	if x == 0 {
		return 0, false
	}
	if x--; x > uint64(len(d.rest)) || x*uint64(size) > uint64(d.room) {
		d.fail(errBody)
		return 0, false
	}
	d.room -= int(x) * int(size)
	return int(x), true
}

func (d *decoder) value(v reflect.Value) {
	if d.err != nil {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.flag())
	case reflect.Int, reflect.Int64:
		v.SetInt(d.varint())
	case reflect.Uint8:
		v.SetUint(d.fixed(1))
	case reflect.Uint64:
		v.SetUint(d.fixed(8))
	case reflect.Float64:
		v.SetFloat(math.Float64frombits(d.fixed(8)))
	case reflect.String:
		v.SetString(string(d.take(d.number())))
	case reflect.Array:
		copy(v.Bytes(), d.take(uint64(v.Len())))
	case reflect.Slice:
		elem := v.Type().Elem()
		if elem.Kind() == reflect.Uint8 {
			v.SetBytes(d.bytes())
			return
		}
		n, ok := d.count(elem.Size())
		if !ok {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			d.value(v.Index(i))
		}
	case reflect.Map:
		n, ok := d.count(64)
		if !ok {
			return
		}
		texts := make(map[string]string, n)
		for last := ""; len(texts) < n && d.err == nil; {
			key := string(d.take(d.number()))
			if len(texts) > 0 && key <= last {
				d.fail(errBody)
			}
			texts[key], last = string(d.take(d.number())), key
		}
		v.Set(reflect.ValueOf(texts))
	case reflect.Pointer:
		if d.room -= int(v.Type().Elem().Size()); d.room < 0 {
			d.fail(errBody)
		} else if d.flag() {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == timeType {
			if d.flag() {
				seconds, rest := d.varint(), d.number()
				if rest >= 1e9 {
					d.fail(errBody)
				}
				v.Set(reflect.ValueOf(time.Unix(seconds, int64(rest)).UTC()))
			}
			return
		}
		d.fields(v)
	}
}

// fields reads a struct. One that an earlier build wrote lacks its last fields, and one of a later build has more of them.
func (d *decoder) fields(v reflect.Value) {
	body := d.take(d.number())
	behind := d.rest
	d.rest = body
	for i := 0; i < v.NumField() && len(d.rest) > 0; i++ {
		d.value(v.Field(i))
	}
	if d.err == nil {
		d.rest = behind
	}
}

// bytes reads bytes that stand here or are a blob.
func (d *decoder) bytes() []byte {
	x := d.number()
	switch {
	case x == 0:
		return nil
	case x%2 == 1:
		return d.take(x / 2)
	}
	i := int(x/2) - 1
	if x/2 > uint64(len(d.blobs)) {
		d.fail(fmt.Errorf("the body names blob %d of %d", i, len(d.blobs)))
		return nil
	}
	if d.blobs[i] == nil && d.load != nil {
		blob, err := d.load(i)
		if d.room -= len(blob); d.room < 0 && err == nil {
			err = fmt.Errorf("its blobs have more than %d bytes", decodedBytesMax)
		}
		if err != nil {
			d.fail(err)
			return nil
		}
		d.blobs[i] = blob
	}
	return d.blobs[i]
}
