package cmdline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
)

// Logger returns a logger that writes to w as the program writes to stderr: one line
// "rankd: message: value: value", with a stack on lines of its own.
func Logger(w io.Writer) *slog.Logger { return slog.New(stderrHandler{w}) }

// stderrHandler needs neither attributes of a logger nor groups. Any goroutine, if w is.
type stderrHandler struct{ w io.Writer }

func (stderrHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h stderrHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h stderrHandler) WithGroup(string) slog.Handler          { return h }

func (h stderrHandler) Handle(_ context.Context, r slog.Record) error {
	var line, stack bytes.Buffer
	fmt.Fprintf(&line, "rankd: %s", r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "stack" {
			stack.WriteString(a.Value.String())
		} else {
			fmt.Fprintf(&line, ": %v", a.Value)
		}
		return true
	})
	line.WriteByte('\n')
	_, err := h.w.Write(append(line.Bytes(), stack.Bytes()...))
	return err
}
