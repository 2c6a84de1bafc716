package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
)

// A Recording is what a Recorder took down about one request, which has ended. Events and Trace make something of it
// to look at, at the expense of who asks. Immutable once a Sink has it; any goroutine.
type Recording struct {
	RequestID  string
	At         time.Time // of the arrival, on the calendar; zero: unknown
	Graph      *plan.Graph
	Engine     string // as Trace.Engine
	Scheduling string // as Trace.Scheduling
	Detail     Detail
	Arrived    clock.Time
	Begun      clock.Time
	Ended      clock.Time
	Err        error // of the answer
	Dropped    int   // events that did not fit

	id     [2]uint64
	cut    clock.Time // as in Recorder
	nodes  []nodeRecord
	events []event
}

// ID returns Trace.TraceID.
func (r *Recording) ID() string { return fmt.Sprintf("%016x%016x", r.id[0], r.id[1]) }

// Events returns all events in the order of their instants.
func (r *Recording) Events() []Event {
	events := make([]Event, 0, len(r.events)+2*len(r.nodes))
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.place == Nowhere {
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
	for i := range r.events {
		if e := &r.events[i]; e.kind != NodeStarted && e.kind != NodeEnded {
			events = append(events, e.public())
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return events
}

// public returns e as a sink sees it.
func (e *event) public() Event {
	p := Event{Kind: e.kind, Node: int(e.node), At: e.at}
	switch e.kind {
	case Suspended:
		p.Commands, p.Reason = int(e.b), ForRedis
		if e.timer {
			p.Reason, p.Due = ForTimer, clock.Time(e.arg)
		}
	case CommandSent, ReplyReceived:
		p.Endpoint, p.Connection, p.Commands, p.Bytes = int(e.endpoint), int(e.a), int(e.b), int(e.arg)
	case TimerFired:
		p.Due = clock.Time(e.arg)
		if e.timer {
			p.Reason = ForTimer
		}
	case OffloadStarted, OffloadPosted:
		p.Worker = int(e.a)
	}
	return p
}
