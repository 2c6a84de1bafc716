package generation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task/builtin"
)

// Resident describes the rows of one plan that an engine keeps for the task resident. A copy; any goroutine.
type Resident struct {
	Plan           string
	Digest         string // of the plan, as PlanVersion; empty if there is no such plan
	Rows           int
	Bytes          int       // about how many bytes the rows take
	Loaded         time.Time // when the run that returned them ended; zero: there is none
	Runs, Failures uint64    // runs that succeeded and that failed, in this generation and those before that had the plan
	Err            error     // why the last run failed; nil: it succeeded
}

// Residents describes, by plan, the rows that the engine keeps for present requests. They are listed once a plan that
// reads them is loaded. It never waits.
func (k *Keeper) Residents() []Resident {
	var all []Resident
	for _, r := range k.present.Load().residents.all() {
		all = append(all, r.describe())
	}
	slices.SortFunc(all, func(a, b Resident) int { return cmp.Compare(a.Plan, b.Plan) })
	return all
}

// residentTime bounds a run whose rows are kept. residentRetry is the longest wait after a failed run.
const (
	residentTime  = 30 * time.Second
	residentRetry = time.Second
)

// NotReady says which plan's rows are still missing, and why; nil: the engine has all rows for present requests.
func (k *Keeper) NotReady() error {
	for _, r := range k.Residents() {
		if r.Loaded.IsZero() {
			return fmt.Errorf("there are no rows of plan %s yet, which the engine keeps: %w", r.Plan, cmp.Or(r.Err, errFirstRun))
		}
	}
	return nil
}

var errFirstRun = errors.New("its first run has not ended")

// residents are the plans whose rows the requests of a generation read from memory. Generations share those that are
// equal. Any goroutine.
type residents struct {
	mu     sync.Mutex
	byPlan map[string]*resident // guarded by mu
	ended  bool                 // guarded by mu; none begins

	present    atomic.Pointer[keptRows] // what requests read; nil: no run has succeeded
	publishing sync.Mutex               // held while present is made anew; no request waits for it
}

// keptRows are the rows of all plans that a generation keeps, with ids that agree: text ids have their numbers from ids.
// Immutable; any goroutine.
type keptRows struct {
	loaded map[string]*taskrun.Resident // as runs returned them, by plan
	rows   map[string]*taskrun.Resident // the same with the numbers of ids
	ids    *rowset.IDDict               // nil: no rows have text ids
}

// publish lets requests read the rows that the plans have returned last. It numbers text ids here, once for all
// requests. The rows of a single plan have their numbers already.
func (rs *residents) publish() {
	rs.publishing.Lock()
	defer rs.publishing.Unlock()
	all := rs.all()
	slices.SortFunc(all, func(a, b *resident) int { return cmp.Compare(a.plan, b.plan) })
	next := &keptRows{make(map[string]*taskrun.Resident, len(all)), make(map[string]*taskrun.Resident, len(all)), nil}
	var texts []string // the plans whose ids are texts
	last, same := rs.present.Load(), true
	for _, r := range all {
		kept := r.kept.Load()
		if kept == nil {
			continue
		}
		next.loaded[r.plan], next.rows[r.plan] = kept, kept
		if kept.IDs != nil {
			texts = append(texts, r.plan)
			same = same && last != nil && last.loaded[r.plan] == kept
		}
	}
	for i, plan := range texts {
		switch kept := next.loaded[plan]; {
		case same: // No text id has changed, and last may have more plans.
			next.rows[plan], next.ids = last.rows[plan], last.ids
		case i == 0:
			next.ids = kept.IDs
		default:
			if i == 1 {
				next.ids = next.ids.Extend()
			}
			numbers, rows := next.ids.Merge(kept.IDs), *kept
			ids := make([]int64, len(kept.Rows.Batch.IDs))
			for at, id := range kept.Rows.Batch.IDs {
				ids[at] = numbers[id]
			}
			rows.Rows.Batch = rowset.WithIDs(kept.Rows.Batch, ids)
			next.rows[plan] = &rows
		}
	}
	rs.present.Store(next)
}

// resident has the rows of one plan, and runs it now and then. Any goroutine.
type resident struct {
	plan  string
	tried chan struct{} // closed once a run has ended
	stop  context.CancelFunc
	kept  atomic.Pointer[taskrun.Resident] // nil: no run has succeeded

	mu         sync.Mutex
	generation *Generation   // the latest generation that has it; guarded by mu
	readers    []*residents  // of all generations that have it; guarded by mu
	refresh    time.Duration // guarded by mu
	state      Resident      // guarded by mu
}

