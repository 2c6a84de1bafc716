package serve

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/serve/access"
)

// failure is a request that failed, for the log. Immutable.
type failure struct {
	front  Front
	err    *rankd.Error
	plan   string         // of the library; empty: none
	caller *access.Caller // nil: unknown
	trace  traceID
}

// defaultLogPerSecond is how many lines a second the log gets unless told otherwise.
const defaultLogPerSecond = 10

// newLines returns the lines that strangers can cause, most of them of failed requests.
func newLines(logger *slog.Logger, perSecond int, c clock.Clock, dropped prometheus.Counter) *fileio.Lines {
	if perSecond <= 0 {
		perSecond = defaultLogPerSecond
	}
	return fileio.NewLines(logger, perSecond, func() time.Time { return time.Unix(0, int64(c.Now())) }, dropped.Inc)
}

// logFailure writes the line of a failure, unless there are too many.
func (s *Service) logFailure(f failure) { s.lines.Put(f.err.Class.Level(), "request failed", f.attrs) }

// attrs returns what the line of a failure says.
func (f failure) attrs() []slog.Attr {
	attrs := make([]slog.Attr, 0, 12)
	add := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, errtext.Cut(value)))
		}
	}
	add("front", f.front.String())
	add("class", f.err.Class.Label())
	add("request_id", f.err.RequestID)
	add("trace_id", f.trace.String())
	if f.caller != nil {
		add("caller", f.caller.Name())
	}
	add("plan", f.plan)
	if v := f.err.Version(); v.Plan != "" {
		add("alias", v.Alias)
		add("side", v.Side)
		add("plan_digest", v.Digest)
		attrs = append(attrs, slog.Uint64("generation", v.Generation))
	}
	add("error", f.err.Text)
	add("detail", f.err.Detail)
	add("node", f.err.Node)
	add("op", f.err.Op)
	if f.err.Elapsed > 0 {
		attrs = append(attrs, slog.Duration("elapsed", f.err.Elapsed))
	}
	return attrs
}

// traceID is the trace id of a traceparent, as text. The zero value is none.
type traceID [32]byte

// set takes the trace id out of a traceparent of W3C Trace Context, "00-" + 32 digits + "-" + 16 digits + "-" + 2 digits. Anything
// else leaves none, since it goes to the log.
func (t *traceID) set(parent []byte) {
	*t = traceID{}
	if len(parent) < 55 || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' {
		return
	}
	for _, c := range parent[3:35] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return
		}
	}
	copy(t[:], parent[3:35])
}

// String returns the id, "" if there is none.
func (t *traceID) String() string {
	if t[0] == 0 {
		return ""
	}
	return string(t[:])
}
