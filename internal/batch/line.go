package batch

import (
	"context"
	"sync"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/request"
)

// A Line moves requests to an engine, and outcomes back in the order in which the requests came.
//
// The number of entries bounds it. A request takes an entry before it is read and gives the entry
// back once its outcome is written. A slow request therefore holds up reading instead of
// letting answers pile up behind it. One goroutine calls Read, and another one Next and Free.
type Line struct {
	engine *rankd.Engine
	free   chan *Entry // not in use
	made   int         // entries so far; of the goroutine that reads
	line   chan *Entry // in use, in input order; has room for all

	mu      sync.Mutex
	stopped bool // no entry may join the line any more; guarded by mu
}

// An Entry holds one request on its way. It belongs to the reader until it joins the line, and
// then to the writer; the engine sets Answer or Err in between. A free one is empty, since an answer may have millions of rows.
type Entry struct {
	Request rankd.Request
	Answer  *rankd.Answer
	Err     error  // of a request that failed, or that the reader has refused
	Input   []byte // what the reader wants to have again with the outcome

	done   chan struct{}              // one value per request: the outcome is there
	finish func(*rankd.Answer, error) // made once per entry, not per request
}

// NewLine returns a line on which so many requests run at a time.
func NewLine(e *rankd.Engine, inFlight int) *Line {
	l := &Line{engine: e, free: make(chan *Entry, inFlight), line: make(chan *Entry, inFlight)}
	return l
}

// entry returns a free entry. It makes one if none is free and there may be more, so that memory follows the requests in
// flight. Otherwise it waits, or returns nil.
func (l *Line) entry(wait bool) *Entry {
	select {
	case p := <-l.free:
		return p
	default:
	}
	switch {
	case l.made < cap(l.free):
		l.made++
		p := &Entry{done: make(chan struct{}, 1)}
		p.finish = func(a *rankd.Answer, err error) {
			p.Answer, p.Err = a, err
			p.done <- struct{}{} // has room: one outcome per request
		}
		return p
	case wait:
		return <-l.free
	}
	return nil
}

// Read calls next to fill in one entry after the other. It starts the request of each entry without an Err. It returns when next returns false,
// with or without a last entry that has joined, or once the line is stopped.
func (l *Line) Read(next func(*Entry) (join, more bool)) {
	defer close(l.line)
	for {
		p := l.entry(true)
		join, more := next(p)
		if !join || !l.Join(p) || !more {
			return
		}
	}
}

// Take returns a free entry, or nil. It is for a caller that reads and writes on one goroutine, without Read: at nil it calls Next.
func (l *Line) Take() *Entry {
	return l.entry(false)
}

// Waiting returns how many entries are in line. Only the goroutine that calls Next may call it.
func (l *Line) Waiting() int { return len(l.line) }

// Join puts p at the end of the line and starts its request, unless it has an Err. If the line is stopped,
// it does neither and reports false. Only the goroutine that got p from Read or Take may call it.
func (l *Line) Join(p *Entry) bool {
	l.mu.Lock()
	stopped := l.stopped
	if !stopped {
		l.line <- p
	}
	l.mu.Unlock()
	switch {
	case stopped:
		return false
	case p.Err != nil:
		p.done <- struct{}{}
	default:
		l.engine.Submit(context.Background(), p.Request, p.finish)
	}
	return true
}

// Stop refuses further entries. Those in line still get their outcomes. Any goroutine.
func (l *Line) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
}

// Next returns the first entry in line once its outcome is there, or nil at the
// end: once Read has returned, or ctx has ended and the line is empty. It calls idle before it waits.
func (l *Line) Next(ctx context.Context, idle func()) *Entry {
	var p *Entry
	select {
	case p = <-l.line:
	default:
		idle()
		select {
		case p = <-l.line:
		case <-ctx.Done():
			l.Stop()
			select {
			case p = <-l.line:
			default: // empty, and nothing joins any more
			}
		}
	}
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
	default:
		idle()
		<-p.done
	}
	return p
}

// Parse returns the request of a user's document, with the user as its id unless it has one.
func Parse(e *rankd.Engine, doc []byte) (rankd.Request, error) {
	const none = "\x00" // No document can say so.
	q, err := e.Intake().Parse(doc, request.Given{RequestID: none})
	if q.ID == none {
		q.ID = userOf(&q)
	}
	return q, err
}

// userOf returns the user of a request as a text.
func userOf(q *rankd.Request) string { return string(request.AppendUser(nil, q)) }

// Empty forgets the request of an entry and its outcome.
func (p *Entry) Empty() { *p = Entry{done: p.done, finish: p.finish} }

// Free gives back an empty entry for another request.
func (l *Line) Free(p *Entry) { l.free <- p }
