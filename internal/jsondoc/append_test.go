package jsondoc

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAppendFloat(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", -1: "-1.0", 0.1: "0.1", 20.3: "20.3", 1e-5: "0.00001", 9.9e-6: "9.9e-06", 1e14: "100000000000000.0",
		1e15: "1e+15", 123456789012345678: "1.2345678901234568e+17", 13995.900000000001: "13995.900000000001",
		math.MaxFloat64: "1.7976931348623157e+308", math.SmallestNonzeroFloat64: "5e-324", 999999999999999: "999999999999999.0",
		math.Inf(1): "null", math.Inf(-1): "null",
	} {
		assert.Equal(t, want, string(AppendFloat(nil, f)))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 { // with 1 to 17 digits
		f := (random.Float64() - 0.5) * math.Pow10(random.IntN(14)-4)
		f, err := strconv.ParseFloat(strconv.FormatFloat(f, 'e', random.IntN(17), 64), 64)
		require.NoError(t, err)
		if abs := math.Abs(f); f != math.Trunc(f) && abs >= 1e-5 {
			require.Equal(t, strconv.FormatFloat(f, 'f', -1, 64), string(AppendFloat(nil, f)))
		}
	}
	assert.Equal(t, "-0.0", string(AppendFloat(nil, math.Copysign(0, -1))))
	assert.Equal(t, "null", string(AppendFloat(nil, math.NaN())))
}
