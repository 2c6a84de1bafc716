// Package fileio has the ways in which content enters and leaves the process: Read and ReadPath take in a file that the program
// starts with, whole and bounded in size; Replace writes one at once; and a Queue or a Writer lets reports of the work
// leave (lines of the log, traces, captures) without holding up the work. Functions are for any goroutine.
//
//	any goroutine ── Add ───▶ Queue: bounded; it drops what is too much, and counts it ── one goroutine ──▶ handle
//	slog, Fprintf ── Write ─▶ Writer: a Queue of bytes ──▶ Checked: counts errors ──▶ stderr, a file, a pipe
//
// Whoever reads stderr or a pipe may stop reading. The write that waits for the reader then holds up the goroutine of the queue and nothing
// else. At the end of the process Close gives that goroutine some time, and leaves it behind.
package fileio
