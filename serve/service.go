package serve

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/serve/access"
)

// Options configure a Service. The zero value works. New reads them once. One goroutine at a time.
type Options struct {
	// Format says how answers show the columns of a candidate.
	Format rankd.Format
	// Logger receives a line per failed request, and what else strangers cause. Nil means slog.Default().
	Logger *slog.Logger
	// LogPerSecond bounds these lines. Zero means 10.
	LogPerSecond int
	// MaxUnsentBytes bounds the answers that clients have not taken, over all connections of all fronts. An answer
	// that waits for its turn counts with about its encoded size. Zero means DefaultMaxUnsentBytes. See Outbox.
	MaxUnsentBytes int
	// Registerer receives the metrics. Nil: nobody can read them.
	Registerer prometheus.Registerer
	// Strict refuses requests with a field that rankd does not know. Otherwise the service refuses only names that
	// look like typing mistakes, and ignores other unknown fields.
	Strict bool
	// Clock tells the log when a second is over. Nil means a real clock.
	Clock clock.Clock
}

// Service asks an engine on behalf of clients. Any goroutine, the engine's loop too.
type Service struct {
	engine  *rankd.Engine
	format  rankd.Format
	offer   atomic.Pointer[offer]
	busy    chan struct{} // has a value while offer is replaced
	unknown plan          // counts requests for plans that the engine does not have
	metrics *metrics
	lines   *fileio.Lines
	unsent  unsent

	unknownMembers request.Unknown // never changes

	connections atomic.Uint64 // opened so far
}

// offer is what a service offers of one generation of its engine. Immutable.
type offer struct {
	plans   map[string]*plan // by name
	own     *plan            // for requests that do not name a plan; without one its name is empty
	listing []rankd.Plan     // of plans, by name
	aliases []rankd.Alias    // by name; plans has them, too
	// fallbacks are the plans that may answer in place of a plan, or of an alias.
	fallbacks map[string][]string
}

// plan is one plan that the service offers. Any goroutine.
type plan struct {
	name    string // empty: it counts requests for plans that the engine does not have
	metrics planMetrics
	paid    payments
}

// label returns the name of the plan in the metrics.
func (p *plan) label() string {
	if p.name == "" {
		return noPlan
	}
	return p.name
}

// New returns the service of an engine. It loads all plans of the engine, so that no request has to wait for that.
// The service refuses other names, until Reload brings them. An error means that the plan folder cannot be read.
func New(e *rankd.Engine, o Options) (*Service, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = clock.NewReal()
	}
	s := &Service{
		engine: e, format: o.Format, busy: make(chan struct{}, 1),
		unknownMembers: request.RefuseNear,
		unsent:         unsent{max: int64(cmp.Or(o.MaxUnsentBytes, DefaultMaxUnsentBytes)), patience: unsentPatience},
	}
	if o.Strict {
		s.unknownMembers = request.RefuseUnknown
	}
	s.metrics = newMetrics(o.Registerer, s.Unsent)
	s.lines = newLines(o.Logger, o.LogPerSecond, o.Clock, s.metrics.unlogged)
	s.offer.Store(new(offer))
	return s, s.follow()
}

// follow offers what the engine has now.
func (s *Service) follow() error {
	listing, err := s.engine.Plans()
	if err != nil {
		return err
	}
	own, noOwn := s.engine.PlanInfo("")
	if noOwn == nil && !slices.ContainsFunc(listing, func(p rankd.Plan) bool { return p.Name == own.Name }) {
		listing = append(listing, rankd.Plan{Name: own.Name, Info: own}) // of a file outside the folder
	}
	slices.SortFunc(listing, func(a, b rankd.Plan) int { return cmp.Compare(a.Name, b.Name) })
	last, next := s.offer.Load(), &offer{plans: make(map[string]*plan, len(listing)), own: &s.unknown, listing: listing, fallbacks: make(map[string][]string)}
	for _, p := range listing {
		if p.Info != nil && p.Info.Fallback() != "" {
			next.fallbacks[p.Name] = []string{p.Info.Fallback()}
		}
		if next.plans[p.Name] = last.plans[p.Name]; next.plans[p.Name] == nil {
			next.plans[p.Name] = &plan{name: p.Name}
		}
	}
	next.aliases = s.engine.Generation().Aliases
	for _, a := range next.aliases {
		if next.plans[a.Name] = last.plans[a.Name]; next.plans[a.Name] == nil {
			next.plans[a.Name] = &plan{name: a.Name}
		}
		next.fallbacks[a.Name] = slices.Concat(next.fallbacks[a.A], next.fallbacks[a.B])
	}
	if p := next.plans[s.engine.Intake().Own()]; p != nil {
		next.own = p
	}
	s.offer.Store(next)
	return nil
}

