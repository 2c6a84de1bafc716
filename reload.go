package rankd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/trace"
)

// What Reload and Back refuse.
var (
	// ErrNoFormer: the engine has had one generation only.
	ErrNoFormer = errors.New("there is no former generation to go back to")
)

// Generation describes what an engine has loaded together: the tables, the models and the plans. Immutable; any goroutine.
type Generation struct {
	// Number counts the generations that the engine has begun requests with: 1 is what Open has loaded.
	Number uint64
	// Digest is the hex SHA-256 of what the tables, the models and the plans say, whenever they were loaded and wherever from. It is empty
	// until all plans of the folder have been loaded, as Plans and Reload do.
	Digest string
	Loaded time.Time
	Plans  []PlanVersion // that are loaded, by name
	// Aliases are the second names of plans, by name.
	Aliases []Alias
}

// Alias is a name under which requests ask for one of two plans.
type Alias = plan.Alias

// PlanVersion is one plan of a Generation. Immutable; any goroutine.
type PlanVersion struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // hex SHA-256 of the artifact
}

// Reloads says what became of the calls of Reload and Back. A copy; any goroutine.
type Reloads struct {
	Succeeded, Failed uint64
	Err               error // of the last call; nil: it succeeded, or there was none
}

// reloads has the calls of Reload and Back take turns, and counts them. Any goroutine.
type reloads struct {
	turn chan struct{} // has a value while one of them runs
	last uint64        // the number of the last generation; of whose turn it is

	mu    sync.Mutex
	count Reloads // guarded by mu
}

func (r *reloads) ended(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count.Err = err; err == nil {
		r.count.Succeeded++
	} else {
		r.count.Failed++
	}
}

// Reload reads tables, models and plans again, beside those that requests run with. It loads all plans, and asks each that has changed once,
// for user 1. Then all requests that come begin with the new generation, which it returns. Those that have begun end as they began.
// If all is as before, it returns the present generation.
//
// After an error everything stays as it was. The error says what is wrong with each file, and where: a plan may be refused only if
// the present generation refuses it, too. It is of class ErrCallback in a callback of an
// engine or the body of a task, since Reload waits. Endpoints whose tables are the same stay, with passwords, connections and caches; others are connected first, and must answer. Counters stay, and so do models and
// plans whose files are the same. One call runs at a time; others wait until ctx ends.
func (e *Engine) Reload(ctx context.Context) (Generation, error) { return e.change(ctx, e.next) }

// Back returns to the generation before the present one, at once: nothing is read. A second call returns to where the first one began. The error matches ErrNoFormer
// if there was none, and otherwise is as for Reload.
func (e *Engine) Back(ctx context.Context) (Generation, error) {
	return e.change(ctx, func(context.Context, *generation) (*generation, error) {
		if former := e.former.Load(); former != nil {
			return former, nil
		}
		return nil, ErrNoFormer
	})
}

// Generation describes what requests begin with now. It loads nothing, and never waits.
func (e *Engine) Generation() Generation { return e.present.Load().describe() }

// Reloads says what became of the calls of Reload and Back so far.
func (e *Engine) Reloads() Reloads {
	e.reloads.mu.Lock()
	defer e.reloads.mu.Unlock()
	return e.reloads.count
}

// change has requests begin with the generation that to returns.
func (e *Engine) change(ctx context.Context, to func(ctx context.Context, present *generation) (*generation, error)) (Generation, error) {
	if inCallback() {
		return Generation{}, waits("", "Reload waits, so a callback or a body must not call it")
	}
	select {
	case e.reloads.turn <- struct{}{}:
		defer func() { <-e.reloads.turn }()
	case <-ctx.Done():
		return Generation{}, context.Cause(ctx)
	}
	if !e.loads.begin() {
		return Generation{}, ErrClosed
	}
	defer e.loads.end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.running, func() { cancel(ErrClosed) })() // Shutdown does not wait for plans to warm up.
	present := e.present.Load()
	next, err := to(ctx, present)
	if err == nil {
		err = context.Cause(ctx)
	}
	e.reloads.ended(err)
	if err != nil {
		return present.describe(), err
	}
	if next != present {
		e.begin(next, present)
	}
	return next.describe(), nil
}

// begin has requests begin with next, and lets go all generations but that and the present one.
func (e *Engine) begin(next, present *generation) {
	dropped := e.former.Load()
	e.former.Store(present) // first, for generationOf
	e.present.Store(next)
	if dropped != nil && dropped != next {
		dropped.residents.end(next, present)
	}
	e.keepOnly(next, present)
}

// keepOnly has the scheduler forget what no generation of these has.
func (e *Engine) keepOnly(generations ...*generation) {
	graphs, endpoints := make(map[*plan.Graph]bool), make(map[*registry.Endpoint]bool)
	for _, g := range generations {
		if g == nil {
			continue
		}
		for _, graph := range g.plans() {
			graphs[graph] = true
		}
		for _, ep := range g.registry.Endpoints() {
			endpoints[ep] = true
		}
	}
	e.scheduler.Keep(graphs, endpoints)
}

