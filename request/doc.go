// Package request is the border of the engine: it frames a byte stream into
// JSON documents, checks one document into a [Request], and encodes one answer
// as a line of JSON. It does no I/O beyond the reader it is given and knows
// neither plans nor engines.
//
//	io.Reader ─▶ Stream.Next ─▶ one document ─▶ Parse ─▶ Request ─▶ (engine) ─▶ Encoder.AppendResponse ─▶ one line
//	                 │                            │                     │
//	                 └──── *Error ◀───────────────┘                  failure
//	                          └─────────────▶ AppendError ◀─────────────┘
//
// A document may span lines ([NewStream]), or each line is one ([NewLineStream]).
//
// Every input gets an answer: each framing or checking fault is an [*Error]
// that answers for the document it was found in, and the stream goes on after it.
package request
