package trace

import (
	"iter"
	"time"

	"github.com/rankd/rankd/loop/clock"
)

// EventKind says what an Event is about.
type EventKind uint8

// The kinds of events, and which fields of an Event they fill beside Node and At.
const (
	EngineEntered    EventKind = iota // the engine began to work for the request, on the loop or the request's goroutine
	EngineLeft                        // it stopped to
	NodeStarted                       // the body of a node began
	NodeEnded                         // the body ended, or the node was settled without it
	NodeInlined                       // it followed another node directly: Parent, Depth
	QueueDelay                        // it left the queue of a pool or, without Node, that of requests for admission: Delay
	Suspended                         // a body gave up its thread, or blocked it: Reason, Commands, Due
	CoroutineResumed                  // it went on
	CommandSent                       // commands left: Endpoint, Connection, Commands, Bytes
	ReplyReceived                     // their replies were there: the same
	TimerFired                        // a timer of the node fired: Due; Reason is ForTimer for a sleep, else the deadline
	OffloadSubmitted                  // a job with the node as its first was handed to a pool
	OffloadStarted                    // a worker began it: Worker
	OffloadPosted                     // the worker had done it
	OffloadReturned                   // the engine took its result
)

var eventNames = [...]string{
	"engine_entered", "engine_left", "node_start", "node_end", "node_inlined", "queue_delay", "suspended", "coroutine_resumed",
	"command_sent", "reply_received", "timer_fired", "offload_submitted", "offload_started", "offload_posted", "offload_returned",
}

// String returns the name of the kind.
func (k EventKind) String() string { return eventNames[k] }

// Event is one thing that happened to a request. Immutable.
type Event struct {
	Kind EventKind
	Node int        // index; -1: none
	At   clock.Time // as read by the thread to which it happened

	Parent, Depth        int
	Delay                time.Duration
	Reason               Reason
	Due                  clock.Time
	Endpoint, Connection int // index of the endpoint in the registry, and of the connection
	Commands, Bytes      int
	Worker               int
}

// event is an Event as a Journal keeps it. It has no pointers, so that the garbage collector does not look at it. What
// happens at once is one event: a body that suspends with its commands sent, and the engine that then has nothing to do.
type event struct {
	kind     EventKind
	also     eventFlags
	endpoint uint16
	node     int32
	at       clock.Time
	arg      int64 // Due or Bytes
	a, b     int32 // connection, worker or code of the reason; commands
}

// eventFlags say what else happened at once. They are one field, so that an event travels in registers.
type eventFlags uint8

const (
	suspends eventFlags = 1 << iota // of a CommandSent: the body suspended
	resumes                         // of a ReplyReceived or TimerFired: the body went on
	leaves                          // the engine left
)

func (e *event) is(f eventFlags) bool { return e.also&f != 0 }

// The reasons of events by their codes.
var reasons = [...]Reason{Running, ForRedis, ForHTTP, ForTimer, ForFunction}

func (r Reason) code() int32 { return int32(codeOf(reasons[:], r)) }

// all returns the events of the list, each by itself.
func (r *Recording) all() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for i := range r.events {
			e := &r.events[i]
			p := e.first()
			if !yield(p) ||
				e.is(suspends) && !yield(Event{Kind: Suspended, Node: p.Node, At: p.At, Reason: ForRedis, Commands: p.Commands}) ||
				e.is(resumes) && !yield(Event{Kind: CoroutineResumed, Node: p.Node, At: p.At}) ||
				e.is(leaves) && !yield(Event{Kind: EngineLeft, Node: -1, At: p.At}) {
				return
			}
		}
	}
}

// first returns what e says without its flags.
func (e *event) first() Event {
	p := Event{Kind: e.kind, Node: int(e.node), At: e.at}
	switch e.kind {
	case Suspended, TimerFired:
		p.Reason, p.Commands, p.Due = reasons[e.a], int(e.b), clock.Time(e.arg)
	case CommandSent, ReplyReceived:
		p.Endpoint, p.Connection, p.Commands, p.Bytes = int(e.endpoint), int(e.a), int(e.b), int(e.arg)
	case OffloadStarted, OffloadPosted:
		p.Worker = int(e.a)
	}
	return p
}
