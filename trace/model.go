package trace

import (
	"time"

	"github.com/rankd/rankd/plan"
)

// Version is the version of the JSON form. It changes when a reader of the last version would misread the new one.
const Version = 1

// Trace is one request as it ran. Every instant in it is the time since the request's arrival. Immutable once
// built; any goroutine.
type Trace struct {
	Version     int          `json:"version"`
	TraceID     string       `json:"trace_id"` // 32 hexadecimal digits, as W3C Trace Context has them
	RequestID   string       `json:"request_id"`
	At          time.Time    `json:"at,omitzero"` // of the arrival, on the calendar; zero: unknown
	Plan        string       `json:"plan"`
	PlanVersion plan.Version `json:"plan_version,omitzero"` // zero: unknown
	Engine      string       `json:"engine"`                // "reactor", "pool" or "sequential"
	Scheduling  string       `json:"scheduling,omitempty"`  // mode of the reactor: "adaptive", "offload_all" or "inline_all"
	Request     Request      `json:"request"`
	Nodes       []Node       `json:"nodes"`  // of the plan, in its order: Nodes[i].Index is i
	Tracks      []Track      `json:"tracks"` // the loop or the request's goroutine first, then workers, then Redis and services
	Flows       []Flow       `json:"flows"`  // by the instant of their first point
	Timers      []Timer      `json:"timers"` // by the instant at which they fired
	// Dropped counts events that the bounds of recording left out. The rest of the trace is true, but incomplete.
	Dropped int `json:"dropped"`
}

// Request has the instants of the request as a whole. Immutable.
type Request struct {
	Begun time.Duration `json:"begun_ns"` // the engine took it up
	// QueueDelay is how long it waited for admission, up to Begun or shortly before. Zero: it did not wait.
	QueueDelay time.Duration `json:"queue_delay_ns,omitempty"`
	Ended      time.Duration `json:"ended_ns"` // the engine delivered its answer: the request's time
	Error      string        `json:"error,omitempty"`
	// Degraded: the engine answered, and something is missing in the answer.
	Degraded bool `json:"degraded,omitempty"`
}

// Status is how a node ended.
type Status string

// The statuses of a node.
const (
	OK      Status = "ok"
	Failed  Status = "error"
	Timeout Status = "timeout" // its deadline came while it ran, or before
	Late    Status = "late"    // it is optional, and the plan did not wait for it any longer
	Skipped Status = "skipped" // it never ran
)

// StandIn says what the readers of a node that failed see in its place.
type StandIn string

// The stand-ins. A node without one has not failed, or the request has failed with it.
const (
	NoStandIn       StandIn = ""
	EmptyStandIn    StandIn = "empty"    // no rows
	SkipStandIn     StandIn = "skip"     // its first input
	NullStandIn     StandIn = "null"     // its first input, with nulls in the columns that it writes
	FallbackStandIn StandIn = "fallback" // the result of its fallback, which is an input of its readers then
)

// Place says on what a node ran.
type Place string

// The places. Nowhere is the place of a node that never ran.
const (
	Nowhere     Place = ""
	OnLoop      Place = "loop"    // on the loop, as a coroutine that may wait
	Inline      Place = "inline"  // on the loop, without waiting
	OnPool      Place = "pool"    // on a CPU worker
	OnIOWorker  Place = "io"      // on an I/O worker of the two-pool engine
	OnGoroutine Place = "request" // on the request's goroutine, in the sequential engine
)

