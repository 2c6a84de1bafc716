package modelserver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// A Tensor has a value for each element, in row-major order: a float64, an int64, a bool or a string, as Datatype says. Its owner fills
// it in. One goroutine.
type Tensor struct {
	Name     string
	Datatype string
	Shape    []int64 // in metadata -1 is any size
	Data     []any
}

// sizes are the bytes of an element, by datatype. BYTES have lengths of their own.
var sizes = map[string]int{
	"BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
	"FP16": 2, "FP32": 4, "FP64": 8, "BYTES": 0,
}

// elements returns how many elements a shape has.
func elements(shape []int64) (int, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 1<<24 || n*d > 1<<26 {
			return 0, fmt.Errorf("shape %v is out of range", shape)
		}
		n *= d
	}
	return int(n), nil
}

// fromBinary reads the elements of a tensor from its bytes, all of them.
func (t *Tensor) fromBinary(raw []byte) error {
	n, err := elements(t.Shape)
	if err != nil {
		return err
	}
	size, known := sizes[t.Datatype]
	if !known {
		return fmt.Errorf("input '%s': datatype '%s' is unknown", t.Name, t.Datatype)
	}
	if t.Datatype == "BYTES" {
		for len(raw) > 0 {
			if len(raw) < 4 {
				return fmt.Errorf("input '%s': an element lacks its length", t.Name)
			}
			length := binary.LittleEndian.Uint32(raw)
			if raw = raw[4:]; uint64(length) > uint64(len(raw)) {
				return fmt.Errorf("input '%s': an element ends early", t.Name)
			}
			t.Data, raw = append(t.Data, string(raw[:length])), raw[length:]
		}
		if len(t.Data) != n {
			return fmt.Errorf("input '%s': %d elements for shape %v", t.Name, len(t.Data), t.Shape)
		}
		return nil
	}
	if len(raw) != n*size {
		return fmt.Errorf("input '%s': %d bytes for shape %v of %s", t.Name, len(raw), t.Shape, t.Datatype)
	}
	for ; len(raw) > 0; raw = raw[size:] {
		var bits uint64
		for i := range size { // little-endian
			bits |= uint64(raw[i]) << (8 * i)
		}
		switch t.Datatype {
		case "BOOL":
			if bits > 1 {
				return fmt.Errorf("input '%s': a BOOL is %d", t.Name, bits)
			}
			t.Data = append(t.Data, bits == 1)
		case "FP32":
			t.Data = append(t.Data, float64(math.Float32frombits(uint32(bits))))
		case "FP64":
			t.Data = append(t.Data, math.Float64frombits(bits))
		case "FP16":
			t.Data = append(t.Data, half(uint16(bits)))
		case "INT8", "INT16", "INT32", "INT64":
			t.Data = append(t.Data, int64(bits<<(64-8*size))>>(64-8*size))
		default:
			t.Data = append(t.Data, int64(bits))
		}
	}
	return nil
}

// half is the value of an IEEE 754 binary16.
func half(bits uint16) float64 {
	sign, exponent, fraction := 1.0, int(bits>>10&31), float64(bits&1023)
	if bits>>15 == 1 {
		sign = -1
	}
	switch {
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		return sign * math.Inf(1)
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1+fraction/1024, exponent-15)
}

// toBinary returns the bytes of the elements.
func (t *Tensor) toBinary() []byte {
	var out bytes.Buffer
	for _, v := range t.Data {
		var bits uint64
		switch v := v.(type) {
		case string:
			_ = binary.Write(&out, binary.LittleEndian, uint32(len(v)))
			out.WriteString(v)
			continue
		case bool:
			if v {
				bits = 1
			}
		case int64:
			bits = uint64(v)
		case float64:
			switch t.Datatype {
			case "FP64":
				bits = math.Float64bits(v)
			case "FP32":
				bits = uint64(math.Float32bits(float32(v)))
			case "FP16": // what it was made from, or one of its neighbours
				for h := range 1 << 16 {
					if half(uint16(h)) == v || v != v && half(uint16(h)) != half(uint16(h)) {
						bits = uint64(h)
						break
					}
				}
			}
		}
		for i := range sizes[t.Datatype] {
			out.WriteByte(byte(bits >> (8 * i)))
		}
	}
	return out.Bytes()
}

// fromJSON reads the elements from the JSON array "data", flat or nested as the shape says.
func (t *Tensor) fromJSON(data json.RawMessage) error {
	n, err := elements(t.Shape)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var root []any
	if err := d.Decode(&root); err != nil {
		return fmt.Errorf("input '%s': data is not an array: %w", t.Name, err)
	}
	var flat []any
	var walk func(list []any, shape []int64) error
	walk = func(list []any, shape []int64) error {
		if len(shape) == 0 || int64(len(list)) != shape[0] {
			return fmt.Errorf("input '%s': data is not of shape %v", t.Name, t.Shape)
		}
		for _, item := range list {
			if inner, ok := item.([]any); ok {
				if err := walk(inner, shape[1:]); err != nil {
					return err
				}
			} else if len(shape) != 1 {
				return fmt.Errorf("input '%s': data is not of shape %v", t.Name, t.Shape)
			} else {
				flat = append(flat, item)
			}
		}
		return nil
	}
	if len(root) > 0 {
		if _, nested := root[0].([]any); nested {
			if err := walk(root, t.Shape); err != nil {
				return err
			}
			root = flat
		}
	}
	if len(root) != n {
		return fmt.Errorf("input '%s': %d elements for shape %v", t.Name, len(root), t.Shape)
	}
	for _, item := range root {
		value, err := t.element(item)
		if err != nil {
			return err
		}
		t.Data = append(t.Data, value)
	}
	return nil
}

// element returns an element of JSON as a value of the datatype.
func (t *Tensor) element(item any) (any, error) {
	size, known := sizes[t.Datatype]
	switch v := item.(type) {
	case bool:
		if t.Datatype == "BOOL" {
			return v, nil
		}
	case string:
		if t.Datatype == "BYTES" {
			return v, nil
		}
	case json.Number:
		switch t.Datatype {
		case "FP32":
			f, err := strconv.ParseFloat(v.String(), 32)
			return f, err
		case "FP64":
			f, err := v.Float64()
			return f, err
		case "FP16", "BOOL", "BYTES": // of FP16 there is no representation in JSON
		default:
			n, err := v.Int64()
			least, most := int64(math.MinInt64), int64(math.MaxInt64)
			if size < 8 {
				least, most = -1<<(8*size-1), 1<<(8*size-1)-1
				if t.Datatype[0] == 'U' {
					least, most = 0, 1<<(8*size)-1
				}
			}
			if known && err == nil && n >= least && n <= most {
				return n, nil
			}
		}
	}
	return nil, fmt.Errorf("input '%s': %v is no %s", t.Name, item, t.Datatype)
}
