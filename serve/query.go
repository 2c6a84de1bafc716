package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/serve/access"
)

// Query is one request on its way from a front through the service and back. A front reuses it for its next request,
// so that a request allocates little besides its answer.
//
// One goroutine at a time: the front's until Ask, the service's until done, then the front's again.
type Query struct {
	// Context ends when nobody waits for the reply any more. The request then starts no further node; done is still
	// called. Nil: the front waits to the end.
	Context context.Context

	// The front says what it knows. The service keeps nothing of the slices once Ask has returned.

	Connection uint64 // as numbered by ConnOpened: connections of one caller take turns when requests wait; zero: none
	// Outbox counts a long answer from the call of done on: see Held. Nil: nobody counts it.
	Outbox *Outbox

	Caller    *access.Caller // who asks; nil: the request is refused as Unauthenticated
	Plan      []byte         // of a path or a command; empty: the body's "plan" counts, or the engine's own plan
	User      []byte         // of a command, as text; empty: the body's "user_id" counts
	Body      []byte         // the document as on stdin; may be empty if there is a User
	RequestID []byte         // of a header; the body's "request_id" goes before it, and one is generated if both are missing
	// TraceParent is the header of that name, as W3C Trace Context has it. The log shows its trace id.
	TraceParent []byte
	// Timeout bounds the request from its arrival. The body and the engine can only shorten it. Zero means no bound.
	Timeout time.Duration
	// Locate maps the place of a syntax error in the body to its place in a longer input. Nil: the body is the whole
	// input.
	Locate func(error) error

	// Traced makes the engine record the request, whatever the body says.
	Traced bool

	// Reply is the outcome. It is valid from the call of done to the next Ask or Release.
	Reply Reply

	service  *Service
	front    Front
	done     func(*Query)
	finishFn func(*rankd.Answer, error) // the method finish, bound once
	plan     *plan
	request  rankd.Request
	trace    traceID
	held     int

	answer    *rankd.Answer // whose line in the log of what was served has to be settled; nil: none
	delivered bool          // the client's connection has taken the reply
}

// NewQuery returns a query of a front. done is called once for each Ask. With a Reactor engine it runs on the loop, so it must not block.
func (s *Service) NewQuery(f Front, done func(*Query)) *Query {
	q := &Query{service: s, front: f, done: done}
	q.finishFn = q.finish
	return q
}

// Ask starts the request that q describes. It calls q's done exactly once: before it returns if the request is refused, and otherwise
// later. Any goroutine, the engine's loop too.
func (s *Service) Ask(q *Query) {
	q.settle()
	q.plan = &s.unknown
	q.trace.set(q.TraceParent)
	if err := q.start(); err != nil {
		q.fail(err)
	}
}

// Release forgets the request and its reply, whose answer may be large. A front calls it before it keeps q for later.
func (q *Query) Release() {
	q.Caller, q.Plan, q.User, q.Body, q.RequestID, q.TraceParent = nil, nil, nil, nil, nil, nil
	q.Context, q.Connection, q.Outbox, q.Timeout, q.Locate, q.Traced = nil, 0, nil, 0, nil, false
	q.settle()
	q.Reply, q.request, q.plan, q.held = Reply{}, rankd.Request{}, nil, 0
}

// Held returns how many bytes the Outbox counts for the answer: about its size, or zero if that is below OutboxStep.
// The front takes them back with Hold.
func (q *Query) Held() int { return q.held }

// Delivered says that the client's connection has taken the whole reply. A front calls it before Release.
func (q *Query) Delivered() { q.delivered = true }

// settle says in the log of what was served whether the client has taken the answer.
func (q *Query) settle() {
	traffic := ""
	if q.front == Admin {
		traffic = "internal" // It is an operator's.
	}
	q.service.engine.Intake().Settle(q.answer, q.delivered, traffic)
	q.answer, q.delivered = nil, false
}

// longRows is how many rows take some 0.2 ms to encode.
const longRows = 2048

// Long reports whether the reply takes so long to encode that an event loop should leave it to another goroutine.
func (q *Query) Long() bool {
	return q.request.Trace || q.request.Explain.Asked() || q.Reply.answer != nil && q.Reply.answer.Len() > longRows
}

