package generation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
)

// Host is the engine that runs the requests of generations. Any goroutine.
type Host interface {
	// Keep forgets all plans and endpoints except these.
	Keep(graphs map[*plan.Graph]bool, endpoints map[*registry.Endpoint]bool)
	// Connect reaches further endpoints.
	Connect(added []*registry.Endpoint)
	// Ping asks the Redis of an endpoint whether it answers.
	Ping(ctx context.Context, ep *registry.Endpoint) error
	// Warm runs a plan of g once, so that no request of a client is the first.
	Warm(ctx context.Context, g *Generation, graph *plan.Graph)
	// Run runs a plan of g within limit. It returns the rows of its first output, and their text ids by number; nil:
	// the ids are integers.
	Run(ctx context.Context, g *Generation, graph *plan.Graph, limit time.Duration) (rows rowset.RowSet, ids *rowset.IDTexts, err error)
}

// Keeper has the generation that requests begin with, and the former one. It switches to a new generation or back to
// the former one, and keeps the rows that their plans read from memory. Any goroutine.
type Keeper struct {
	present, former atomic.Pointer[Generation] // former is nil until a generation has been replaced
	host            Host
	log             *slog.Logger
	loader          Loader          // of Open, and then of whoever holds busy
	running         context.Context // ends when Close begins: from then on only requests run plans
	stop            context.CancelFunc
	work            work
	stopServer      sync.Once

	busy chan struct{} // has a value while Reload or Back runs
	last uint64        // the number of the last generation; of whoever holds busy

	mu    sync.Mutex
	count Reloads // guarded by mu
}

// Reloads counts how calls of Reload and Back ended. A copy; any goroutine.
type Reloads struct {
	Succeeded, Failed uint64
	Err               error // of the last call; nil: it succeeded, or there was none
}

// ErrNoFormer: the engine has had only one generation.
var ErrNoFormer = errors.New("there is no former generation to go back to")

// Open loads the first generation. It does not call the host yet. Close and then StopServer end the Keeper.
func Open(from Source, host Host, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{host: host, log: log, loader: Loader{from: from}, busy: make(chan struct{}, 1)}
	k.running, k.stop = context.WithCancel(context.Background())
	var first *Generation
	err := k.loader.steady(func() (err error) { first, err = k.loader.load(nil); return err })
	if err != nil {
		k.StopServer()
		return nil, err
	}
	first.Number = 1
	k.present.Store(first)
	return k, nil
}

// Close stops the Keeper's own runs of plans, refuses further work, and waits for what has begun.
func (k *Keeper) Close() {
	k.stop()
	k.work.close()
}

// StopServer stops the embedded Redis, if it runs. A second call does nothing.
func (k *Keeper) StopServer() {
	k.stopServer.Do(func() {
		if k.loader.stopEmbedded != nil {
			k.loader.stopEmbedded()
		}
	})
}

// Present returns the generation that requests begin with.
func (k *Keeper) Present() *Generation { return k.present.Load() }

// Understanding returns the generation for a request that the present one does not understand: the former, if that has parsed it; otherwise nil.
func (k *Keeper) Understanding(r *request.Request) *Generation {
	if former := k.former.Load(); former != nil && former.Requests.Understands(r) {
		return former
	}
	return nil
}

// Reloads returns how calls of Reload and Back have ended so far.
func (k *Keeper) Reloads() Reloads {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count
}

func (k *Keeper) ended(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.count.Err = err; err == nil {
		k.count.Succeeded++
	} else {
		k.count.Failed++
	}
}

// Reload loads a generation beside the present one, and makes requests begin with it: see rankd.Engine.Reload. It
// returns the generation that is then present, or nil if ctx ended before its turn came.
func (k *Keeper) Reload(ctx context.Context) (*Generation, error) { return k.change(ctx, k.next) }

// Back makes requests begin with the former generation. The rest is as for Reload.
func (k *Keeper) Back(ctx context.Context) (*Generation, error) {
	return k.change(ctx, func(ctx context.Context, _ *Generation) (*Generation, error) {
		if former := k.former.Load(); former != nil {
			return former, context.Cause(ctx)
		}
		return nil, ErrNoFormer
	})
}

