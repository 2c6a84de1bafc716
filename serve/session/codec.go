package session

import "github.com/rankd/rankd/serve"

// A Protocol is what a server speaks. Immutable.
type Protocol struct {
	Front    serve.Front // in metrics and logs
	TurnAway []byte      // what a client is told for whom there is no room
	NewCodec func(*Session) Codec
}

// A Codec gives the bytes of one connection their meaning. Loop only, except for Encode.
type Codec interface {
	// Begin begins the request at the head of data, and returns its length: by Request and Ask, or by Reply. The length is 0 if the request
	// is not there whole; data then begins with the same bytes in the next call. A codec that cannot go on calls EndWith, and
	// consumes all. data is valid during the call.
	Begin(data []byte) (consumed int)
	// Proceed begins requests that Begin has consumed and not begun, as far as MayAsk allows. It calls Pend once they have begun. It is
	// called only while some are pending.
	Proceed()
	// Encode returns the reply, answer or error, as its client gets it. It is in memory that begins as buf, which Encode returns for the
	// next use. Any goroutine.
	Encode(buf []byte, r *serve.Reply) (reply, memory []byte)
}
