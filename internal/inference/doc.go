// Package inference writes and reads the bodies of the Open Inference Protocol over HTTP, with Triton's binary extension:
//
//	Value ──Append──▶ elements of a Part ──AppendRequest──▶ JSON [+ binary data of all parts]
//	JSON [+ binary data] ──ReadAnswer──▶ Answer: the outputs, each with its elements
//
// It knows tensors and no rows: package builtin makes the one of the other. Nothing that a server sends makes it panic, and
// an answer that does not fit what was asked is an error.
package inference
