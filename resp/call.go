package resp

import (
	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/loop/clock"
)

// A Call is one batch on its way to a server and back. Its owner fills in the exported fields down to Done, gives the
// call to Client.Do, and may reuse it from Done on, even inside Done. A reused call allocates nothing, unless its
// replies come in several parts. The zero value is ready. Loop only.
type Call struct {
	// Batch holds the commands. It must not change while the call is under way. Once the client has accepted a
	// Cancel, it no longer reads the batch.
	Batch Batch
	// Deadline is the instant at which the caller loses interest; the call never waits past it.
	// Zero means none.
	Deadline clock.Time
	// Flow is that of the request to which the call belongs; nil means that the call has turns of its own. It does not
	// change while the call is under way.
	Flow *Flow
	// MaxReplyBytes bounds the replies. Zero means the client's MaxReplyBytes.
	MaxReplyBytes int
	// Part, if set, receives Replies to the commands from From on, as soon as they are there: each
	// reply once and in order, on the loop, never inside a call to the client. The last of them
	// come with Done instead. Part may cancel the call.
	Part func(*Call)
	// Done is invoked exactly once for each accepted Do, on the loop, never inside a
	// call to the client.
	Done func(*Call)
	// Watch observes the commands. Nil: nobody does.
	Watch Watch

	// Replies holds one reply for each command from From on, valid only during Done, and during
	// Part.
	Replies Replies
	// From is 0, unless Part has seen earlier replies.
	From int
	// Err says that the batch failed as a whole; there are no replies then. It is nil
	// if all replies are there, errors of the server among them.
	Err error

	// generation tells the parts of this use of the call from the parts of earlier uses: replies to a part with
	// another number are dropped.
	generation uint64
	conn       *conn      // carries the commands gathered so far; nil before the first
	waitsIn    *flowQueue // nil if all commands are gathered
	pieces     *pieces

	// Commands: answered <= launched <= gathered <= Batch.Len().
	gathered int32 // handed to conn, to leave with the others of this iteration
	launched int32 // of these, written
	answered int32
	// Unwatched says that the call has ended by something that Watch does not hear of: the failure of one node of a
	// cluster, or the reply to a command that was sent again. It is here because here it takes no room.
	Unwatched bool
	paced     bool       // its replies are long or many
	received  int        // bytes of the replies so far
	since     clock.Time // when Do accepted it
	sentAt    clock.Time // since when commands have been out without interruption
	state     callState
	place     list.Link[Call] // among those under way, or settled
	queued    list.Link[Call] // in waitsIn
}

// callState says where a Call is.
type callState uint8

const (
	callIdle     callState = iota // its owner has it
	callUnderWay                  // replies or a failure are to come
	callSettled                   // Done is due
)

// pieces is for a call whose replies are not in a row on one tape. It is apart so that a small call fits into few
// cache lines.
type pieces struct {
	places []uint32  // of the commands in their flights; only scattered parts use it
	view   tape      // lists scattered replies, while Part or Done sees them
	kept   *Gathered // the replies to earlier parts; nil if there are none
}

// inPieces returns the call's pieces, which its first use makes.
func (c *Call) inPieces() *pieces {
	if c.pieces == nil {
		c.pieces = new(pieces)
	}
	return c.pieces
}

// A Watch observes the commands of a call. It is called on the goroutine that drives the connection: the loop or, in
// a client that blocks, the caller.
type Watch interface {
	// Sent says that n commands of the call left, bytes long, on the client's connection of that number. If the call
	// shares commands with others, theirs count.
	Sent(conn, n, bytes int, at clock.Time)
	// Replied says that the replies to the oldest n of these commands were read. It is not called for a call that has
	// given up.
	Replied(conn, n, bytes int)
}
