package scheduler

import "time"

// costModel predicts how long a node of a plan computes, from what it took before:
//
//	time = fixed + perRow × active rows of its input
//
// Each measurement moves the prediction for its number of rows half-way to what was
// measured, so that a node that turns expensive is known after one run, and one that turns cheap
// after some ten. It is shared out between the two parts by the size of the input: up to some
// dozens of rows the fixed part learns, beyond that the part per row. The zero value has
// measured nothing. Loop only.
type costModel struct {
	fixed   float64 // ns
	perRow  float64 // ns
	runs    uint32  // measured
	rowsMax int32   // the largest input measured
}

// costRate is how far one measurement moves the prediction.
const costRate = 0.5

// costRows is the size of an input from which on the part per row learns more than the fixed part.
const costRows = 64

// learn takes a measurement in: a run over so many rows took that long.
func (m *costModel) learn(rows int, took time.Duration) {
	rate := costRate
	if m.runs == 0 {
		rate = 1 // nothing to keep of no measurement
	}
	m.runs++
	m.rowsMax = max(m.rowsMax, int32(rows))
	x := float64(rows) / costRows
	off := rate * (float64(took) - m.ns(rows)) / (1 + x*x)
	m.fixed = max(0, m.fixed+off)
	m.perRow = max(0, m.perRow+off*x/costRows)
}

// predict returns how long a run over so many rows will take. Before the first measurement it
// is zero.
func (m *costModel) predict(rows int) time.Duration { return time.Duration(m.ns(rows)) }

func (m *costModel) ns(rows int) float64 { return m.fixed + m.perRow*float64(rows) }

// costReach is how many times larger than all before it an input may be for its prediction to be
// believed.
const costReach = 8

// knows reports whether the prediction for so many rows rests on measurements of inputs of about
// that size.
func (m *costModel) knows(rows int) bool {
	return m.runs > 0 && rows <= costReach*max(int(m.rowsMax), costRows)
}
