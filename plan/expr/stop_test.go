package expr

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

// countdown says stop after n questions, and counts the questions.
type countdown struct{ n, asked int }

func (c *countdown) Cancelled() bool {
	c.asked++
	return c.asked > c.n
}

func TestKernelsStopBetweenChunks(t *testing.T) {
	const rows, chunks = 20_000, 20
	dense := benchRows(rows)
	backwards := rowset.RowSet{Batch: dense.Batch, N: rows - 1}
	for row := range int32(rows - 1) {
		backwards.Rows = append(backwards.Rows, row)
	}
	slices.Reverse(backwards.Rows)
	e, p := mustExpr(t, bi("mul", id, score)), mustPred(t, cmp(score, ">=", num("0.5")))
	for name, rs := range map[string]rowset.RowSet{"dense": dense, "selected": backwards} {
		t.Run(name, func(t *testing.T) {
			wantColumn := columnOf(e, rs, nil)
			wantRows, err := p.Filter(nil, nil, rs, nil)
			require.NoError(t, err)
			for n := range chunks + 1 {
				stop := countdown{n: n}
				column, err := e.Column(&stop, nil, rs, nil)
				assert.Equal(t, min(n+1, chunks), stop.asked, "once a chunk, and no more once told")
				if n < chunks {
					assert.ErrorIs(t, err, rowset.ErrStopped)
					assert.Zero(t, column)
				} else {
					require.NoError(t, err)
					assert.Equal(t, wantColumn, column)
				}

				stop = countdown{n: n}
				kept, err := p.Filter(&stop, nil, rs, nil)
				assert.Equal(t, min(n+1, chunks), stop.asked)
				if n < chunks {
					assert.ErrorIs(t, err, rowset.ErrStopped)
					assert.Zero(t, kept)
				} else {
					require.NoError(t, err)
					assert.Equal(t, wantRows, kept)
				}
			}
			// After a stopped evaluation, its scratch memory is safe to use again.
			assert.Equal(t, wantColumn, columnOf(e, rs, nil))
		})
	}
}

// The evaluation of five million rows ends after a few thousand if nobody waits for it.
func TestLargeEvaluationStopsSoon(t *testing.T) {
	rs := rowset.Dense(&rowset.Batch{IDs: make([]int64, 5_000_000)})
	stop := countdown{n: 3}
	_, err := mustExpr(t, bi("mul", id, id)).Column(&stop, nil, rs, nil)
	require.ErrorIs(t, err, rowset.ErrStopped)
	assert.Equal(t, 4, stop.asked, "3 chunks of 4,883 were computed")
	stop = countdown{n: 3}
	_, err = mustPred(t, cmp(id, "==", num("0"))).Filter(&stop, nil, rs, nil)
	require.ErrorIs(t, err, rowset.ErrStopped)
	assert.Equal(t, 4, stop.asked)
}
