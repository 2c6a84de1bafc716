// Package respfront, which is not covered by the compatibility promise, answers requests in the protocol of
// Redis, so that any client of Redis is a client of rankd.
//
//	bytes ──▶ session ──▶ codec: reader, redcon ──▶ command ──▶ session.Request, Ask ──▶ engine
//	socket ◀── session ◀── codec: bulk string or error ◀───────────────────────────────────┘
//
// Package session has the connections, their bounds, the order of their replies, TLS and draining. A codec finds the
// commands in the bytes of one connection, does them, and gives each reply its form. It keeps the state of the
// connection: the login, the protocol, the name, and the RANK.MANY under way. A command is a row of one table.
package respfront
