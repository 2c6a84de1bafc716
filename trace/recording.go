package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// A Recording is what a Journal took down about one request, which has ended. Events and Trace make something of it
// to look at, at the expense of who asks. It is valid only during the callback that gets it, a Sink's or the request's: who
// wants it for longer has Keep. Immutable; any goroutine, while it is valid.
type Recording struct {
	// The fields that each event touches come first, on two lines of the processor's cache with the first fields of Journal.
	events  []event
	nodes   []nodeRecord
	Detail  Detail
	Dropped int        // events that did not fit
	cut     clock.Time // the instant of the first dropped event; zero: none, or a worker's

	// Context is what the caller gave to the engine, for its values: the span of the caller, for example.
	Context   context.Context
	RequestID string
	At        time.Time // of the arrival, on the calendar; zero: unknown
	Graph     *plan.Graph
	// PlanVersion says of which generation Graph is, and which side of an alias; zero: unknown.
	PlanVersion plan.Version
	Engine      string // as Trace.Engine
	Scheduling  string // as Trace.Scheduling
	Arrived     clock.Time
	Begun       clock.Time
	QueueDelay  time.Duration // as Request.QueueDelay
	Ended       clock.Time
	Err         error // of the answer

	id    [2]uint64
	notes []nodeNote
}

// Keep returns a copy that stays valid.
func (r *Recording) Keep() *Recording {
	kept := *r
	kept.nodes, kept.events, kept.notes = slices.Clone(r.nodes), slices.Clone(r.events), slices.Clone(r.notes)
	return &kept
}

// JSONSize returns about how many bytes Trace takes as JSON, which is more than the recording. It is 0 for nil.
func (r *Recording) JSONSize() int {
	if r == nil {
		return 0
	}
	return 512 + 400*len(r.nodes) + 180*len(r.events)
}

// ID returns Trace.TraceID.
func (r *Recording) ID() string { return fmt.Sprintf("%016x%016x", r.id[0], r.id[1]) }

// Events returns all events in the order of their instants.
func (r *Recording) Events() []Event {
	events := make([]Event, 0, len(r.events)+2*len(r.nodes)+1)
	if r.QueueDelay > 0 {
		events = append(events, Event{Kind: QueueDelay, Node: -1, At: r.Begun, Delay: r.QueueDelay})
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.place == 0 {
			continue
		}
		if n.queued != 0 {
			events = append(events, Event{Kind: QueueDelay, Node: i, At: n.start, Delay: n.start.Sub(n.queued)})
		}
		if n.parent >= 0 {
			events = append(events, Event{Kind: NodeInlined, Node: i, At: n.start, Parent: int(n.parent), Depth: int(n.depth)})
		}
		events = append(events, Event{Kind: NodeStarted, Node: i, At: n.start, Worker: int(n.worker)},
			Event{Kind: NodeEnded, Node: i, At: n.end, Worker: int(n.worker)})
	}
	for e := range r.all() {
		if e.Kind != NodeStarted && e.Kind != NodeEnded { // The records of the nodes have these.
			events = append(events, e)
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return events
}