// Reload calls Engine.Reload, and offers what it brings.
func (s *Service) Reload(ctx context.Context) (rankd.Generation, error) {
	return s.change(ctx, s.engine.Reload)
}

// Back calls Engine.Back, and offers what was there before.
func (s *Service) Back(ctx context.Context) (rankd.Generation, error) {
	return s.change(ctx, s.engine.Back)
}

func (s *Service) change(ctx context.Context, to func(context.Context) (rankd.Generation, error)) (rankd.Generation, error) {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return rankd.Generation{}, context.Cause(ctx)
	}
	g, err := to(ctx)
	if err == nil {
		err = s.follow()
	}
	return g, err
}

// Engine returns the engine that the service asks.
func (s *Service) Engine() *rankd.Engine { return s.engine }

// Plans returns the plans that a caller may ask for, by name. Those that do not load have an Err.
func (s *Service) Plans(c *access.Caller) []rankd.Plan {
	var plans []rankd.Plan
	for _, p := range s.offer.Load().listing {
		if c != nil && c.MayPlan(p.Name) {
			plans = append(plans, p)
		}
	}
	return plans
}

// Aliases returns the aliases that a caller may ask for, by name.
func (s *Service) Aliases(c *access.Caller) (aliases []rankd.Alias) {
	for _, a := range s.offer.Load().aliases {
		if c != nil && c.MayPlan(a.Name) {
			aliases = append(aliases, a)
		}
	}
	return aliases
}

// Refuse counts and logs a request that a front itself refuses, and returns the reply to it. detail is one line,
// without unbounded text from the input. If requestID is empty, Refuse generates one.
func (s *Service) Refuse(f Front, c outcome.Class, requestID, detail string) Reply {
	if requestID == "" {
		requestID = request.NewID()
	}
	return s.refused(f, refusal(c, requestID, detail))
}

// Fail is Refuse for an error of a request.Stream that cut requests out of a body.
func (s *Service) Fail(f Front, err error) Reply { return s.refused(f, s.engine.Intake().Refused(err)) }

func (s *Service) refused(f Front, err *rankd.Error) Reply {
	s.unknown.metrics.of(s.metrics, s.unknown.label(), f).requests[err.Class].Inc()
	s.logFailure(failure{front: f, err: err})
	return Reply{Class: err.Class, RequestID: err.RequestID, bytes: err.Size(), err: err}
}

// Contain has a front encode what its client gets for an answer. If encode panics, that is counted and logged, and Contain
// returns the reply that says so. Any goroutine.
func (s *Service) Contain(f Front, requestID string, encode func()) (instead Reply, ok bool) {
	if err := s.engine.Intake().Contain(requestID, encode); err != nil {
		return s.Fail(f, err), false
	}
	return Reply{}, true
}

// Log writes a line that strangers can cause, unless LogPerSecond is reached. It never waits. Any goroutine.
func (s *Service) Log(f Front, level slog.Level, message string, attrs ...slog.Attr) {
	s.lines.Put(level, message, func() []slog.Attr { return append([]slog.Attr{slog.String("front", f.String())}, attrs...) })
}

// FlushLog waits until the logger has all lines, or ctx ends.
func (s *Service) FlushLog(ctx context.Context) { _ = s.lines.Flush(ctx) }
