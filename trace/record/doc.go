// Package record has the form of a recorded request: all that its
// answer depended on, and digests of what it computed. docs/record.md says where an engine takes each part, and how a
// replay uses it. It reads and writes files of requests: docs/reference/record-format.md has each byte of them.
//
// A file stands alone: it has its generations, resident rows and replies, each once. Its header says which program made it.
//
//	Add ─▶ Writer: entries ── 256 KiB ─▶ frame: zstd, age, checksum ─▶ io.Writer: one file, or Files of a folder
//	Next ◀─ Reader: each byte is checked, and what it holds is bounded ◀─ frames ◀─ io.ReaderAt
//
// Nothing here waits for a disk to have what was written, apart from what replaces a file. Whoever serves hands requests to a Writer through a
// queue.
package record
