package eventloop

import (
	"errors"
	"time"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// errStopped says that the loop has stopped during a measurement.
var errStopped = errors.New("the event loop has stopped")

// TimersResult says how fast timers start and fire, and how late they fire. Immutable.
type TimersResult struct {
	Total     int     `json:"total_timers"`
	TimerMS   float64 `json:"timer_ms"` // the delay of each
	WallMS    float64 `json:"wall_ms"`  // from the first start to the last firing
	PerSecond float64 `json:"timers_per_sec"`
	// Latency is from when a timer was due to when it fired.
	Latency Latency `json:"latency"`
	Memory
}

// timersActive is the number of timers that are active at once, as in a server that keeps a
// deadline for each of ten thousand requests.
const timersActive = 10_000

// Timers starts n timers with that delay and waits until all have fired. It starts them in
// waves of timersActive. A wave begins when the last timer of the previous wave has fired.
func Timers(n int, delay time.Duration) (*TimersResult, error) {
	host, stop, err := start()
	if err != nil {
		return nil, err
	}
	defer stop()
	r := &TimersResult{Total: n, TimerMS: millis(delay)}
	r.StartKB = residentKB()
	w := &timerWaves{
		loop: host.Loop(), clock: host.Loop().Clock(), delay: delay, left: n,
		late: load.NewHistogram(), done: make(chan error, 1),
	}
	began := time.Now()
	if !w.loop.Post(w.begin) {
		return nil, errStopped
	}
	if err := <-w.done; err != nil {
		return nil, err
	}
	wall := time.Since(began)
	r.WallMS, r.PerSecond, r.EndKB = millis(wall), perSecond(n, wall), residentKB()
	r.Latency = summarize(w.late)
	return r, nil
}

// timerWaves is the measurement under way. Loop only, except done.
type timerWaves struct {
	loop   *loop.Loop
	clock  clock.Clock
	delay  time.Duration
	timers []*waveTimer
	left   int // to be started
	active int
	late   load.Histogram
	done   chan error
}

func (w *timerWaves) begin() {
	for range min(timersActive, w.left) {
		w.timers = append(w.timers, w.newTimer())
	}
	w.wave()
}

// waveTimer is a timer that is started once in each wave.
type waveTimer struct {
	*loop.Timer
	due clock.Time
}

func (w *timerWaves) newTimer() *waveTimer {
	t := new(waveTimer)
	t.Timer = w.loop.NewTimer(func() {
		w.late.Record(w.clock.Now().Sub(t.due))
		if w.active--; w.active == 0 {
			w.wave()
		}
	})
	return t
}

func (w *timerWaves) wave() {
	w.active = min(len(w.timers), w.left)
	w.left -= w.active
	if w.active == 0 {
		for _, t := range w.timers {
			t.Close(nil)
		}
		w.done <- nil
		return
	}
	for _, t := range w.timers[:w.active] {
		t.due = w.clock.Now().Add(w.delay)
		if err := t.StartAt(t.due); err != nil {
			w.done <- err
			return
		}
	}
}
