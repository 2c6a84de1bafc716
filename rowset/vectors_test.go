package rowset_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

func TestVectorsFromOutside(t *testing.T) {
	blob := "\x00\x00\x80\x3f\x00\x00\x00\xc0" // 1, -2
	for text, want := range map[string][]float32{
		"1,-2": {1, -2}, "[1,-2]": {1, -2}, " 1 , -2.0 ": {1, -2}, "[ 1e-3, 3 ]": {1e-3, 3}, blob: {1, -2}, "0.1,0.25": {0.1, 0.25}, // a list of 8 bytes
		"1": nil, "1,2,3": nil, "": nil, "[]": nil, "1,": nil, "1,x": nil, "1,nan": nil, "1,1e39": nil, "[1,2": nil,
		"\x00\x00\x80\x7f\x00\x00\x00\xc0": nil, "\x00\x00\xc0\x7f\x00\x00\x00\xc0": nil, blob + "\x00": nil,
	} {
		b := rowset.NewVectorBuilder(1, 2, 1)
		b.AppendNull()
		assert.Equal(t, want != nil, b.AppendText([]byte(text)), "%q", text)
		c := b.Column().(*rowset.VectorColumn)
		v, ok := c.Value(0)
		assert.False(t, ok || v != nil)
		if want == nil {
			assert.Len(t, c.Values, 2)
			continue
		}
		v, _ = c.Value(1)
		assert.Equal(t, want, v, "%q", text)
	}
	for text, want := range map[string]bool{"[1,-2]": true, "[1, -2]": true, "[1]": false, `["1","2"]`: false, "1": false, "null": false, "[1,null]": false, "[1,[2]]": false, `"1,2"`: false} {
		assert.Equal(t, want, rowset.NewVectorBuilder(1, 2, 1).AppendJSON([]byte(text)), text)
	}
	key := &registry.Key{ID: 1, Type: registry.Vector, Dims: 2}
	b := rowset.NewBuilder(nil, key, 2)
	for value, want := range map[any]bool{"1,2": false, 1.5: false} {
		assert.Equal(t, want, b.AppendAny(value))
	}
	assert.False(t, b.AppendAny([]float32{1}))
	assert.False(t, b.AppendAny([]float32{1, float32(math.NaN())}))
	assert.False(t, b.AppendAny([]float64{1, 1e39}))
	assert.True(t, b.AppendAny([]float64{0.1, 2}))
	assert.True(t, b.AppendAny(nil))
	c := b.Column()
	text, ok := c.AppendJSON(nil, 0)
	assert.True(t, ok)
	assert.Equal(t, "[0.1,2]", string(text))
	_, ok = c.AppendJSON(nil, 1)
	assert.False(t, ok)
}

// The bits of sums over vectors are the same on every machine. These were computed in Python,
// which does not fuse operations on doubles.
func TestVectorSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(26, 1))
	for n := range 20 {
		x, y := make([]float32, n), make([]float32, n)
		var dot, square [4]float64
		for i := range x {
			x[i], y[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64()*1e9)
			product, d := float64(x[i])*float64(y[i]), float64(x[i])-float64(y[i])
			d *= d
			dot[i%4] += product
			square[i%4] += d
		}
		assert.Equal(t, (dot[0]+dot[1])+(dot[2]+dot[3]), rowset.Dot(x, y), n)
		assert.Equal(t, math.Sqrt((square[0]+square[1])+(square[2]+square[3])), rowset.L2(x, y), n)
	}
	x, y := []float32{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}, []float32{1.5, -2.25, 3.125, -4.0625, 5.5, -6.75, 7.875}
	for name, c := range map[string]struct{ want, got float64 }{
		"dot": {0x1.9ccccabcp+1, rowset.Dot(x, y)}, "cosine": {0x1.aa5c620e09058p-3, rowset.Cosine(x, y)},
		"l2": {0x1.9cbcf8fdcb249p+3, rowset.L2(x, y)}, "norm": {0x1.2ee73ddbc3aa5p+0, rowset.Norm(x)},
	} {
		assert.Equal(t, c.want, c.got, "%s: %x", name, c.got)
	}
	assert.True(t, math.IsNaN(rowset.Cosine([]float32{0, 0}, []float32{1, 2})))
	assert.Zero(t, rowset.Dot(nil, nil))
}

