// Package reactor, which is not covered by the compatibility promise, lets gnet host a loop. The goroutine of
// one gnet event loop is the loop goroutine, so a reply goes from the socket to the waiting task without
// changing goroutines. The reactor also gives the loop its connections.
//
// # How gnet is made to keep the loop's order
//
// gnet calls back for each ready socket. It says neither where a batch of callbacks
// begins nor where it ends. It has no timers, and its task queue is neither FIFO nor
// bounded. So the loop brings its own queue and timers, and gnet runs each
// iteration as one task:
//
//	epoll_wait ─▶ OnTraffic, OnClose, ...   the first callback of a batch begins the iteration
//	    ▲              │                    and submits the rest of it as a task
//	    │              ▼
//	    │            task: inbox ─▶ check ─▶ closing ─▶ now ─▶ timers ─▶ prepare ─▶ flush
//	    │              │
//	    └──────────────┤ nothing left: sleep (arm one Go timer for the earliest of the loop's)
//	                   └ something left: iterate again; after 20 µs write a byte to the self-pipe
//
// Three things bring about the next iteration:
//
//   - A post from another goroutine submits the task if the loop is asleep, and
//     does nothing otherwise.
//   - The loop has work left. The next iterations follow at once, for up to 20 µs, so that no
//     socket waits longer. Then the loop writes one byte to the self-pipe, a socket pair
//     whose other end gnet polls. gnet would run a task submitted by the iteration before it polls the ready sockets
//     again; the byte queues up behind them.
//   - One Go timer serves the loop's earliest timer. It posts when it fires. The
//     reactor moves it only if it would fire too late.
//
// Submitting a task costs two allocations and some microseconds. While there is only one connection, each of its
// events is a batch of its own. The iteration then runs at once, without a task. It differs from a submitted one only
// in cost: both precede the end of the connection. A plan with one request in flight has one connection and a handful
// of such iterations.
//
// # Connections
//
// The handler gets bytes in gnet's own read buffer, uncopied, unless it has left earlier
// bytes unconsumed. Each connection collects what is written to it and sends it in one
// system call at the end of the iteration. Once 2 KiB are buffered it sends them
// earlier, so that the peer can start before the iteration ends. A connection that gnet
// closes inside another call is only marked there; the handler hears of it in the
// loop's closing phase.
//
// net.Dialer connects, on a goroutine that lives as long as the attempt, because gnet
// blocks while it connects. The loop ends only after each attempt has reported.
//
// # Connections that peers open
//
// gnet's own acceptor ends the engine when descriptors run out. So the owner of a net.Listener accepts, and Enroll
// gives the connection to the loop. It differs from a dialed one in how it writes. gnet closes a connection at once
// when the peer stops sending, and drops the bytes that the socket has not taken. An accepted connection therefore
// writes to the socket itself. At the peer's FIN it keeps a copy of gnet's descriptor, if its handler wants to go on
// answering. A full socket is tried again after 1 to 128 ms, because gnet polls sockets only for its own buffer. The
// same timer looks for the reset with which a closed peer answers our answers.
//
// # What gnet does not let us offer
//
//   - No half-close: gnet closes the connection at once when the peer sends FIN. The
//     handler gets the data before it, then OnClose(io.EOF). The iteration that has the
//     data completes before the connection closes. Answers made in it are sent, also by
//     deferred and posted work. A connection that was dialed cannot send answers made in a later
//     iteration. One that was accepted can: see below.
//   - No read-stop: the connection buffers unconsumed bytes, up to UnreadMaxBytes.
//   - No completion per write: only a reply shows that the peer has read. Unsent
//     returns the number of bytes that still wait.
//   - No logger per reactor: gnet's logger is global to the process, and the reactor
//     started last has it.
//
// docs/glossary.md explains the words that this package shares with others.
package reactor
