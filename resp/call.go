package resp

import (
	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/loop/clock"
)

// A Call is one batch on its way to a server and back. Its owner fills in the exported fields
// down to Done, gives the call to Client.Do, and may use it again from Done on, even inside it; a
// call that is reused allocates nothing, unless its replies come in several parts. The zero value
// is ready. Loop only.
type Call struct {
	// Batch holds the commands. It must not change while the call is under way. The client does not look at it any more once it
	// has accepted a Cancel.
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
	// Watch sees the commands on their way. Nil: nobody looks.
	Watch Watch

	// Replies holds one reply for each command from From on, valid only during Done, and during
	// Part.
	Replies Replies
	// From is 0, unless Part has seen earlier replies.
	From int
	// Err says that the batch failed as a whole; there are no replies then. It is nil
	// if all replies are there, errors of the server among them.
	Err error

	// generation tells the parts of this use of the call from the parts of earlier
	// ones: a part whose number differs belongs to nobody any more.
	generation uint64
	conn       *conn      // carries the commands gathered so far; nil before the first
	waitsIn    *flowQueue // nil if all commands are gathered
	pieces     *pieces

	// Commands: answered <= launched <= gathered <= Batch.Len().
	gathered int32 // handed to conn, to leave with the others of this iteration
	launched int32 // of these, written
	answered int32
	paced    bool       // its replies are long or many
	received int        // bytes of the replies so far
	since    clock.Time // when Do accepted it
	sentAt   clock.Time // since when commands have been out without a pause
	state    callState
	place    list.Link[Call] // among those under way, or settled
	queued   list.Link[Call] // in waitsIn
}

// callState says where a Call is.
type callState uint8

const (
	callIdle     callState = iota // its owner has it
	callUnderWay                  // replies or a failure are to come
	callSettled                   // Done is due
)

// pieces is what only a call needs whose replies are not in a row on one tape: a small call fits into
// few cache lines without it.
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

// A Watch sees the commands of a call on their way. On the goroutine that drives the connection: the loop or, in a
// client that blocks, the caller.
type Watch interface {
	// Sent says that n commands of the call, bytes long, left on the client's connection of that
	// number, or that others asked for the same and theirs left.
	Sent(conn, n, bytes int, at clock.Time)
	// Replied says that the replies to the oldest n of these commands were read. Nobody says so about
	// commands whose call has given up.
	Replied(conn, n, bytes int)
}
