// Package reactor lets gnet host a loop: the goroutine of one gnet event loop is
// the loop goroutine, so a reply goes from the socket to the task that waits for
// it without changing goroutines. It gives the loop its connections.
//
// # How gnet is made to keep the loop's order
//
// gnet calls back for each ready socket and says neither where a batch of them
// begins nor where it ends; it has no timers and its task queue is neither FIFO
// nor bounded. So the loop brings its own queue and timers, and a turn of the
// loop is one gnet task:
//
//	epoll_wait ─▶ OnTraffic, OnClose, ...   the first of a batch begins the iteration and
//	    ▲              │                    submits the turn, which gnet runs after the batch
//	    │              ▼
//	    │            turn: inbox ─▶ check ─▶ closing ─▶ now ─▶ timers ─▶ prepare ─▶ flush
//	    │              │
//	    └──────────────┤ nothing left: sleep (arm one Go timer for the earliest of the loop's)
//	                   └ something left: hop
//
// What brings the next turn about:
//
//   - A post from another goroutine submits the turn if the loop is asleep, and
//     does nothing otherwise.
//   - A hop writes one byte to a socket pair whose other end gnet polls. A task
//     submitted by the turn would run in the same pass of gnet, before sockets
//     that are ready; the byte queues up behind them.
//   - Of all timers only the earliest has a Go timer, which is moved only if it
//     would fire too late. When it fires it posts.
//
// Submitting costs two allocations and 1 µs, of the 8 µs that an echo over loopback
// takes. So while there is but one connection, its event being a batch of its own, the
// turn runs at once. Nothing but its cost tells such a turn from a submitted one: that too precedes
// the end of the connection. A plan with one request in flight has one connection and a
// handful of such turns.
//
// # Connections
//
// Bytes are handed over in gnet's own read buffer, uncopied, if the handler
// has left none over from before. Writes are collected per connection and leave in
// one system call at the end of the iteration, or earlier in pieces of a few KiB if
// there is much, so that the peer need not wait for the end. What gnet closes inside another
// call is only noted there: the handler hears of it in the loop's closing phase.
//
// Connecting is net.Dialer's work, on a goroutine that lives as long as the
// attempt: gnet can only connect while it blocks. The loop does not end before
// each of them has reported.
//
// # What gnet does not let us offer
//
//   - No half-close: at the peer's FIN gnet closes the connection at once. The
//     handler gets the data before it, then OnClose(io.EOF). The iteration that has the
//     data completes before the connection closes: an answer given in it, deferred
//     and posted work included, is sent. A later one has nowhere to go.
//   - No read-stop: what a handler does not consume is buffered, up to UnreadMaxBytes.
//   - No completion per write: replies tell. Unsent tells how much still waits.
//   - gnet's logger belongs to the process: the last reactor started has it.
package reactor