// start checks the request and hands it to the engine, or returns why not.
func (q *Query) start() error {
	s, r := q.service, &q.request
	if q.Caller == nil {
		return refusal(outcome.Unauthenticated, idOr(q.RequestID), "a token is required")
	}
	if err := q.parse(); err != nil {
		return err
	}
	offer := s.offer.Load()
	if q.plan = offer.own; r.Plan != "" {
		if q.plan = offer.plans[r.Plan]; q.plan == nil {
			q.plan = &s.unknown
		}
	}
	r.Trace = r.Trace || q.Traced
	if detail := q.notGranted(); detail != "" {
		return refusal(outcome.Forbidden, r.ID, detail)
	}
	if r.Plan != "" && q.plan == &s.unknown {
		if len(s.Plans(q.Caller)) < len(offer.listing) { // The engine's text names a plan that the caller may not know of.
			return refusal(outcome.UnknownPlan, r.ID, "unknown plan "+errtext.Quote(r.Plan))
		}
		return s.engine.Intake().UnknownPlan(r.ID, r.Plan)
	}
	for _, name := range offer.fallbacks[q.plan.name] {
		if !q.Caller.MayPlan(name) {
			return refusal(outcome.Forbidden, r.ID, fmt.Sprintf("plan %s needs the permission for plan %s, too, which answers in its place if it has too few rows", q.plan.name, name))
		}
	}
	if r.Timeout == 0 || q.Timeout != 0 && q.Timeout < r.Timeout {
		r.Timeout = q.Timeout
	}
	r.Flow = rankd.Flow{Caller: q.Caller.Number(), Connection: q.Connection}
	if !q.Caller.Begin() {
		return refusal(outcome.TooMany, r.ID, "this token has reached its max_inflight")
	}
	if err := s.engine.Intake().StartSettled(cmp.Or(q.Context, context.Background()), *r, q.finishFn); err != nil {
		q.Caller.End()
		return err
	}
	return nil
}

// finish takes the outcome of a request that the engine has started.
func (q *Query) finish(a *rankd.Answer, err error) {
	q.Caller.End()
	if err == nil {
		if fault := q.service.engine.Intake().Contain(q.request.ID, func() { err = q.take(a) }); fault != nil {
			err = fault
		}
	}
	if err != nil {
		q.fail(err)
		return
	}
	q.done(q)
}

// take makes an answer the reply, or returns why it cannot be.
func (q *Query) take(a *rankd.Answer) error {
	q.answer = a
	q.ran(a.Version())
	bytes := a.Size()
	if q.Outbox != nil && bytes >= OutboxStep {
		if !q.Outbox.hold(bytes) {
			refused := refusal(outcome.Overloaded, a.RequestID, "answers that the client has not taken leave no room for this one")
			refused.Elapsed, refused.QueueDelay = a.Elapsed, a.QueueDelay()
			return refused
		}
		q.held = bytes
	}
	q.Reply = Reply{Class: outcome.OK, RequestID: a.RequestID, bytes: bytes, answer: a, format: q.service.format}
	m := q.series()
	m.requests[outcome.OK].Inc()
	m.observe(a.Elapsed, a.QueueDelay())
	m.lack(a)
	m.rows.Observe(float64(a.Len()))
	q.pay(a.Cost())
	return nil
}

// fail ends the request with an error, an *rankd.Error: Intake's methods and a request's callback promise that.
func (q *Query) fail(failed error) {
	q.settle() // An answer that was refused room is not delivered.
	err := failed.(*rankd.Error)
	q.ran(err.Version())
	q.Reply = Reply{Class: err.Class, RequestID: err.RequestID, bytes: err.Size(), err: err}
	if bytes := q.Reply.bytes; q.Outbox != nil && bytes >= OutboxStep { // with its trace
		q.Outbox.Hold(bytes)
		q.held = bytes
	}
	m := q.series()
	m.requests[err.Class].Inc()
	m.observe(err.Elapsed, err.QueueDelay)
	if err.Cost != (rankd.Cost{}) { // Otherwise it was refused, or has begun nothing.
		q.pay(err.Cost)
	}
	switch {
	case err.Class == outcome.Overloaded && errors.Is(err, rankd.ErrOverloaded):
		m.refused.Inc()
	case err.Class == outcome.Timeout && errors.Is(err, rankd.ErrNotAdmitted):
		m.expired.Inc()
	}
	q.service.logFailure(failure{front: q.front, err: err, plan: q.plan.name, caller: q.Caller, trace: q.trace})
	q.done(q)
}

// ran notes which plan ran: a request for an alias counts for the plan of its side, whatever fallback has answered.
func (q *Query) ran(v rankd.Version) {
	plan := cmp.Or(v.InsteadOf, v.Plan)
	if plan == "" || plan == q.plan.name {
		return
	}
	if p := q.service.offer.Load().plans[plan]; p != nil {
		q.plan = p
	}
}

// pay counts what the request has cost for its plan and its caller.
func (q *Query) pay(c rankd.Cost) {
	if q.Caller != nil {
		q.plan.paid.of(q.service.metrics, q.plan.label(), q.Caller.Name()).add(c)
	}
}

// series returns the metrics of the request's plan and front.
func (q *Query) series() *series {
	return q.plan.metrics.of(q.service.metrics, q.plan.label(), q.front)
}
