// Package resp, which is not covered by the compatibility promise, speaks RESP, the protocol of Redis: it
// encodes batches of commands, decodes their replies without copying, and has a client for the loop, which
// never blocks. It uses RESP2. Only a Tracker, which learns of changed keys from a server, has a connection
// of its own with RESP3. Package resp/blocking has a client for ordinary goroutines, built from the same
// parts.
//
//	Batch ──▶ Client.Do ──▶ queue ──▶ outbox ──Write──▶ transport.Conn ──▶ server
//	                                                                        │
//	            inflight FIFOs: flights, and the parts of calls in them     │
//	                                    ▼                                   ▼
//	Call.Done ◀──Replies── part at the front ◀── Decoder ◀──OnData── bytes as read
//
// A Call is a batch of commands that somebody asks for; a part is a span of its commands that leaves in one flight. A
// client has three stages. The queue decides what leaves next: calls wait in a fair queue by request (Flow), and
// large ones leave room for small ones. An outbox gathers what leaves on a connection, and finds equal reads, so a
// part may share commands with others. The wire (conn, flight, deliver) carries flights and hands replies to calls.
// The pump moves commands through the stages once an iteration of the loop.
//
// Code that answers a command without a server comes before the queue. Code that sends a command again, to another
// server, comes where the wire delivers the reply.
//
// Replies carry no number: the server answers in the order of the commands, so the
// n-th reply belongs to the n-th command sent on that connection and to nothing
// else. Everything here serves that one invariant. A Call that times out or is
// cancelled leaves its parts in the FIFO, so that its replies, when they come, find
// their place and are dropped there. A connection whose bytes make no sense, or on
// which a reply arrives that nobody asked for, is closed: a stream once out of step
// stays so. And a command that may have reached a server is never sent again.
//
// A reply is a view: a flat list of values in preorder (the tape) with offsets into
// the connection's read buffer. It is valid until the callback that received it returns.
//
// docs/glossary.md explains the words that this package shares with others.
package resp
