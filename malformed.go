package rankd

import (
	"sync"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/scheduler"
)

// malformedEvery is how often the log tells of the ids that one node of a plan could not read.
const malformedEvery = time.Minute

// malformedMax is the number of nodes from which on a malformedLog forgets what it has told.
const malformedMax = 1024

// malformedLog says which nodes the log need not speak of yet. Any goroutine.
type malformedLog struct {
	mu   sync.Mutex
	next map[malformedNode]clock.Time // when the log may tell of a node again; guarded by mu
}

// malformedNode is a node of a plan, by its name and its id. Immutable.
type malformedNode struct{ plan, node string }

// due reports whether the log tells of a node now.
func (l *malformedLog) due(n malformedNode, now clock.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next, told := l.next[n]; told && now < next {
		return false
	}
	if l.next == nil || len(l.next) >= malformedMax {
		l.next = make(map[malformedNode]clock.Time)
	}
	l.next[n] = now.Add(malformedEvery)
	return true
}

// logMalformed writes a line for each node that could not read ids, at most once in malformedEvery.
func (e *Engine) logMalformed(plan string, result *scheduler.Result) {
	for _, c := range result.Completeness() {
		if m := c.Malformed; m != nil && e.malformed.due(malformedNode{plan, c.Node.ID}, e.clock.Now()) {
			e.options.Logger.Warn("entries are not ids", "plan", plan, "node", c.Node.ID, "op", c.Node.Op, "label", c.Node.Trace,
				"malformed", m.Count, "of", m.Of, "first", m.First, "key", m.Key)
		}
	}
}
