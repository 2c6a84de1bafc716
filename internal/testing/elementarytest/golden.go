// Package elementarytest has values of the functions of Math by arithmetic of 200 bits, for tests. golden.py makes them.
package elementarytest

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"testing"
)

//go:embed golden.gz
var short []byte

var golden = flag.String("golden", "", "a file of golden.py with more arguments than the tests have")

// A Function is a function of Math with its arguments and their values. Immutable; any goroutine.
type Function struct {
	Name    string
	Args    [][]float64 // for each operand, the argument of each case
	Nearest []float64   // the double nearest to the true value of each case
	rest    []int16     // what is missing there, in 2^-16 of its unit in the last place
}

// Long reports whether the flag -golden names a file.
func Long() bool { return *golden != "" }

// Functions reads the values: of a test's short list, or of the file that the flag -golden names.
func Functions(t testing.TB) []Function {
	packed := short
	if *golden != "" {
		var err error
		if packed, err = os.ReadFile(*golden); err != nil {
			t.Fatal(err)
		}
	}
	functions, err := read(packed)
	if err != nil {
		t.Fatalf("the values of Math: %v", err)
	}
	return functions
}

func read(packed []byte) ([]Function, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var functions []Function
	for {
		var head [5]byte
		if _, err := io.ReadFull(unpacked, head[:1]); err == io.EOF {
			return functions, nil
		}
		name := make([]byte, head[0])
		if _, err := io.ReadFull(unpacked, name); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(unpacked, head[:]); err != nil {
			return nil, err
		}
		f := Function{Name: string(name), Args: make([][]float64, head[0])}
		n := binary.LittleEndian.Uint32(head[1:])
		for i := range f.Args {
			f.Args[i] = make([]float64, n)
			if err := binary.Read(unpacked, binary.LittleEndian, f.Args[i]); err != nil {
				return nil, err
			}
		}
		f.Nearest, f.rest = make([]float64, n), make([]int16, n)
		for _, column := range []any{f.Nearest, f.rest} {
			if err := binary.Read(unpacked, binary.LittleEndian, column); err != nil {
				return nil, err
			}
		}
		functions = append(functions, f)
	}
}

// Case returns the arguments of a case.
func (f *Function) Case(i int) []float64 {
	args := make([]float64, len(f.Args))
	for k := range args {
		args[k] = f.Args[k][i]
	}
	return args
}

// Error returns how far a result is from the true value of a case, in units in the last place of the true value. A result that is
// another special value than the true one, or a zero of the other sign, is an infinity away.
func (f *Function) Error(i int, got float64) float64 {
	near, rest := f.Nearest[i], float64(f.rest[i])/65536
	switch {
	case math.IsNaN(near) && math.IsNaN(got) || got == near && rest == 0 && math.Signbit(got) == math.Signbit(near):
		return 0
	case math.IsNaN(near) || math.IsNaN(got) || math.IsInf(near, 0) || math.IsInf(got, 0) || math.Signbit(got) != math.Signbit(near):
		return math.Inf(1)
	}
	// The unit of the nearest double, which is half of it for a value below a power of two.
	a := math.Abs(near)
	unit := math.Nextafter(a, math.Inf(1)) - a
	if near < 0 {
		rest = -rest
	}
	off := math.Abs((math.Abs(got)-a)/unit - rest)
	if fraction, _ := math.Frexp(a); fraction == 0.5 && rest < 0 && a > 0x1p-1022 {
		off *= 2
	}
	return off
}

// Exact reports whether the value of a case is a double.
func (f *Function) Exact(i int) bool { return f.rest[i] == 0 }

// String shows a case as plans write it.
func (f *Function) String(i int) string {
	args := f.Case(i)
	text := fmt.Sprintf("Math.%s(%v", f.Name, args[0])
	for _, x := range args[1:] {
		text += fmt.Sprintf(", %v", x)
	}
	return text + ")"
}
