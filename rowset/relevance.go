package rowset

import "math"

// Relevance is an order of rows by maximal marginal relevance. Immutable once built; any goroutine. Its slices are those of
// the Memory.
type Relevance struct {
	Chosen []int32 // positions, in the order of choice
	// Scores has, by position, the score less lambda times the greatest similarity to a row chosen before: at the choice,
	// or at the last choice for a row that was not chosen. A row without a score has 0.
	Scores []float64
	// Like has, by position, the position of the first chosen row to which the similarity is greatest, and Similarity has this
	// similarity. −1: the row is like none.
	Like       []int32
	Similarity []float64
}

// MarginalRelevance chooses rows one by one, at most most: each time the row whose score, less lambda times its greatest
// similarity to a row that is chosen, is the highest; of equal ones the first. scores has the rows' scores by position, and
// valid their bits; a row without a score is never chosen. The similarity is the measure, or 1 / (1 + distance) by ByL2.
// A row is like no other without a vector, or where the measure is not finite; vectors is nil if there is no column. A sum beyond the
// finite numbers becomes the last of them. The time is that of most × rs.N measures. The error is ErrStopped once stop
// says so; a nil stop never does.
func MarginalRelevance(stop Stop, m *Memory, rs RowSet, vectors *VectorColumn, scores []float64, valid Bitmap, by Measure, lambda float64, most int) (Relevance, error) {
	most = min(most, rs.N)
	r := Relevance{Chosen: m.Rows(most)[:0], Scores: m.Floats(rs.N), Like: m.Rows(rs.N), Similarity: m.Floats(rs.N)}
	left, squares, probe := m.Rows(rs.N)[:0], m.Floats(rs.N), probe{by: by}
	clear(r.Scores)
	clear(r.Similarity)
	for pos := range rs.N {
		r.Like[pos] = -1
		if !valid.Get(pos) {
			continue
		}
		left = append(left, int32(pos))
		r.Scores[pos] = scores[pos]
		if x, ok := vectors.of(rs.Row(pos)); ok {
			squares[pos] = probe.square(x)
		}
	}
	last := int32(-1) // the position whose vector the probe has; -1: the row chosen last is like no other
	for len(r.Chosen) < most && len(left) > 0 {
		best := 0
		for i, pos := range left {
			if i%nearestChunk == 0 && stop != nil && stop.Cancelled() {
				return Relevance{}, ErrStopped
			}
			if last >= 0 {
				r.compare(pos, last, rs.Row(int(pos)), vectors, &probe, squares[pos], scores[pos], lambda)
			}
			if r.Scores[pos] > r.Scores[left[best]] {
				best = i
			}
		}
		pos := left[best]
		left = append(left[:best], left[best+1:]...)
		r.Chosen = append(r.Chosen, pos)
		last = -1
		if x, ok := vectors.of(rs.Row(int(pos))); ok {
			last = pos
			probe.set(x)
		}
	}
	return r, nil
}

// compare lowers the score of a row that is more like the row chosen last than like all before.
func (r *Relevance) compare(pos, last, row int32, vectors *VectorColumn, probe *probe, square, score, lambda float64) {
	x, ok := vectors.of(row)
	if !ok {
		return
	}
	similarity := probe.measure(x, square)
	if probe.by == ByL2 {
		similarity = 1 / (1 + similarity)
	}
	if similarity-similarity != 0 || r.Like[pos] >= 0 && similarity <= r.Similarity[pos] { // not finite, or less like it
		return
	}
	r.Like[pos], r.Similarity[pos] = last, similarity
	r.Scores[pos] = min(max(score-float64(lambda*similarity), -math.MaxFloat64), math.MaxFloat64)
}

// of returns the vector of a batch row, or false if it is null or there is no column.
func (c *VectorColumn) of(row int32) ([]float32, bool) {
	if c == nil {
		return nil, false
	}
	return c.Value(int(row))
}