// Node is one node of the plan, and how it ran. The instants are zero for a node that never ran. Immutable.
type Node struct {
	SpanID int64  `json:"span_id"` // 1 + Index; the request is span 0
	ID     string `json:"node_id"`
	Index  int    `json:"node_index"`
	Op     string `json:"op"`              // with namespace
	Label  string `json:"label,omitempty"` // the common parameter "trace" of the plan's node; several nodes may have it
	// Inputs has the indices of the nodes that it waits for, references behind inputs; may repeat. Behind them come the fallbacks that
	// ran for some of them, and the node that it stood in for.
	Inputs []int `json:"inputs"`
	Output bool  `json:"output"`
	// SourceSpan is the place in the plan's source that made the node, "plans/x.plan.ts:14:9". Empty if
	// the plan's artifact has none.
	SourceSpan string `json:"source_span,omitempty"`
	// OnError is what its readers would see if it failed, "partial" or as StandIn; empty: the request would fail. Because
	// says why the policy of the plan has chosen that.
	OnError string `json:"on_error,omitempty"`
	Because string `json:"on_error_because,omitempty"`

	Status Status `json:"status"`
	// Error says why the node failed, or why the result of a node that is OK lacks something.
	Error   string  `json:"error,omitempty"`
	StandIn StandIn `json:"stand_in,omitempty"`
	Dropped int     `json:"rows_dropped,omitempty"` // because their keys failed

	// Cached is how many values the node took from the engine's memory, and CachedAge the age of the oldest.
	Cached    int           `json:"cached_values,omitempty"`
	CachedAge time.Duration `json:"cached_age_ns,omitempty"`

	// Ready <= Start <= End. Ready is the End of the last input, and the request's arrival for a node without
	// inputs. Start and End are readings of the thread that ran the body. End of a node that a deadline or
	// the end of the engine has settled is the instant of that.
	Ready time.Duration `json:"ready_ns"`
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
	// QueueDelay is how long the node waited in the queue of a pool, up to Start. Nil: it was in no queue.
	QueueDelay *time.Duration `json:"queue_delay_ns,omitempty"`

	Place Place `json:"place"`
	// Track is the index of the track on which the body started; -1 if it never ran.
	Track int `json:"track"`
	// Fused is how many nodes shared the job, this one among them. Zero or one: the node was alone.
	Fused int `json:"fused,omitempty"`
	// Parent is the index of the node that this one followed directly, inline or in a fused chain; -1: none.
	Parent int `json:"parent_node_index"`
	// Depth is how many nodes before this one followed each other directly, up to it. 0 for a node without Parent.
	Depth int `json:"inline_depth"`

	RowsIn  int `json:"rows_in"`  // active rows of all inputs
	RowsOut int `json:"rows_out"` // active rows of the result, or of what stands in for it; 0 on error

	Awaits []Await `json:"awaits,omitempty"` // in order; they do not overlap
}

// Ran reports whether the node's body started, or the node was settled in its place.
func (n *Node) Ran() bool { return n.Place != Nowhere }

// Wait is the time from ready to start.
func (n *Node) Wait() time.Duration { return n.Start - n.Ready }

// Run is the time from start to end, waits for Redis and timers included.
func (n *Node) Run() time.Duration { return n.End - n.Start }

// Await is one time that a body waited, from the instant at which it gave up its thread, or blocked it, to the
// instant at which it went on. Immutable.
type Await struct {
	For   Reason        `json:"for"` // ForRedis, ForHTTP, ForTimer or ForFunction
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"` // the node's end if the body was not resumed before it
	// Commands is how many commands the body waited for. Zero for a timer.
	Commands int `json:"commands,omitempty"`
}

// TrackKind says what a track is about.
type TrackKind string

// The kinds of tracks.
const (
	LoopTrack    TrackKind = "loop"    // the reactor's loop
	RequestTrack TrackKind = "request" // the request's goroutine, in the engines without a loop
	CPUTrack     TrackKind = "cpu"     // a CPU worker
	IOTrack      TrackKind = "io"      // an I/O worker of the two-pool engine
	RedisTrack   TrackKind = "redis"   // a lane of a connection to Redis
	HTTPTrack    TrackKind = "http"    // a lane of a connection to a service
)

// Track is one thread or connection, and what it did for this request. Immutable.
type Track struct {
	Kind TrackKind `json:"kind"`
	// Number counts the tracks of a kind from 0: CPU worker 0, 1, ...; connection 0, 1, ... of its endpoint.
	Number int `json:"number"`
	// Endpoint is the id of a connection's endpoint.
	Endpoint string `json:"endpoint,omitempty"`
	// Lane tells calls apart that are in flight at the same time on one connection: 0, 1, ...
	Lane int    `json:"lane,omitempty"`
	Name string `json:"name"` // for people: "Loop", "CPU 0", "ep_0001 #0", "ep_0001 #0 lane 1"
	// Slices are in order and do not overlap. A slice may be empty: Start == End.
	Slices []Slice `json:"slices"`
}