var summed float64

// The baseline of the kernels is a loop that only sums the memory, with equally many
// accumulators.
func BenchmarkVectors(b *testing.B) {
	const rows, dims = 10_000, 64
	rng := rand.New(rand.NewPCG(26, 2))
	values, to := make([]float32, rows*dims), make([]float32, dims)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	copy(to, values)
	for name, of := range map[string]func(x, y []float32) float64{"dot": rowset.Dot, "cosine": rowset.Cosine, "l2": rowset.L2, "sum": func(x, _ []float32) float64 {
		var s0, s1, s2, s3 float64
		for i := 0; i+4 <= len(x); i += 4 {
			a := x[i : i+4 : i+4]
			s0 += float64(a[0])
			s1 += float64(a[1])
			s2 += float64(a[2])
			s3 += float64(a[3])
		}
		return s0 + s1 + s2 + s3
	}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for row := 0; row < len(values); row += dims {
					summed += of(values[row:row+dims], to)
				}
			}
		})
	}
}

// FuzzVector: a text that is a vector has finite numbers. JSON and the binary form read back as
// the same vector.
func FuzzVector(f *testing.F) {
	for _, text := range []string{"1,-2,3", "[1,2,3]", "", "1,2", "\x00\x00\x80\x3f\x00\x00\x00\xc0abcd", "1e39,0,0", "[[1,2,3]]", "nan,0,0"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b := rowset.NewVectorBuilder(1, 3, 0)
		if !b.AppendText(text) {
			assert.Zero(t, b.Len())
			return
		}
		c := b.Column()
		json, ok := c.AppendJSON(nil, 0)
		assert.True(t, ok)
		again := rowset.NewVectorBuilder(1, 3, 0)
		assert.True(t, again.AppendJSON(json), "%s", json)
		assert.Empty(t, again.AppendBinary(b.AppendLast(nil)))
		assert.NoError(t, rowset.NewBatch([]int64{1, 2}, again.Column()).Validate())
		for row := range 2 {
			assert.Equal(t, c.Any(0), again.Column().Any(row))
		}
	})
}

// The mean of vectors is the mean of each of their numbers. Rows are in any order, in groups or
// not.
func TestMeanOfVectors(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(26, seed))
		in := rowsettest.RowSet(rng, 330)
		of, n := make([]int32, in.N), 1+rng.IntN(4)
		for i := range of {
			of[i] = int32(rng.IntN(n))
		}
		key := &registry.Key{ID: 7, Type: registry.Vector, Dims: rowsettest.VectorDims}
		c, nulls, err := rowset.Aggregate(nil, nil, in, of, n, rowset.Mean, rowsettest.VectorKeys[0], key)
		require.NoError(t, err)
		vectors := in.Batch.Vector(rowsettest.VectorKeys[0])
		empty := 0
		for group := range n {
			sum, count := make([]float64, key.Dims), 0.0
			for pos := range in.N {
				if of[pos] != int32(group) || vectors == nil {
					continue
				}
				if v, ok := vectors.Value(int(in.Row(pos))); ok {
					count++
					for i := range sum {
						sum[i] += float64(v[i])
					}
				}
			}
			got, ok := c.(*rowset.VectorColumn).Value(group)
			require.Equal(t, count > 0, ok)
			for i := range got {
				require.Equal(t, float32(sum[i]/count), got[i])
			}
			if !ok {
				empty++
			}
		}
		require.Equal(t, empty, nulls)
	}
}
