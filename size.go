package rankd

import (
	"slices"

	"github.com/rankd/rankd/rowset"
)

// Size returns about how many bytes the answer holds, or takes as JSON, whichever is more: with its trace and its
// explanation. It costs little, since it counts rows and events. A server bounds with it what its clients leave unread.
func (a *Answer) Size() int {
	n := a.recording.JSONSize()
	for _, rows := range a.outputs() {
		n += max(jsonSize(rows), heldSize(rows))
	}
	if x := a.explained; x != nil {
		n += x.size(a.Len())
	}
	return n
}

// Size returns about how many bytes the error takes as JSON, with its trace.
func (e *Error) Size() int { return len(e.Text) + len(e.Detail) + e.recording.JSONSize() }

// grownRows is how many rows an answer has at most whose JSON may grow by and by. That costs five times the memory.
const grownRows = 2048

// grow makes room in dst for the rows of a long answer.
func (a *Answer) grow(dst []byte) []byte {
	if a.Len() <= grownRows {
		return dst
	}
	n := 0
	for _, rows := range a.outputs() {
		n += jsonSize(rows)
	}
	return slices.Grow(dst, n)
}

// jsonSize returns about how many bytes the rows take in JSON. {"id":1234567}, and "score":0.12345678901234567, are common.
func jsonSize(rows rowset.RowSet) int {
	if rows.Batch == nil {
		return 0
	}
	return rows.Len() * (16 + 24*rows.Batch.Count())
}

// heldSize returns about how many bytes the rows hold, with those of their batch that are not among them.
func heldSize(rows rowset.RowSet) int {
	if rows.Batch == nil {
		return 0
	}
	return rows.Batch.Len() * 8 * (1 + rows.Batch.Count())
}

// About how many bytes an explanation has at least, and for each row and node.
const (
	explainedJSONSize = 256
	stepJSONSize      = 100
)

// size returns about how many bytes the rows of all nodes hold, or the explanation takes as JSON, whichever is more. answered is
// the number of rows in the answer.
func (x *explained) size(answered int) int {
	held, told := 0, len(x.asked.IDs)
	if x.asked.All {
		told = answered
	}
	for i := range x.rows {
		held += heldSize(x.rows[i].Out)
	}
	return max(held, explainedJSONSize+told*len(x.rows)*stepJSONSize)
}