// SliceKind says what happened in a slice.
type SliceKind string

// The kinds of slices.
const (
	NodeSlice   SliceKind = "node"   // the body of a node ran
	EngineSlice SliceKind = "engine" // the engine worked for this request: it started, settled or handed over nodes
	CallSlice   SliceKind = "call"   // commands of a node were on a connection, from send to reply
)

// Slice is one stretch of a track. The thread that ran it read the clock at both ends. Immutable.
type Slice struct {
	Kind  SliceKind     `json:"kind"`
	Node  int           `json:"node_index"` // -1 for the engine
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
	// Of a call:
	Commands int `json:"commands,omitempty"`
	Sent     int `json:"bytes_sent,omitempty"`
	Received int `json:"bytes_received,omitempty"`
	// GivenUp: nobody waited for the reply, or for the body on its worker, any more. End is the instant of that.
	GivenUp bool `json:"given_up,omitempty"`
}

// FlowKind says what a flow connects.
type FlowKind string

// The kinds of flows.
const (
	// RedisFlow goes from the body that asks to its connection, and back to the body that goes on with the reply.
	RedisFlow FlowKind = "redis"
	// HTTPFlow is RedisFlow for a service.
	HTTPFlow FlowKind = "http"
	// OffloadFlow goes from the submission of a job to its worker, and to the loop that takes it back.
	OffloadFlow FlowKind = "offload"
	// TimerFlow goes from a body that sleeps to its resumption.
	TimerFlow FlowKind = "timer"
)

// Flow connects slices, in the order of time. Each point lies within a slice of its track, edges included.
// Immutable.
type Flow struct {
	Kind   FlowKind `json:"kind"`
	Node   int      `json:"node_index"` // the first one of a fused chain
	Points []Point  `json:"points"`     // at least two
}

// Point is an instant on a track. Immutable.
type Point struct {
	Step  Step          `json:"step"`
	Track int           `json:"track"` // index in Trace.Tracks
	At    time.Duration `json:"at_ns"`
}

// Step says what happened at a point of a flow.
type Step string

// The steps, in the order in which a flow has them.
const (
	Asked     Step = "asked"     // a body asked Redis or a service, or began to sleep, and gave up its thread
	Sent      Step = "sent"      // the client wrote commands to the connection
	Replied   Step = "replied"   // the client had read the replies to them
	Submitted Step = "submitted" // the loop submitted a job
	Started   Step = "started"   // a worker started it
	Posted    Step = "posted"    // the worker was done and posted the job back
	Resumed   Step = "resumed"   // the body, or the engine with a job's result, went on
)

// TimerKind says what a timer was for.
type TimerKind string

// The kinds of timers.
const (
	SleepTimer    TimerKind = "sleep"    // of a body that sleeps
	DeadlineTimer TimerKind = "deadline" // of a node's deadline
)

// Timer is one timer that fired for this request. Immutable.
type Timer struct {
	Kind  TimerKind     `json:"kind"`
	Node  int           `json:"node_index"`
	Due   time.Duration `json:"due_ns"`
	Fired time.Duration `json:"fired_ns"`
}

// Own returns how long threads ran the body of each node: the sum of its slices, waits left out.
func (t *Trace) Own() []time.Duration {
	own := make([]time.Duration, len(t.Nodes))
	for i, bodies := range t.Bodies() {
		for _, s := range bodies {
			own[i] += s.End - s.Start
		}
	}
	return own
}

// ready returns the instant at which a node's last input ended, or the request's arrival.
func (t *Trace) ready(n *Node) (at time.Duration) {
	for _, in := range n.Inputs {
		at = max(at, t.Nodes[in].End)
	}
	return at
}

// The engines of a Trace.
const (
	Reactor    = "reactor"
	TwoPools   = "pool"
	Sequential = "sequential"
)
