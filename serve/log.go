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

// failure is a request that failed, for the log. Immutable.
type failure struct {
	front  Front
	err    *rankd.Error
	plan   string         // of the library; empty: none
	caller *access.Caller // nil: unknown
	trace  traceID
	silent int // failures before it that have no line
}

// defaultLogPerSecond is how many lines a second the log gets unless told otherwise.
const defaultLogPerSecond = 10

// lineQueueMax bounds the lines that wait for the log to be written.
const lineQueueMax = 64

// failureLog writes a line for each failed request, but only so many a second, because strangers can make requests
// fail. The lines go through a queue: a logger may wait for its reader, but the loop must not. Any goroutine.
type failureLog struct {
	limiter *rate.Limiter
	clock   clock.Clock
	dropped prometheus.Counter
	lines   *fileio.Queue[failure]

	mu     sync.Mutex
	silent int // failures without a line since the latest line; guarded by mu
}

func newFailureLog(logger *slog.Logger, perSecond int, c clock.Clock, dropped prometheus.Counter) *failureLog {
	if perSecond <= 0 {
		perSecond = defaultLogPerSecond
	}
	return &failureLog{
		limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond), clock: c, dropped: dropped,
		lines: fileio.NewQueue(lineQueueMax, func(f failure) { f.log(logger) }),
	}
}

// add logs a failure, unless there are too many.
func (l *failureLog) add(f failure) {
	allowed := l.limiter.AllowN(time.Unix(0, int64(l.clock.Now())), 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if allowed && l.lines.Add(1, func() failure { f.silent = l.silent; return f }) {
		l.silent = 0
		return
	}
	l.silent++
	l.dropped.Inc()
}

// log writes one line.
func (f *failure) log(logger *slog.Logger) {
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
	if f.silent > 0 {
		attrs = append(attrs, slog.Int("unlogged", f.silent))
	}
	logger.LogAttrs(context.Background(), f.err.Class.Level(), "request failed", attrs...)
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
