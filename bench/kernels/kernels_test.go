package kernels

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMeasure(t *testing.T) {
	for _, k := range Names() {
		for _, rows := range []int{1, 1000} {
			r, err := Measure(k, rows, time.Millisecond)
			require.NoError(t, err, k)
			assert.Equal(t, k, r.Kernel)
			assert.Positive(t, r.NsPerOp)
			assert.InEpsilon(t, r.NsPerOp/float64(rows), r.NsPerRow, 1e-9)
			assert.GreaterOrEqual(t, r.Spread, 0.0)
		}
		assert.NotEmpty(t, Descriptions()[k])
	}
	_, err := Measure("rows", 1, time.Millisecond)
	assert.ErrorContains(t, err, "unknown kernel", "a node, but no kernel")
	_, err = Measure("vm", 0, time.Millisecond)
	assert.ErrorContains(t, err, "0 rows")
}

func TestRowsAreSoundAndAlwaysTheSame(t *testing.T) {
	rows := Rows(1000)
	require.NoError(t, rows.Validate())
	assert.Equal(t, rows, Rows(1000))
	above := 0
	for _, v := range rows.Batch.Float(1001).Values {
		if v >= 0.5 {
			above++
		}
	}
	assert.InDelta(t, 500, above, 60, "the filter keeps about half")
}

func BenchmarkKernels(b *testing.B) {
	for _, k := range Names() {
		for _, rows := range []int{100, 100_000} {
			b.Run(fmt.Sprintf("%s/rows=%d", k, rows), func(b *testing.B) {
				run, err := prepare(k, rows)
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					if err := run(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
			})
		}
	}
}
