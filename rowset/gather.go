package rowset

import "slices"

// Gather returns a dense batch of rows of b, with all its columns: row i is row rows[i] of b. Rows may repeat. A row
// -1 becomes a row with id 0 and a null in each column. The slices of the result are m's.
func Gather(m *Memory, b *Batch, rows []int32) *Batch {
	a := assembly{sides: []RowSet{{Batch: b, Rows: rows, N: len(rows)}}, n: len(rows), holes: slices.Contains(rows, -1)}
	return a.batch(m)
}

// gather copies the listed rows of a column, in their order, to dst, which has one element per row. Nil rows stand for
// the first ones. A row -1 becomes missing.
func gather[T any](dst, column []T, rows []int32, missing T) {
	if rows == nil {
		copy(dst, column[:len(dst)])
		return
	}
	for i, row := range rows {
		// The comparison replaces the bounds check, so support for -1 costs other rows nothing.
		if uint(row) < uint(len(column)) {
			dst[i] = column[row]
		} else {
			dst[i] = missingAt(row, missing)
		}
	}
}

// missingAt returns the value of row -1. No other row is outside of a column.
func missingAt[T any](row int32, missing T) T {
	if row != -1 {
		panic("rowset: a listed row is not one of its batch")
	}
	return missing
}

// gatherBits copies the bits of the listed rows, in their order, to dst from position at on. Those bits must be clear
// before. holes says that there may be rows -1, whose bits stay clear. A nil src counts as all ones.
func gatherBits(dst Bitmap, at int, src Bitmap, rows RowSet, holes bool) {
	if rows.Rows == nil || src == nil && !holes {
		dst.copyRange(at, src, rows.N)
		return
	}
	for rest := rows.Rows; len(rest) > 0; {
		shift := uint(at) % 64
		n, word := min(64-int(shift), len(rest)), uint64(0)
		for i, row := range rest[:n] {
			if row >= 0 {
				word |= src.bit(row) << uint(i)
			}
		}
		dst[at/64] |= word << shift
		rest, at = rest[n:], at+n
	}
}
