// Package served makes the log of what was served: a line of JSON for each answer. docs/served-log.md has the format.
//
// An engine hands a Record to a Log when an answer leaves. A goroutine of the log makes the lines of what waits, and
// writes them together to an io.Writer: Files or a Stream. Nothing that answers waits for it. docs/glossary.md has the words.
package served
