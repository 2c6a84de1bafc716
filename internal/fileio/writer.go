package fileio

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// writerBytes bounds what waits to be written. A reader that keeps up never leaves so much.
const writerBytes = 1 << 20

// A Writer is an io.Writer that never waits: a goroutine writes to the underlying Writer, with one call of Write for each. Any goroutine.
type Writer struct {
	queue *Queue[[]byte]
	to    *Checked
}

// NewWriter returns a Writer to w. Close ends it.
func NewWriter(w io.Writer) *Writer {
	to := NewChecked(w, nil)
	return &Writer{NewQueue(writerBytes, func(p []byte) { _, _ = to.Write(p) }), to}
}

// Write implements io.Writer. It copies p. The error is always nil: Dropped and Failures count what is lost.
func (w *Writer) Write(p []byte) (int, error) {
	w.queue.Add(len(p), func() []byte { return bytes.Clone(p) })
	return len(p), nil
}

// Dropped returns how many calls of Write were dropped, because too much was waiting.
func (w *Writer) Dropped() uint64 { return w.queue.Dropped() }

// Failures returns how many writes to the underlying Writer failed.
func (w *Writer) Failures() uint64 { return w.to.Failures() }

// Close writes what waits, and returns when that is done or ctx has ended. The error is the cause of ctx, or that of the first write that
// failed.
func (w *Writer) Close(ctx context.Context) error {
	if err := w.queue.Close(ctx); err != nil {
		return err
	}
	return w.to.Err()
}

// Checked is an io.Writer of lines that counts errors, and reports when writing begins to fail and when it works
// again. After a partly written line, for example on a full disk, the next line begins on a line of its own. One
// goroutine; any goroutine may call Failures and Err.
type Checked struct {
	to     io.Writer
	report func(error)
	torn   bool // The last line was written in part.

	mu       sync.Mutex
	failing  bool
	failures uint64
	first    error
}

// NewChecked returns a Checked to w. It calls report with the error of the first write that fails, and with nil for the first one after it
// that does not. A nil report is not called.
func NewChecked(w io.Writer, report func(error)) *Checked {
	if report == nil {
		report = func(error) {}
	}
	return &Checked{to: w, report: report}
}

// Write implements io.Writer.
func (c *Checked) Write(p []byte) (n int, err error) {
	if c.torn {
		if _, err = c.to.Write([]byte{'\n'}); err == nil {
			c.torn = false
		}
	}
	if err == nil {
		n, err = c.to.Write(p)
		c.torn = err != nil && n > 0
	}
	if c.settle(err) {
		c.report(err)
	}
	return n, err
}

// settle counts the outcome of a write, and reports whether it differs from the previous one.
func (c *Checked) settle(err error) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failures++
		if c.first == nil {
			c.first = err
		}
	}
	changed = c.failing != (err != nil)
	c.failing = err != nil
	return changed
}

// Failures returns how many writes failed.
func (c *Checked) Failures() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures
}

// Err returns the error of the first write that failed.
func (c *Checked) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}
