package inference

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/rankd/rankd/internal/jsondoc"
)

// Value is what an element is made of. The zero value is no value. Immutable.
type Value struct {
	Kind Kind
	Num  float64
	Int  int64 // of a bool: 0 or 1
	Text string
}

// Kind says which field a Value has.
type Kind uint8

// The kinds of Value.
const (
	None Kind = iota
	Num
	Int
	Bool
	Text
)

// ValueOf returns the Value of a float64, an int64, a bool, a string, or nil.
func ValueOf(v any) Value {
	switch v := v.(type) {
	case float64:
		return Value{Kind: Num, Num: v}
	case int64:
		return Value{Kind: Int, Int: v}
	case bool:
		return OfBool(v)
	case string:
		return Value{Kind: Text, Text: v}
	}
	return Value{}
}

// OfBool returns the Value of a bool.
func OfBool(v bool) Value {
	if v {
		return Value{Kind: Bool, Int: 1}
	}
	return Value{Kind: Bool}
}

// Round returns v as an element of a datatype of floats has it: rounded to the nearest, halves to even. It is infinite if v
// is beyond the greatest element.
func Round(datatype string, v float64) float64 {
	switch datatype {
	case "FP32":
		return float64(float32(v))
	case "FP16":
		return fromHalf(toHalf(v))
	}
	return v
}

// AppendElement appends an element to dst: in binary, or as JSON. False means that the datatype, or JSON, cannot have the value;
// then nothing was appended.
func AppendElement(dst []byte, datatype string, inBinary bool, v Value) ([]byte, bool) {
	switch datatype {
	case "FP32", "FP64", "FP16":
		f := v.Num
		switch v.Kind {
		case Num:
		case Int, Bool:
			f = float64(v.Int)
		case None:
			f = math.NaN()
		default:
			return dst, false
		}
		if v.Kind != None && f == f && math.IsInf(Round(datatype, f), 0) {
			return dst, false
		}
		return appendFloat(dst, datatype, inBinary, f)
	case "BYTES":
		switch {
		case v.Kind != Text || uint64(len(v.Text)) > math.MaxUint32:
			return dst, false
		case !inBinary:
			return jsondoc.AppendString(dst, v.Text), true
		}
		return append(binary.LittleEndian.AppendUint32(dst, uint32(len(v.Text))), v.Text...), true
	}
	n := v.Int
	switch {
	case v.Kind != Int && v.Kind != Bool,
		datatype == "BOOL" && v.Kind != Bool,
		datatype == "INT32" && n != int64(int32(n)),
		datatype == "UINT8" && n != int64(uint8(n)):
		return dst, false
	case !inBinary && datatype == "BOOL":
		return strconv.AppendBool(dst, n == 1), true
	case !inBinary:
		return strconv.AppendInt(dst, n, 10), true
	}
	switch datatype {
	case "INT64":
		return binary.LittleEndian.AppendUint64(dst, uint64(n)), true
	case "INT32":
		return binary.LittleEndian.AppendUint32(dst, uint32(n)), true
	}
	return append(dst, byte(n)), true
}

// appendFloat appends a float. JSON has neither NaN nor an FP16.
func appendFloat(dst []byte, datatype string, inBinary bool, f float64) ([]byte, bool) {
	switch {
	case !inBinary && (f != f || datatype == "FP16"):
		return dst, false
	case !inBinary && datatype == "FP32":
		return strconv.AppendFloat(dst, f, 'g', -1, 32), true
	case !inBinary:
		return jsondoc.AppendNumber(dst, f), true
	case datatype == "FP32":
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f))), true
	case datatype == "FP16":
		return binary.LittleEndian.AppendUint16(dst, toHalf(f)), true
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), true
}

// sizeOf returns the bytes of an element in binary; 0: its length says.
func sizeOf(datatype string) int {
	switch datatype {
	case "FP64", "INT64":
		return 8
	case "FP32", "INT32":
		return 4
	case "FP16":
		return 2
	case "UINT8", "BOOL":
		return 1
	}
	return 0
}

// elementAt returns an element from its bytes, as many as sizeOf says; nil: it is no value of the datatype.
func elementAt(datatype string, raw []byte) any {
	switch datatype {
	case "FP64":
		return math.Float64frombits(binary.LittleEndian.Uint64(raw))
	case "INT64":
		return int64(binary.LittleEndian.Uint64(raw))
	case "FP32":
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	case "INT32":
		return int64(int32(binary.LittleEndian.Uint32(raw)))
	case "FP16":
		return fromHalf(binary.LittleEndian.Uint16(raw))
	case "UINT8":
		return int64(raw[0])
	}
	if raw[0] > 1 {
		return nil
	}
	return raw[0] == 1
}

// toHalf returns the IEEE 754 binary16 that is nearest to f; of two, the even one.
func toHalf(f float64) uint16 {
	sign := uint16(math.Float64bits(f) >> 48 & 0x8000)
	a := math.Abs(f)
	switch {
	case a != a:
		return sign | 0x7e00
	case a >= 65520: // half way to 2^16
		return sign | 0x7c00
	case a < 0x1p-14: // subnormal: multiples of 2^-24
		return sign | uint16(math.RoundToEven(a*0x1p24))
	}
	fraction, exponent := math.Frexp(a) // in [0.5, 1)
	// The carry of a fraction that rounds up to 2 goes into the exponent.
	return sign | uint16((exponent+14)<<10) + uint16(math.RoundToEven(fraction*0x1p11)) - 0x400
}

// fromHalf returns the value of a binary16.
func fromHalf(h uint16) float64 {
	exponent, fraction := int(h>>10&0x1f), float64(h&0x3ff)
	v := 0.0
	switch exponent {
	case 0:
		v = fraction * 0x1p-24
	case 0x1f:
		if v = math.Inf(1); fraction > 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(1+fraction*0x1p-10, exponent-15)
	}
	return math.Copysign(v, 1-2*float64(h>>15))
}
