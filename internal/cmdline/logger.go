package cmdline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
)

// Logger returns a logger that writes to w as the program writes to stderr: one line
// "rankd: message: name=value name=value", with a stack on lines of its own. A value that stands alone needs no name.
func Logger(w io.Writer) *slog.Logger { return slog.New(stderrHandler{w}) }

// stderrHandler needs neither attributes of a logger nor groups. Any goroutine, if w is.
type stderrHandler struct{ w io.Writer }

func (stderrHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h stderrHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h stderrHandler) WithGroup(string) slog.Handler          { return h }

func (h stderrHandler) Handle(_ context.Context, r slog.Record) error {
	var line, stack bytes.Buffer
	fmt.Fprintf(&line, "rankd: %s", r.Message)
	var attrs []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		switch text := a.Value.String(); {
		case a.Key == "stack":
			stack.WriteString(text)
		case text != "":
			attrs = append(attrs, a)
		}
		return true
	})
	for i, a := range attrs {
		text := a.Value.String()
		switch {
		case len(attrs) == 1:
			line.WriteString(": " + text)
			continue
		case i == 0:
			line.WriteByte(':')
		}
		if strings.ContainsAny(text, " =\"\n") {
			text = strconv.Quote(text)
		}
		fmt.Fprintf(&line, " %s=%s", a.Key, text)
	}
	line.WriteByte('\n')
	_, err := h.w.Write(append(line.Bytes(), stack.Bytes()...))
	return err
}