// change makes requests begin with the generation that to returns. to fails if ctx has ended.
func (k *Keeper) change(ctx context.Context, to func(ctx context.Context, present *Generation) (*Generation, error)) (*Generation, error) {
	select {
	case k.busy <- struct{}{}:
		defer func() { <-k.busy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !k.Begin() {
		return nil, scheduler.ErrShuttingDown
	}
	defer k.End()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(k.running, func() { cancel(scheduler.ErrShuttingDown) })() // Close does not wait for plans to warm up.
	present := k.present.Load()
	next, err := to(ctx, present)
	k.ended(err)
	if err != nil {
		return present, err
	}
	if next != present {
		k.begin(next, present)
	}
	return next, nil
}

// begin makes requests begin with next, and drops all generations except that and the present one.
func (k *Keeper) begin(next, present *Generation) {
	dropped := k.former.Load()
	k.former.Store(present) // first, for Understanding
	k.present.Store(next)
	if dropped != nil && dropped != next {
		dropped.residents.end(next, present)
	}
	k.keepOnly(next, present)
}

// keepOnly makes the host forget what none of these generations has.
func (k *Keeper) keepOnly(generations ...*Generation) {
	graphs, endpoints := make(map[*plan.Graph]bool), make(map[*registry.Endpoint]bool)
	for _, g := range generations {
		if g == nil {
			continue
		}
		for _, graph := range g.Plans() {
			graphs[graph] = true
		}
		for _, ep := range g.Registry.Endpoints() {
			endpoints[ep] = true
		}
	}
	k.host.Keep(graphs, endpoints)
}

// next loads a generation, checks it, and runs each of its new plans once. It returns present if nothing has changed.
func (k *Keeper) next(ctx context.Context, present *Generation) (*Generation, error) {
	var g *Generation
	var listing []plan.Listing
	err := k.loader.steady(func() (err error) {
		if g, err = k.loader.load(present); err == nil {
			listing, err = g.List(present)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(listing) == 0 && len(present.Library.Graphs()) > 0:
		return nil, fmt.Errorf("%s holds no plan any more: is it mounted, or half copied?", cmp.Or(k.loader.from.PlansName, "the folder of plans"))
	}
	var refused []error
	for _, l := range listing {
		if l.Err != nil && !present.refuses(l.Name) {
			refused = append(refused, l.Err)
		}
	}
	if len(refused) > 0 {
		return nil, errors.Join(refused...)
	}
	if err := plan.Aliased(g.Aliases, func(name string) bool {
		return g.plan != nil && name == g.plan.Name || slices.ContainsFunc(listing, func(l plan.Listing) bool { return l.Name == name && l.Err == nil })
	}); err != nil {
		return nil, err
	}
	if before := present.Digest(); before != "" && before == g.Digest() && g.works(present) {
		return present, context.Cause(ctx)
	}
	err = k.connect(ctx, g, present)
	if err == nil {
		err = k.settle(ctx, g, present)
	}
	if err == nil {
		g.Number = max(k.last, 1) + 1
		k.warm(ctx, g, present)
		err = context.Cause(ctx)
	}
	if err != nil {
		former := k.former.Load()
		g.residents.end(present, former)
		k.keepOnly(present, former)
		return nil, err
	}
	k.last = g.Number
	return g, nil
}

// connect adds the endpoints of g that present does not have to the host, and pings each Redis among them. The error
// names each that does not answer.
func (k *Keeper) connect(ctx context.Context, g, present *Generation) error {
	var added []*registry.Endpoint
	for _, ep := range g.Registry.Endpoints() {
		if !present.Registry.Has(ep) {
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
	k.host.Connect(added)
	failed := make([]error, len(added))
	var asked sync.WaitGroup
	for i, ep := range added {
		asked.Go(func() {
			if err := k.host.Ping(ctx, ep); err != nil {
				failed[i] = fmt.Errorf("endpoint %s, which is new or has changed: %w", ep.ID, err)
			}
		})
	}
	asked.Wait()
	return errors.Join(failed...)
}

// warmTime bounds what the first requests of the plans of a generation take together.
const warmTime = 5 * time.Second

// warm runs each plan of g once that present does not have.
func (k *Keeper) warm(ctx context.Context, g, present *Generation) {
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	known := make(map[*plan.Graph]bool)
	for _, graph := range present.Plans() {
		known[graph] = true
	}
	for _, graph := range g.Plans() {
		if !known[graph] {
			k.host.Warm(ctx, g, graph)
		}
	}
}

// work counts what must end before Close returns. The zero value is ready. Any goroutine.
type work struct {
	mu     sync.Mutex
	closed bool // guarded by mu; Begin refuses
	active sync.WaitGroup
}

// Begin counts one more piece of work, such as a request that waits for its plan to be loaded, which calls End. It reports false after Close.
func (k *Keeper) Begin() bool {
	k.work.mu.Lock()
	defer k.work.mu.Unlock()
	if !k.work.closed {
		k.work.active.Add(1)
	}
	return !k.work.closed
}

// Go runs fn on a goroutine for which Close waits. ctx ends when Close begins. It reports false after Close.
func (k *Keeper) Go(fn func(ctx context.Context)) bool {
	if !k.Begin() {
		return false
	}
	go func() {
		defer k.End()
		fn(k.running)
	}()
	return true
}

// End ends what Begin has begun.
func (k *Keeper) End() { k.work.active.Done() }

// close refuses further work and waits for what has begun.
func (w *work) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.active.Wait()
}
