// Package httpfront, which follows the engine's needs, serves requests over HTTP/1.1 and JSON. It is a thin front of
// package serve: a body is a request as on stdin, and an answer has the bytes that stdin prints, without the line end.
//
//	client ──▶ connection: one goroutine ─────────────────▶ fasthttp: bytes to a request
//	                                                            │
//	               head (framing, headers) ◀────────────────────┘
//	               route, caller, timeout, body
//	               serve.Service.Ask ──▶ the loop runs the plan
//	               waits                     │
//	               encodes  ◀────────────────┘ done
//	client ◀────── writes
//
// # Files
//
// front.go accepts, drains and closes. conn.go has the deadlines of a connection. head.go checks what fasthttp
// lets pass. routes.go has the table of endpoints; openapi.go describes that table. rank.go and batch.go are the
// endpoints, and handle.go is the way to them. exchange.go is one request on its way, body.go reads its body, answer.go writes.
//
// # Goroutines
//
// fasthttp gives each connection one goroutine, and that goroutine waits while the loop works. A batch has a second one, which
// reads while the first writes. Nothing else runs: Close leaves no goroutine behind but the one that keeps fasthttp's Date.
//
// fasthttp cannot tell that a client has gone while a request runs: nobody reads the socket then. The request ends by itself
// or by its deadline, and its answer is dropped.
package httpfront
