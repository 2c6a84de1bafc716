package resp

import (
	"fmt"

	"github.com/rankd/rankd/internal/list"
)

// CheckInvariants compares the client's counters, lists and FIFOs with each other, and says which of its promises is
// broken. Simulations and tests call it between two callbacks. Loop only.
func (c *Client) CheckInvariants() error {
	k := checker{c: c}
	for _, cn := range c.conns {
		k.conn(cn)
	}
	q := &c.queue
	k.that(k.inflight == q.inflight && q.inflight <= c.opts.MaxInflight+k.questions, "the commands in flight are counted wrongly")
	k.that(k.bulk == q.bulk, "the room that paced calls take is counted wrongly")
	k.that(q.bulk.commands <= max(c.opts.bulkCommands(), c.opts.partCommands()), "paced calls take more than their room")
	k.that(k.ready == c.ready, "the connections that are ready are counted wrongly")
	k.calls(&c.underWay, callUnderWay)
	k.calls(&c.settled, callSettled)
	k.that(k.paced == q.paced, "the paced calls are counted wrongly")
	k.fairQueue(&q.whole)
	k.fairQueue(&q.large)
	k.nobodyIsForgotten(q)
	return k.err
}

// A checker gathers what CheckInvariants compares. It keeps the first contradiction.
type checker struct {
	c                  *Client
	err                error
	inflight, ready    int
	paced              int
	questions          int // of redirections
	bulk               bulk
	launched, gathered map[*Call]int // commands in flights and in outboxes; nil: none
}

func (k *checker) that(ok bool, otherwise string) {
	if !ok && k.err == nil {
		k.err = fmt.Errorf("resp: %s; stats %+v", otherwise, k.c.Stats())
	}
}

func (k *checker) conn(cn *conn) {
	o := &cn.outbox
	switch cn.state {
	case connReady:
		k.ready++
		if cn.redirection.question.state == callUnderWay {
			k.questions++
		}
	case connDown, connDialing:
		k.that(cn.flights.len+cn.parts.len+len(o.parts)+o.len == 0, "a connection that is down holds commands")
	}
	parts := 0
	for i := range cn.flights.len {
		f := cn.flights.at(i)
		k.that(f.commands > 0 && (f.answered == 0 || i == 0), "a flight behind the first has answers, or one has no commands")
		k.inflight += f.commands - f.answered
		k.bulk.add(f.bulk)
		end := 0
		for range f.parts {
			p := cn.parts.at(parts)
			parts++
			k.that(int(p.end) <= f.commands, "a part ends behind its flight")
			k.that(i > 0 || int(p.end) > f.answered || end > f.answered, "an answered part is not delivered")
			end = max(end, int(p.end))
			k.part(cn, p, &k.launched)
		}
	}
	k.that(parts == cn.parts.len, "the flights have other parts than their connection")
	k.inflight += o.len
	k.bulk.add(o.bulk)
	for i := range o.parts {
		k.that(o.parts[i].wanted() || o.stale, "an outbox holds what nobody wants, and does not know")
		k.part(cn, &o.parts[i], &k.gathered)
	}
}

func (k *checker) part(cn *conn, p *part, count *map[*Call]int) {
	if p.wanted() {
		if *count == nil {
			*count = map[*Call]int{}
		}
		(*count)[p.call] += p.len()
		k.that(p.call.conn == cn, "a part of a call is on another connection")
	}
}

func (k *checker) calls(l *list.List[Call], state callState) {
	n := 0
	for call := l.First(); call != nil; call = call.place.Next() {
		n++
		if call.paced {
			k.paced++
		}
		k.that(call.state == state, "a call is in another list than it says")
		k.call(call)
	}
	k.that(n == l.Len(), "a list counts its calls wrongly")
}

func (k *checker) call(call *Call) {
	underWay := call.state == callUnderWay
	n, gathered := call.Batch.Len(), int(call.gathered)
	k.that((underWay && gathered < n) == (call.waitsIn != nil), "a call waits and is gathered, or neither")
	if !underWay {
		return
	}
	k.that(gathered <= n, "more commands of a call are gathered than it has")
	k.that(int(call.launched-call.answered) == k.launched[call], "what was sent and not answered is not in flight")
	k.that(int(call.gathered-call.launched) == k.gathered[call], "what was gathered and not sent is not in the outbox")
	k.that((call.conn != nil) == (gathered > 0), "a call has a connection and no commands there, or the reverse")
	if call.conn != nil {
		k.that(call.conn.state == connReady || call.conn.state == connClosing, "a call is on a connection that is down")
	}
	by := k.c.limit(call)
	k.that(by == 0 || k.c.closed || k.c.timer.Active() && k.c.timer.Due() <= by, "the timer fires after a call's time")
}

// fairQueue checks that each flow has one queue there, and that no flow's queue is empty.
func (k *checker) fairQueue(q *fairQueue) {
	n, calls := 0, 0
	for fq := q.list.First(); fq != nil; fq = fq.place.Next() {
		n++
		calls += fq.calls.Len()
		k.that(fq.fair == q && fq.calls.Len() > 0, "a flow's queue is empty or in another fair queue")
		k.that(fq.flow == nil || q.of(fq.flow) == fq, "a flow has two queues")
		for call := fq.calls.First(); call != nil; call = call.queued.Next() {
			k.that(call.waitsIn == fq && call.Flow == fq.flow, "a call waits in the queue of another flow")
		}
	}
	k.that(q.list.Len() == n && q.calls == calls, "a fair queue counts its calls wrongly")
}

// nobodyIsForgotten checks that what waits has a reason, or that the pump is to run.
func (k *checker) nobodyIsForgotten(q *queue) {
	c := k.c
	if k.ready == 0 || c.pumpDeferred {
		return
	}
	if t := q.whole.list.First(); t != nil {
		n := t.calls.First().Batch.Len()
		k.that(q.inflight+n > c.opts.MaxInflight, "a call waits though it fits")
	}
	for t := q.large.list.First(); t != nil; t = t.place.Next() {
		call := t.calls.First()
		mayGo := (call.conn == nil || call.conn.state == connReady) && !c.limit(call).Passed(c.loop.Now())
		k.that(q.inflight > 0 || c.restTimer.Active() || !mayGo, "a large call waits for nobody")
	}
}
