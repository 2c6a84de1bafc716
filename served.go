package rankd

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/served"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/scheduler"
)

// openServed returns the log of what is served; nil: there is none.
func (e *Engine) openServed() (*served.Log, error) {
	o := &e.options
	if o.Served == nil {
		return nil, nil
	}
	c := served.Config{To: o.Served, Users: o.ServedUsers, Nodes: completenessOf, Report: e.reportServed}
	if o.ServedUserKeys != "" {
		var err error
		if c.Keys, err = served.ReadKeys(o.ServedUserKeys); err != nil {
			return nil, err
		}
	}
	return served.New(c), nil
}

func (e *Engine) reportServed(err error) bool {
	if err == nil {
		return e.lines.Put(slog.LevelInfo, "lines of what was served are written again", func() []slog.Attr { return nil })
	}
	return e.lines.Put(slog.LevelError, "lines of what was served are lost", func() []slog.Attr { return []slog.Attr{slog.Any("error", err)} })
}

// servedPatience is how long Close waits for Options.Served.
const servedPatience = time.Second

// closeServed writes the lines that wait.
func (e *Engine) closeServed() {
	if e.served == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), servedPatience, errors.New("the log of what was served takes too long to write"))
	defer cancel()
	_ = e.served.Close(ctx) // It has reported and counted what it lost.
}

// ServedLines says what became of the answers that were to have a line in the log of what was served. A copy; any goroutine.
type ServedLines = served.Counts

// ServedLines counts lines so far. It never waits.
func (e *Engine) ServedLines() ServedLines {
	if e.served == nil {
		return ServedLines{}
	}
	return e.served.Counts()
}

// serve begins the line of a request that runs graph, if it is to have one.
func (c *call) serve(r *Request, graph *plan.Graph) {
	log := c.engine.served
	if log == nil || graph == nil || !log.Wants(r) {
		return
	}
	line := log.Record()
	line.UserID, line.UserIDText, line.Traffic, line.At = r.UserID, r.UserIDText, r.Traffic, c.date
	c.served, c.Served = line, &line.Served
}

// fill completes the line of a request with its answer.
func (c *call) fill(a *Answer, result *scheduler.Result) {
	line := c.served
	if line == nil {
		return
	}
	a.id = request.NewIDBits()
	line.ID, line.RequestID, line.Elapsed, line.Delay, line.Result = a.id, c.RequestID, a.Elapsed, result.QueueDelay, result
	line.Generation, line.Graph, line.Alias, line.Side = c.generation, c.Graph, c.alias, c.side
}

// unserved takes back the line of a request that has no answer.
func (c *call) unserved() {
	if c.served != nil {
		c.engine.served.Drop(c.served)
		c.served, c.Served = nil, nil
	}
}
