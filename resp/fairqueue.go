package resp

import "github.com/rankd/rankd/internal/list"

// A Flow is the unit of fair queueing: all calls of one request have the same Flow, and share its turns. The zero value
// is ready. Loop only.
type Flow struct {
	queues *flowQueue // one in each fair queue where calls of the flow wait
	first  *queue     // of the client that it called first; nil: none
	large  bool       // it has had a large call there

	Commands   uint32 // that its calls have got replies to
	ReplyBytes uint64 // of these replies
}

// Renew prepares the Flow for another request. Calls that the former request has left behind keep their places.
func (f *Flow) Renew() { f.first, f.large, f.Commands, f.ReplyBytes = nil, false, 0, 0 }

// A flowQueue holds the waiting calls of one flow. A call without a flow has a queue of its own.
type flowQueue struct {
	flow  *Flow
	fair  *fairQueue
	next  *flowQueue // of the same flow, in another fair queue
	calls list.List[Call]
	spent bulk                 // in this turn
	place list.Link[flowQueue] // in fair.list
}

// A fairQueue is deficit round robin over the flows whose calls wait to be sent. The first flow sends until it has spent
// the quantum, and then goes to the end: each request gets as much as any other, however much it asks for. Requests that
// need less than a quantum are served first come, first served. Loop only.
type fairQueue struct {
	list    list.List[flowQueue]
	quantum bulk       // zero: one call or part
	calls   int        // of all flows
	free    *flowQueue // linked by next; at most flowQueuesKept
	freeLen int
}

// flowQueuesKept bounds the flow queues kept for reuse.
const flowQueuesKept = 1024

// push adds a call behind the others of its flow.
func (q *fairQueue) push(c *Call) {
	fq := q.of(c.Flow)
	if fq == nil {
		fq = q.take()
		if fq.flow = c.Flow; fq.flow != nil {
			fq.next, fq.flow.queues = fq.flow.queues, fq
		}
		q.list.Push(fq, &fq.place)
	}
	c.waitsIn = fq
	fq.calls.Push(c, &c.queued)
	q.calls++
}

// of returns the queue of a flow, or nil.
func (q *fairQueue) of(f *Flow) *flowQueue {
	if f == nil {
		return nil
	}
	fq := f.queues
	for fq != nil && fq.fair != q {
		fq = fq.next
	}
	return fq
}

// leaveQueue takes a call out of its flow's queue, and an empty flow queue out of the fair queue.
func (c *Call) leaveQueue() {
	fq := c.waitsIn
	c.waitsIn = nil
	fq.calls.Remove(&c.queued)
	q := fq.fair
	q.calls--
	if fq.calls.Len() > 0 {
		return
	}
	q.list.Remove(&fq.place)
	if f := fq.flow; f != nil {
		at := &f.queues
		for *at != fq {
			at = &(*at).next
		}
		*at = fq.next
	}
	*fq = flowQueue{}
	if q.freeLen < flowQueuesKept {
		fq.next, q.free = q.free, fq
		q.freeLen++
	}
}

// spend counts what a flow sends. A spent quantum ends the flow's turn: the next flow goes first, and within this flow its
// next call does.
func (fq *flowQueue) spend(b bulk) {
	q := fq.fair
	if fq.spent.add(b); fq.spent.commands < q.quantum.commands && fq.spent.bytes < q.quantum.bytes {
		return
	}
	fq.spent = bulk{}
	if fq.calls.Len() > 1 {
		c := fq.calls.First()
		fq.calls.Remove(&c.queued)
		fq.calls.Push(c, &c.queued)
	}
	if q.list.Len() > 1 {
		q.list.Remove(&fq.place)
		q.list.Push(fq, &fq.place)
	}
}

func (q *fairQueue) take() *flowQueue {
	fq := q.free
	if fq == nil {
		fq = new(flowQueue)
	} else {
		q.free, fq.next = fq.next, nil
		q.freeLen--
	}
	fq.fair = q
	return fq
}
