// Package respfront, which follows the engine's needs, answers requests in the protocol of Redis, so that any
// client of Redis is a client of rankd.
//
//	net.Listener ── accept ──▶ reactor.Enroll        one goroutine per listener
//	                               │
//	                               ▼ on the loop, from here on
//	bytes ──▶ reader ──▶ command ──▶ slot ──▶ serve.Service.Ask ──▶ engine
//	           redcon                 │                               │
//	socket ◀── one write per iteration ◀── replies in order ◀─────────┘
//
// A session is one connection. Each of its commands takes the next place in a list of slots, whether its
// reply is there at once or comes later. A reply leaves when all before it have left. A slot, its query and all buffers are used
// again, so that a request allocates its answer and nothing else. No goroutine belongs to a connection or to a request.
//
// # What bounds a session
//
// A session that has as many requests under way as Options allow, or too many unsent bytes, leaves further commands unread in
// the connection. It goes on once half of the slots are free and all bytes have gone. A client that sends far more than
// that, that stalls within a command, or that does not read, loses its connection. One timer looks at all sessions by turns.
//
// # TLS
//
// crypto/tls blocks, so a connection with TLS has two goroutines: one reads and posts what it has read to the loop, one writes what the
// loop has left for it. A session does not know the difference.
package respfront