// all returns the residents, in no order.
func (rs *residents) all() []*resident {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	all := make([]*resident, 0, len(rs.byPlan))
	for _, r := range rs.byPlan {
		all = append(all, r)
	}
	return all
}

func (rs *residents) of(name string) *resident {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.byPlan[name]
}

// snapshot has the rows that one request reads from memory, as they were when it began, so that all its nodes agree. Immutable; any goroutine.
type snapshot struct {
	generation *Generation
	kept       *keptRows // nil: there are none yet
}

// Snapshot returns the rows that requests read from memory, as they are now, and the dictionary of their text ids, which
// the one of a request extends; nil: they have none.
func (g *Generation) Snapshot() (taskrun.Residents, *rowset.IDDict) {
	s := &snapshot{g, g.residents.present.Load()}
	if s.kept == nil {
		return s, nil
	}
	return s, s.kept.ids
}

// Resident implements taskrun.Residents.
func (s *snapshot) Resident(name string) (*taskrun.Resident, error) {
	if s.kept != nil && s.kept.rows[name] != nil {
		return s.kept.rows[name], nil
	}
	why := errFirstRun
	if r := s.generation.residents.of(name); r != nil {
		why = cmp.Or(r.describe().Err, why)
	}
	return nil, fmt.Errorf("there are no rows of plan %s yet: %w", name, why)
}

// Settled reports whether each plan whose rows graph reads, or its Fallback, has ended a run.
func (g *Generation) Settled(graph *plan.Graph) bool {
	read := graph.Resident
	if fallback := g.Fallback(graph); fallback != nil {
		read = slices.Concat(read, fallback.Resident)
	}
	for _, name := range read {
		r := g.residents.of(name)
		if r == nil {
			return false
		}
		select {
		case <-r.tried:
		default:
			return false
		}
	}
	return true
}

// Hold makes the engine keep the rows that graph reads.
func (k *Keeper) Hold(g *Generation, graph *plan.Graph) []*resident {
	var all []*resident
	if k.loader.from.NoSecrets { // It runs no plans.
		return nil
	}
	for _, n := range graph.Nodes {
		if name, refresh, ok := builtin.Resident(n); ok {
			if r := k.keep(g, name, refresh); r != nil {
				all = append(all, r)
			}
		}
	}
	return all
}

// keep makes the engine keep the rows of a plan. It returns nil if the engine closes, or if g is no longer in use.
func (k *Keeper) keep(g *Generation, name string, refresh time.Duration) *resident {
	rs := &g.residents
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.byPlan[name]
	switch {
	case r != nil:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refresh = min(r.refresh, refresh)
		return r
	case rs.ended || !k.Begin():
		return nil
	}
	ctx, stop := context.WithCancel(k.running)
	r = &resident{plan: name, refresh: refresh, tried: make(chan struct{}), stop: stop, generation: g, readers: []*residents{rs}, state: Resident{Plan: name}}
	if rs.byPlan == nil {
		rs.byPlan = make(map[string]*resident)
	}
	rs.byPlan[name] = r
	go func() {
		defer k.End()
		r.run(ctx, k)
	}()
	return r
}

// await waits until each plan whose rows graph reads has ended a run, or until ctx ends.
func (k *Keeper) await(ctx context.Context, g *Generation, graph *plan.Graph) {
	for _, r := range k.Hold(g, graph) {
		select {
		case <-r.tried:
		case <-ctx.Done():
			return
		}
	}
}

// Await waits until each plan whose rows graph reads, or its Fallback, has ended a run, but no longer than ctx lasts and the limits
// allow; a limit of 0 does not count.
func (k *Keeper) Await(ctx context.Context, g *Generation, graph *plan.Graph, limits ...time.Duration) {
	graphs := []*plan.Graph{graph, g.Fallback(graph)}
	graphs = slices.DeleteFunc(graphs, func(g *plan.Graph) bool { return g == nil || len(g.Resident) == 0 })
	for _, limit := range limits {
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
	}
	for _, graph := range graphs {
		k.await(ctx, g, graph)
	}
}

// share takes over what g has in common with the generation before.
func (g *Generation) share(last *Generation) {
	for _, r := range last.residents.all() {
		was, _, _ := last.Library.Loaded(r.plan)
		if now, _, _ := g.Library.Loaded(r.plan); now == nil || now != was {
			continue
		}
		r.mu.Lock()
		r.generation, r.readers = g, append(r.readers, &g.residents)
		r.mu.Unlock()
		if g.residents.byPlan == nil {
			g.residents.byPlan = make(map[string]*resident)
		}
		g.residents.byPlan[r.plan] = r
	}
	g.residents.publish()
}

