// Package request is the boundary of the engine. It splits a byte stream into JSON documents, checks a
// document and makes it a [Request], and encodes an answer as a line of JSON. Its only I/O is reading from
// the io.Reader of a Stream. It does not run requests.
//
//	io.Reader ─▶ Stream.Next ─▶ one document ─▶ Parse ─▶ Request ─▶ (engine) ─▶ Encoder.AppendResponse ─▶ one line
//	                 │                            │                    │
//	                 └──── *Error ◀───────────────┘                 failure
//	                          └────────────▶ AppendFailure ◀───────────┘
//
// A document may span lines ([NewStream]), or each line is a document ([NewLineStream]).
//
// Every input gets an answer: each framing or checking fault is an [*Error] that answers for its document, and the
// stream goes on after it. For a request that a program fills in, [Check] and [Values] do what Parse does for a
// document.
package request
