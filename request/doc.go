// Package request, which follows the engine's needs, is the border of the engine. It
// frames a byte stream into JSON documents, checks one document into a [Request],
// and encodes one answer as a line of JSON. Its only I/O is reading from the io.Reader
// of a Stream. It runs nothing.
//
//	io.Reader ─▶ Stream.Next ─▶ one document ─▶ Parse ─▶ Request ─▶ (engine) ─▶ Encoder.AppendResponse ─▶ one line
//	                 │                            │                    │
//	                 └──── *Error ◀───────────────┘                 failure
//	                          └────────────▶ AppendFailure ◀───────────┘
//
// A document may span lines ([NewStream]), or each line is a document ([NewLineStream]).
//
// Every input gets an answer: each framing or checking fault is an [*Error] that
// answers for its document, and the stream goes on after it. [Check] and [Values] do for a request that a
// program fills in what Parse does for a document.
package request
