// Package request, which follows the engine's needs, is the border of the engine. It
// frames a byte stream into JSON documents, checks one document into a [Parsed] request,
// and encodes one answer as a line of JSON. Its only I/O is reading from the io.Reader
// of a Stream. It knows neither plans nor engines.
//
//	io.Reader ─▶ Stream.Next ─▶ one document ─▶ Parse ─▶ Parsed ─▶ (engine) ─▶ Encoder.AppendResponse ─▶ one line
//	                 │                            │                    │
//	                 └──── *Error ◀───────────────┘                 failure
//	                          └────────────▶ AppendFailure ◀───────────┘
//
// A document may span lines ([NewStream]), or each line is a document ([NewLineStream]).
//
// Every input gets an answer: each framing or checking fault is an [*Error] that
// answers for its document, and the stream goes on after it. [Context] and [Override] check the
// values of a request that is not JSON.
package request
