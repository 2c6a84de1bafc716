// Package httpfront, which is not covered by the compatibility promise, serves requests over HTTP/1.1 and
// JSON. It is a codec of package session: a body is a request as on stdin, and an answer has the bytes that
// stdin prints, without the line end.
//
//	bytes ──▶ session ──▶ codec.Begin: head ──▶ route, host, caller, timeout ──▶ body, or lines ──▶ serve.Service.Ask
//	                                                                                                   │
//	bytes ◀── session, in order ◀── codec.Encode: status, headers, JSON ◀── the loop runs the plan ◀───┘
//
// # Files
//
// codec.go takes a request through its phases. head.go reads heads, and body.go finds the end of bodies, both by the
// grammar of RFC 9112. batch.go runs batches, and rank.go has the lists. answer.go writes answers. routes.go has the
// table of endpoints; openapi.json describes that table, and a test writes it. front.go puts everything together.
//
// # Goroutines
//
// No connection and no request has a goroutine of its own: everything runs on the loop of the sessions. TLS and
// answers of thousands of rows are the exceptions, as package session says.
package httpfront
