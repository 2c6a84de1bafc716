// Package session, which is not covered by the compatibility promise, runs the connections of clients on the
// loop. A [Codec] says what their bytes mean, so that each protocol is a codec beside the same sessions.
//
//	net.Listener ── accept ──▶ reactor.Enroll        one goroutine per listener
//	                               │
//	                               ▼ on the loop, from here on
//	bytes ──▶ Codec.Begin ──▶ slot ──▶ serve.Service.Ask ──▶ engine
//	                           │                               │
//	socket ◀── one write per iteration ◀── Codec.Encode, in order of the slots ◀─┘
//
// A [Server] accepts, drains and closes. A [Session] is one connection. Each of its requests takes the next place in
// a list of slots, whether its reply is there at once or comes later. A reply leaves when all earlier ones have left.
// A slot, its query and all buffers are reused, so that a request allocates only its answer. No connection and no
// request has a goroutine of its own.
//
// The loop is the engine's, so that no other goroutine comes between socket and scheduler. For an engine without a
// loop, the server has a loop of its own, to which each reply is posted.
//
// # What bounds a session
//
// A session that has as many requests under way as Options allow, or too many unsent bytes, leaves further requests
// unread in the connection. It goes on once half of the slots are free and all bytes have gone. A client that sends
// far more than that, that stalls within a request, or that does not read, loses its connection. One timer checks all
// sessions in turn.
//
// # TLS
//
// crypto/tls blocks, so a connection with TLS has two goroutines. One reads, and posts the bytes to the loop; the
// other writes what the loop leaves for it. A session does not notice the difference.
//
// docs/glossary.md explains the words that this package shares with others.
package session
