package batch

// The window of a job, in users.
const (
	windowFirst = 4   // at a time, at first
	windowSlow  = 100 // times the window must be in time before one more runs at a time, once there was a timeout
	windowAlone = 64  // users in a row that run out of time although each runs alone: their number is not why
	windowBlind = 1000
)

// A window bounds how many users run at a time, as a congestion window does. It doubles while nodes are in time, halves when one runs out of time, and
// then grows slowly. If users run out of time alone, too, it opens for a while. One goroutine.
type window struct {
	most    int
	limit   int
	parked  []*Entry
	good    int  // outcomes in time since the limit changed
	alone   int  // outcomes out of time in a row, at a limit of one
	blind   int  // outcomes that say nothing about the limit: they began before it
	slow    bool // a node has run out of time
	holding int  // how long blind is when the window opens
}

func newWindow(most int) *window {
	return &window{most: most, limit: min(most, windowFirst), holding: windowBlind}
}

// begin parks all entries of a line, but for those that may run.
func (w *window) begin(l *Line) {
	for range w.most - w.limit {
		w.parked = append(w.parked, l.Take())
	}
}

// saw notes an outcome.
func (w *window) saw(late bool) {
	if w.limit == 1 && !late {
		w.alone, w.holding = 0, windowBlind
	}
	if w.blind > 0 {
		w.blind--
		return
	}
	switch {
	case late && w.limit > 1:
		w.limit, w.blind, w.good, w.slow = w.limit/2, w.limit, 0, true
	case late:
		if w.alone++; w.alone == windowAlone {
			w.limit, w.alone, w.blind = w.most, 0, w.holding
			w.holding *= 2
		}
	case !w.slow:
		if w.good++; w.good >= w.limit {
			w.limit, w.good = min(w.most, 2*w.limit), 0
		}
	default:
		if w.good++; w.good >= windowSlow*w.limit {
			w.limit, w.good = min(w.most, w.limit+1), 0
		}
	}
}

// free gives an entry back to the line, or parks it. It lets others run as the window allows.
func (w *window) free(l *Line, p *Entry) {
	w.parked = append(w.parked, p)
	for n := len(w.parked); n > w.most-w.limit; n = len(w.parked) {
		l.Free(w.parked[n-1])
		w.parked = w.parked[:n-1]
	}
}
