package rowset

import (
	"math"

	"github.com/rankd/rankd/internal/elementary"
	"github.com/rankd/rankd/registry"
)

// Sample draws up to k of the active rows, one after the other. Each draw takes one of the remaining rows; the
// probability of a row is its share of their weights (successive sampling; the model of Plackett and Luce). out has
// the rows in the order of the draws, over the same batch. propensities has, by position of out, the probability of
// that draw, given the draws before it.
//
// weight is a column of numbers, the id, or 0 for equal weights. A row is never drawn if its weight is null, not above 0, or not finite. random has a
// random number from 0 to below 1 of each active row, and nothing else is random: a draw takes the least −ln(1 − random) / weight (Efraimidis
// and Spirakis: Weighted random sampling with a reservoir, Information Processing Letters 97, 2006). Of equal ones the first row comes
// first. The result has the same bits on every machine.
//
// The error is ErrStopped once stop says so. The slices of the result are m's.
func Sample(stop Stop, m *Memory, rs RowSet, weight registry.KeyID, random []float64, k int) (out RowSet, propensities []float64, err error) {
	weights, err := weightsOf(stop, m, rs, weight)
	if err != nil {
		return RowSet{}, nil, err
	}
	race := &FloatColumn{Key: registry.IDKey + 1, Values: m.Floats(rs.N), Valid: NewBitmap(rs.N)} // by position
	err = inChunks(stop, rs.N, func(lo, hi int) {
		for pos := lo; pos < hi; pos++ {
			race.Values[pos] = 0
			if weights[pos] > 0 {
				race.Values[pos] = -elementary.Log(1-random[pos]) / weights[pos]
				race.Valid.Set(pos)
			}
		}
	})
	if err != nil {
		return RowSet{}, nil, err
	}
	k = min(max(k, 0), race.Valid.Count(rs.N))
	won, err := TopUntil(stop, m, Dense(NewBatch(m.IDs(rs.N), race)), race.Key, false, k)
	if err != nil {
		return RowSet{}, nil, err
	}
	out, propensities = RowSet{Batch: rs.Batch, Rows: m.Rows(k), N: k}, m.Floats(k)
	for i := range propensities {
		pos := won.Row(i)
		out.Rows[i], propensities[i], weights[pos] = rs.Row(int(pos)), weights[pos], 0
	}
	var left weightSum // of the rows that were not drawn, and then of those from a draw on
	for _, w := range weights {
		left.add(w)
	}
	for i := k - 1; i >= 0; i-- {
		left.add(propensities[i])
		propensities[i] = left.share(propensities[i])
	}
	return out, propensities, nil
}

// weightSum adds up weights. One goroutine at a time.
type weightSum struct{ sum, scaled float64 }

// weightScale keeps the sum of all weights of a batch within the range of doubles.
const weightScale = 0x1p-32

func (s *weightSum) add(w float64) {
	s.sum += w
	s.scaled += float64(w * weightScale)
}

// share returns the part of the sum that a weight is.
func (s *weightSum) share(w float64) float64 {
	if s.sum <= math.MaxFloat64 {
		return w / s.sum
	}
	return w * weightScale / s.scaled
}

// weightsOf returns the weights of the active rows by position, 0 for a row that is never drawn.
func weightsOf(stop Stop, m *Memory, rs RowSet, weight registry.KeyID) (weights []float64, err error) {
	values, valid := m.Floats(rs.N), Bitmap(nil)
	for pos := range values {
		values[pos] = 1
	}
	if weight != 0 {
		values, valid = floatsAt(m, rs, weight)
	}
	weights = m.Floats(rs.N)
	clear(weights)
	err = inChunks(stop, len(values), func(lo, hi int) {
		for pos := lo; pos < hi; pos++ {
			if w := values[pos]; w > 0 && w <= math.MaxFloat64 && valid.Get(pos) {
				weights[pos] = w
			}
		}
	})
	return weights, err
}
