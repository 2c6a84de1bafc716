package drift

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/scheduler"
)

const (
	// Every is the least time between two requests of one plan and side that are counted.
	Every = time.Second
	// RowsMax is how many rows of a column are counted of one request. Of more rows, every n-th is.
	RowsMax = 1024
	// seriesMax is how many plans and sides a Watch tells apart. It watches no further ones.
	seriesMax = 512
	// countingMax is how many requests are counted at the same time. Further ones are lost.
	countingMax = 8
)

// Column says what the counted requests of one plan and side have computed with in one column. A copy; any goroutine.
type Column struct {
	Plan, Alias, Side string  // Alias and Side are empty for requests that named the plan
	Name              string  // of the key
	Rows              uint64  // that a node has read the column of
	Nulls, Defaults   uint64  // of these: without a value; whose value equals the default of the key
	Memory, Old       uint64  // values of it that came from memory; of these, those older than rowcache.OldAfter
	Scores            *Scores // of the numbers that the plan has written in it; nil: it writes none
}

// column is a Column that is being counted. One goroutine at a time.
type column struct {
	Column
	scores *scores
}

// Sampled says how many requests of one plan and side were counted, and how many were due but lost. A copy; any goroutine.
type Sampled struct {
	Plan, Alias, Side string
	Counted, Lost     uint64
}

// Watch counts for one engine. Any goroutine.
type Watch struct {
	Clock clock.Clock // set before the first use

	known    atomic.Pointer[map[source]*Series] // never changed, but replaced
	mu       sync.Mutex                         // held while known is replaced
	counting atomic.Int32
	running  sync.WaitGroup
}

type source struct{ plan, alias, side string }

// Series is one plan and side of a Watch. Any goroutine.
type Series struct {
	source
	watch *Watch
	next  atomic.Int64 // a clock.Time: from when on a request is due

	mu            sync.Mutex // guards what follows
	columns       map[string]*column
	counted, lost uint64
}

// Due returns where a request of that plan and side is counted, or nil if it is not due. The caller is about to run it,
// and gives its rows to Count. It allocates nothing, but for a plan and side that are new.
func (w *Watch) Due(plan, alias, side string, now clock.Time) *Series {
	s := w.series(source{plan, alias, side})
	if s == nil {
		return nil
	}
	next := s.next.Load()
	if int64(now) < next || !s.next.CompareAndSwap(next, int64(now.Add(Every))) {
		return nil
	}
	return s
}

func (w *Watch) series(of source) *Series {
	if known := w.known.Load(); known != nil {
		if s := (*known)[of]; s != nil || len(*known) >= seriesMax {
			return s
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[source]*Series{}
	if known := w.known.Load(); known != nil {
		all = maps.Clone(*known)
	}
	if all[of] == nil && len(all) < seriesMax {
		all[of] = &Series{source: of, watch: w, columns: map[string]*column{}}
	}
	w.known.Store(&all)
	return all[of]
}

// Count counts a request that has ended, with the rows of its nodes. It does not wait: another goroutine counts.
func (s *Series) Count(g *plan.Graph, rows []scheduler.NodeRows) {
	w := s.watch
	if w.counting.Add(1) > countingMax {
		w.counting.Add(-1)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lost++
		return
	}
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		defer w.counting.Add(-1)
		s.count(g, rows)
	}()
}

// Wait waits for the requests that are being counted.
func (w *Watch) Wait() { w.running.Wait() }

// Columns returns what was counted so far, by plan, alias, side and column.
func (w *Watch) Columns() (all []Column, sampled []Sampled) {
	known := w.known.Load()
	if known == nil {
		return nil, nil
	}
	for _, s := range *known {
		s.mu.Lock()
		for _, c := range s.columns {
			if c.scores != nil {
				c.Scores = c.scores.stats(w.Clock.Now())
			}
			all = append(all, c.Column)
		}
		sampled = append(sampled, Sampled{s.plan, s.alias, s.side, s.counted, s.lost})
		s.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Column) int {
		return cmp.Or(cmp.Compare(a.Plan, b.Plan), cmp.Compare(a.Alias, b.Alias), cmp.Compare(a.Side, b.Side), cmp.Compare(a.Name, b.Name))
	})
	return all, sampled
}