// end makes the engine forget what g keeps and no generation of others does.
func (rs *residents) end(others ...*Generation) {
	rs.mu.Lock()
	rs.ended = true
	rs.mu.Unlock()
	for _, r := range rs.all() {
		r.mu.Lock()
		r.readers = slices.DeleteFunc(slices.Clone(r.readers), func(of *residents) bool { return of == rs })
		r.mu.Unlock()
		if !slices.ContainsFunc(others, func(o *Generation) bool { return o != nil && o.residents.of(r.plan) == r }) {
			r.stop()
		}
	}
}

// run runs the plan again and again until ctx ends.
func (r *resident) run(ctx context.Context, k *Keeper) {
	for first := true; ; first = false {
		kept, digest, err := r.load(ctx, k)
		if ctx.Err() == nil {
			r.note(k, kept, digest, err)
		}
		if first {
			close(r.tried)
		}
		timer := time.NewTimer(r.pause(err))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// pause returns how long to wait for the next run.
func (r *resident) pause(err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		return min(r.refresh, residentRetry)
	}
	return r.refresh
}

// note notes the outcome of a run. It logs the first failure, and the first success after one.
func (r *resident) note(k *Keeper, kept *taskrun.Resident, digest string, err error) {
	if err == nil {
		r.kept.Store(kept)
		for _, of := range r.of() {
			of.publish()
		}
	}
	r.mu.Lock()
	s := &r.state
	before := s.Err
	s.Err, s.Digest = err, cmp.Or(digest, s.Digest)
	if err == nil {
		s.Runs++
		s.Rows, s.Bytes, s.Loaded = kept.Rows.Len(), kept.Rows.Batch.Bytes(), time.Now()
	} else {
		s.Failures++
	}
	r.mu.Unlock()
	switch log := k.log; {
	case err != nil && before == nil:
		log.Warn("the rows of a plan that the engine keeps could not be read: the last ones stay, and it tries again", "plan", r.plan, "error", err)
	case err == nil && before != nil:
		log.Info("the rows of a plan that the engine keeps were read again", "plan", r.plan)
	}
}

// of returns the residents of all generations that have r.
func (r *resident) of() []*residents {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.readers)
}

func (r *resident) describe() Resident {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// load runs the plan once.
func (r *resident) load(ctx context.Context, k *Keeper) (kept *taskrun.Resident, digest string, err error) {
	r.mu.Lock()
	g := r.generation
	r.mu.Unlock()
	graph, err := g.Library.Get(r.plan)
	if err != nil {
		return nil, "", err
	}
	if err := builtin.CheckResident(graph); err != nil {
		return nil, graph.Digest, err
	}
	ctx, cancel := context.WithTimeout(ctx, residentTime)
	defer cancel()
	out, ids, err := k.host.Run(ctx, g, graph, residentTime)
	if err != nil {
		return nil, graph.Digest, err
	}
	rows, texts := make([]int32, out.Len()), [][]byte(nil)
	for i := range rows {
		rows[i] = out.Row(i)
		if ids != nil {
			texts = append(texts, []byte(ids.At(out.ID(i))))
		}
	}
	kept = &taskrun.Resident{Rows: rowset.Dense(rowset.Gather(nil, out.Batch, rows)), Entity: graph.Nodes[graph.Outputs[0]].Entity}
	if ids != nil {
		kept.IDs = rowset.NewIDDict()
		if kept.Rows.Batch.IDs, err = kept.IDs.Number(make([]int64, 0, len(texts)), texts...); err != nil {
			return nil, graph.Digest, err
		}
	}
	for _, column := range kept.Rows.Batch.Columns() {
		if c, ok := column.(*rowset.StringColumn); ok {
			c.Codes(nil, kept.Rows) // here and once, not on the loop by the first request that groups by them
		}
	}
	return kept, graph.Digest, nil
}

// settle waits until the engine has tried to get all rows that the plans of g read. The error names the plans whose
// rows it could not get, if present has these rows or does not need them.
func (k *Keeper) settle(ctx context.Context, g, present *Generation) error {
	g.share(present)
	var lacking []error
	for _, graph := range g.Plans() {
		k.await(ctx, g, graph)
	}
	for _, r := range g.residents.all() {
		if r.kept.Load() != nil {
			continue
		}
		if was := present.residents.of(r.plan); was == nil || was.kept.Load() != nil {
			lacking = append(lacking, fmt.Errorf("plan %s, whose rows the engine keeps: %w", r.plan, cmp.Or(r.describe().Err, context.Cause(ctx), errFirstRun)))
		}
	}
	return errors.Join(lacking...)
}
