// Package fileio moves content into and out of the process. Read and ReadPath read a whole file, bounded in size,
// when the program starts. Replace writes a file at once. A Sorter sorts more than fits into memory. A Queue or a Writer sends reports of the work (lines of the
// log, traces, captures) without holding up the work. Functions are for any goroutine.
//
//	any goroutine ── Add ───▶ Queue: bounded; it drops what is too much, and counts it ── one goroutine ──▶ handle
//	strangers ────── Put ───▶ Lines: so many a second, through a Queue ──▶ slog
//	slog, Fprintf ── Write ─▶ Writer: a Queue of bytes ──▶ Checked: counts errors ──▶ stderr, a file, a pipe
//
// The reader of stderr or of a pipe may stop reading. A write that waits for the reader then blocks only the
// goroutine of the queue. At the end of the process, Close gives that goroutine some time, and then leaves it behind.
package fileio
