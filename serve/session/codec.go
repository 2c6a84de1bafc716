package session

import "github.com/rankd/rankd/serve"

// A Protocol is what a server speaks. Immutable.
type Protocol struct {
	Front    serve.Front   // in metrics and logs
	TurnAway func() []byte // what a client gets for which there is no room; nil: nothing
	// NewCodecs returns what makes the codecs of one loop, which may share what is loop only.
	NewCodecs func() func(*Session) Codec
}

// A Codec gives the bytes of one connection their meaning. Loop only, except for Encode.
type Codec interface {
	// Begin begins the request at the head of data, by Request and Ask or by Reply, and returns how many bytes it has
	// taken. It may take a request in pieces: see Within. If it takes nothing, data begins with the same bytes in the
	// next call. A codec that cannot go on calls EndWith, and consumes all bytes. data is valid during the call.
	Begin(data []byte) (consumed int)
	// Proceed begins requests that Begin has consumed and not begun, as far as MayAsk allows. It calls Pend once they have begun. It is
	// called only while some are pending.
	Proceed()
	// Stop says that the client sends no more, is late, or should leave. A codec with a last reply calls EndWith, or
	// Reply and End. Otherwise the session ends as soon as no reply is owed.
	Stop(why Stop)
	// Fail ends the session with a request that was refused without a query: it calls EndWith.
	Fail(refused *serve.Reply)
	// Encode returns the reply, answer or error, as its client gets it. It appends to buf, and returns the buffer for
	// reuse. note is what Annotate has left with the request, or nil. last says that the connection ends after the
	// reply. Any goroutine.
	Encode(buf []byte, r *serve.Reply, note []byte, last bool) (reply, memory []byte)
}

// Stop says why no more requests come.
type Stop uint8

// The reasons.
const (
	EOF   Stop = iota // the client has stopped sending; what Begin has left stays incomplete
	Late              // the client has not sent in time
	Drain             // the server lets each session end
)
