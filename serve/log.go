package serve

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/serve/access"
)

// line is what a stranger has caused: a request that failed, or else anything. Immutable.
type line struct {
	failure
	level   slog.Level
	message string // empty: the request failed
	attrs   []slog.Attr
	silent  int // lines before it that were left out
}

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

// lineQueueMax bounds the lines that wait for the log to be written.
const lineQueueMax = 64

// boundedLog writes the lines that strangers can cause, most of them of failed requests, but only so many a second. The
// lines go through a queue: a logger may wait for its reader, but the loop must not. Any goroutine.
type boundedLog struct {
	limiter *rate.Limiter
	clock   clock.Clock
	dropped prometheus.Counter
	lines   *fileio.Queue[line]

	mu     sync.Mutex
	silent int // lines left out since the latest line; guarded by mu
}

func newBoundedLog(logger *slog.Logger, perSecond int, c clock.Clock, dropped prometheus.Counter) *boundedLog {
	if perSecond <= 0 {
		perSecond = defaultLogPerSecond
	}
	return &boundedLog{
		limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond), clock: c, dropped: dropped,
		lines: fileio.NewQueue(lineQueueMax, func(l line) { l.write(logger) }),
	}
}

// add writes the line of a failure, unless there are too many.
func (l *boundedLog) add(f failure) { l.put(line{failure: f}) }

func (l *boundedLog) put(one line) {
	allowed := l.limiter.AllowN(time.Unix(0, int64(l.clock.Now())), 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if allowed && l.lines.Add(1, func() line { one.silent = l.silent; return one }) {
		l.silent = 0
		return
	}
	l.silent++
	l.dropped.Inc()
}

// write writes l.
func (l *line) write(logger *slog.Logger) {
	level, message, attrs := l.level, l.message, l.attrs
	if message == "" {
		level, message, attrs = l.err.Class.Level(), "request failed", l.failure.attrs()
	}
	if l.silent > 0 {
		attrs = append(attrs, slog.Int("unlogged", l.silent))
	}
	logger.LogAttrs(context.Background(), level, message, attrs...)
}

// attrs returns what the line of a failure says.
func (f *failure) attrs() []slog.Attr {
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
