package trace

import (
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
	QueueDelay                        // it left the queue of a pool or, without Node, that of requests to be let in: Delay
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

// event is an Event as a Recorder keeps it. It has no pointers, so that the garbage collector does not look at it. What
// happens at once is one event: a body that suspends with its commands sent, and the engine that then has nothing to do.
type event struct {
	kind     EventKind
	also     eventFlags
	endpoint uint16
	node     int32
	at       clock.Time
	arg      int64 // Due or Bytes
	a, b     int32 // connection or worker; commands
}

// eventFlags say more of an event. They are one field, so that an event travels in registers.
type eventFlags uint8

const (
	ofTimer    eventFlags = 1 << iota // Reason is ForTimer
	suspends                          // of a CommandSent: the body suspended at once, too
	resumes                           // of a ReplyReceived or TimerFired: the body went on at once, too
	leaves                            // the engine left at once, too
	ofHTTP                            // Reason is ForHTTP
	ofFunction                        // Reason is ForFunction
)

func (e *event) is(f eventFlags) bool { return e.also&f != 0 }
