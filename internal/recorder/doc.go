// Package recorder makes records of requests (package record), tapes of records, and compares two records of one
// request. docs/record.md has the whole.
//
//	Capture of a run ── Recorder: a goroutine beside the requests ──▶ record.Request ──▶ Sink
//	record.Request ── Tapes ──▶ a Capture that plays ──▶ record.Request ── Compare ──▶ Difference
package recorder