// next loads a generation, checks it, and asks its new plans once. It returns present if nothing has changed.
func (e *Engine) next(ctx context.Context, present *generation) (*generation, error) {
	g, err := e.load(present)
	if err != nil {
		return nil, err
	}
	listing, err := g.list(present)
	if err != nil {
		return nil, err
	}
	var refused []error
	for _, l := range listing {
		if l.Err != nil && !present.library.Refused(l.Name) {
			refused = append(refused, l.Err)
		}
	}
	if len(refused) > 0 {
		return nil, errors.Join(refused...)
	}
	if err := plan.Aliased(g.aliases, func(name string) bool {
		return g.plan != nil && name == g.plan.Name || slices.ContainsFunc(listing, func(l plan.Listing) bool { return l.Name == name && l.Err == nil })
	}); err != nil {
		return nil, err
	}
	if before := present.digest.Load(); before != nil && *before == *g.digest.Load() && g.works(present) {
		return present, nil
	}
	err = e.connect(ctx, g, present)
	if err == nil {
		err = e.settle(ctx, g, present)
	}
	if err != nil {
		former := e.former.Load()
		g.residents.end(present, former)
		e.keepOnly(present, former)
		return nil, err
	}
	e.reloads.last = max(e.reloads.last, 1) + 1
	g.number = e.reloads.last
	e.warm(ctx, g, present)
	return g, nil
}

// connect has the scheduler reach the endpoints of g that present does not have, and asks each Redis of them whether it answers. The error names each that does
// not.
func (e *Engine) connect(ctx context.Context, g, present *generation) error {
	var added []*registry.Endpoint
	for _, ep := range g.registry.Endpoints() {
		if !present.registry.Has(ep) {
			added = append(added, ep)
		}
	}
	if len(added) == 0 {
		return nil
	}
	for _, ep := range added {
		if err := ep.ClusterProblem(); err != nil {
			return fmt.Errorf("endpoint %s: %w", ep.ID, err)
		}
	}
	e.scheduler.Connect(added)
	failed := make([]error, len(added))
	var asked sync.WaitGroup
	for i, ep := range added {
		asked.Go(func() {
			if err := blocking.Ping(ctx, &e.config, ep); err != nil {
				failed[i] = fmt.Errorf("endpoint %s, which is new or has changed: %w", ep.ID, err)
			}
		})
	}
	asked.Wait()
	return errors.Join(failed...)
}

// warmTime bounds what the first requests of the plans of a generation take together, and warmID is their id.
const (
	warmTime = 5 * time.Second
	warmID   = "reload"
)

// warm asks each plan of g once that present does not have, so that no request of a client is the first. A plan that fails may be sound: nobody knows
// its users.
func (e *Engine) warm(ctx context.Context, g, present *generation) {
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	known := make(map[*plan.Graph]bool)
	for _, graph := range present.plans() {
		known[graph] = true
	}
	for _, graph := range g.plans() {
		if known[graph] {
			continue
		}
		if _, err := e.ask(ctx, g, graph, 0); err != nil && !errors.Is(err, ErrInvalidRequest) {
			e.options.Logger.Warn("a new plan has failed its first request", "plan", graph.Name, "error", err)
		}
	}
}

// ask runs a request of the engine's own for a plan of g, and waits for its answer. Its nodes compute off the loop: nobody waits for them there, or knows yet what they
// cost. limit is its deadline in place of those of the options; 0: theirs.
func (e *Engine) ask(ctx context.Context, g *generation, graph *plan.Graph, limit time.Duration) (*Answer, error) {
	r := Request{ID: warmID, Plan: graph.Name, UserID: 1}
	if g.registry.User().TextIDs() {
		r.UserID, r.UserIDText = 0, "1"
	}
	w := &rankWait{done: make(chan struct{})}
	c := e.calls.Get().(*call)
	c.generation, c.RequestID, c.done, c.Context, c.Arrived = g, r.ID, w.deliver, ctx, e.clock.Now()
	if err := c.prepare(&r, graph, nil); err != nil {
		c.free()
		return nil, err
	}
	c.Mode, c.sampled, c.Record = OffloadAll, false, trace.Off
	if limit > 0 {
		c.Deadline = c.Arrived.Add(limit)
	}
	if err := e.scheduler.Submit(&c.Execution, c.deliverFn); err != nil {
		c.free()
		return nil, err
	}
	select {
	case <-w.done:
		return w.answer, w.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// describe returns what is known of g now.
func (g *generation) describe() Generation {
	d := Generation{Number: g.number, Loaded: g.loaded}
	if digest := g.digest.Load(); digest != nil {
		d.Digest = *digest
	}
	for _, a := range g.aliases {
		d.Aliases = append(d.Aliases, *a)
	}
	slices.SortFunc(d.Aliases, func(a, b Alias) int { return cmp.Compare(a.Name, b.Name) })
	for _, graph := range g.plans() {
		d.Plans = append(d.Plans, PlanVersion{graph.Name, graph.Digest})
	}
	return d
}

// generationOf returns the generation for a request that the present one does not understand: the former, if that has parsed it.
func (e *Engine) generationOf(r *Request) (*generation, error) {
	if former := e.former.Load(); former != nil && former.requests.Understands(r) {
		return former, nil
	}
	return nil, invalid(r.ID, request.CodeInvalid, errParsedBefore)
}

var errParsedBefore = errors.New("the request was parsed with tables that the engine has replaced since: parse it again")
