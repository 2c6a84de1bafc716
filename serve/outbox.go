package serve

import (
	"sync"
	"time"

	"github.com/rankd/rankd/internal/list"
)

// DefaultMaxUnsentBytes is the default of Options.MaxUnsentBytes.
const DefaultMaxUnsentBytes = 256 << 20

// OutboxStep is how many bytes a connection may hold without counting them, so that short answers need no lock.
const OutboxStep = 16 << 10

// unsentPatience is how long an answer waits for room before stalled clients are cut off to make room.
const unsentPatience = time.Second

// unsent counts the answers that clients have not taken, over all connections of all fronts: those that wait for
// their turn, and encoded ones. The latter may take half of the bound. Any goroutine.
type unsent struct {
	max      int64
	patience time.Duration

	mu      sync.Mutex        // guards all below, and the Outboxes where they say so
	total   int64             // what all hold
	encoded int64             // of that
	leaving int64             // of the total: of connections that are being cut off
	holders list.List[Outbox] // with bytes, except for those: in the order of moved
	asking  list.List[Outbox] // that wait for room, in order
	timer   *time.Timer
}

// A Sender sends what an Outbox counts. Its methods are called on any goroutine, and must not block.
type Sender interface {
	// Room says that there is room for the answer for which Encode had none. It is called once.
	Room()
	// Cut says that all connections together hold too much, and that this one is the slowest: its client has taken
	// nothing of an answer for a long time, or for longer than any other client.
	Cut()
}

// An Outbox counts the answers of one connection that its client has not taken. Any goroutine, except that only the
// sending goroutine calls Settle, Encode and Close.
type Outbox struct {
	account *unsent
	sender  Sender
	settled int64 // the latest number of Settle; negative: Settle must report again

	// Guarded by account.mu.
	waiting, encoded int64
	asks             int64             // what Encode waits for; 0: nothing
	asked            list.Link[Outbox] // in account.asking
	place            list.Link[Outbox] // in account.holders, unless it holds nothing or is doomed
	moved            time.Time         // when the client last took something, or when there first was something to take
	doomed, closed   bool
	took             bool // doomed, and the client has taken something since
}

// NewOutbox returns the outbox of a connection, which holds nothing yet.
func (s *Service) NewOutbox(sender Sender) *Outbox {
	return &Outbox{account: &s.unsent, sender: sender}
}

// Unsent returns how many bytes of answers clients have not taken.
func (s *Service) Unsent() int64 {
	s.unsent.mu.Lock()
	defer s.unsent.mu.Unlock()
	return s.unsent.total
}

// hold counts an answer of so many bytes that waits for its turn. It reports false, and counts nothing, if more than
// half of the bound would be taken, and the connection has its share already. The client then gets a refusal now,
// instead of being cut off later. All connections that hold something, and one more, have equal shares of the bound.
// A connection below its share may hold an answer longer than a share.
func (o *Outbox) hold(bytes int) (ok bool) {
	u := o.account
	u.do(func() {
		sharers := u.holders.Len() + 1
		if !o.place.In() {
			sharers++
		}
		if ok = u.total-u.leaving+int64(bytes) <= u.max/2 || o.waiting+o.encoded < u.max/int64(sharers); ok {
			o.add(int64(bytes), 0)
		}
	})
	return ok
}

// Hold counts so many bytes of answers that wait for their turn. A negative number takes bytes back.
func (o *Outbox) Hold(bytes int) {
	o.account.do(func() { o.add(int64(bytes), 0) })
}

// Encode asks for room for an answer of so many bytes, whose turn has come. If there is room, the answer counts as
// encoded. Otherwise Encode returns false, and Sender.Room is called once there is room. The caller then encodes the
// answer and calls Settle.
func (o *Outbox) Encode(bytes int) (ok bool) {
	o.settled = -1
	o.account.do(func() {
		if o.closed {
			return
		}
		o.asks = int64(bytes)
		if ok = o.account.asking.Len() == 0 && o.account.fits(o); ok {
			o.grant()
			return
		}
		o.account.asking.Push(o, &o.asked)
		o.account.watch()
	})
	return ok
}

// Settle reports how many encoded bytes have not left; less than OutboxStep counts as none. A smaller number than
// before means that the client has taken some.
func (o *Outbox) Settle(bytes int) {
	now := int64(bytes)
	if now < OutboxStep {
		now = 0
	}
	before := o.settled
	if before >= 0 && max(now-before, before-now) < OutboxStep {
		return
	}
	o.settled = now
	o.account.do(func() {
		if now < before {
			o.move()
		}
		o.add(0, now-o.encoded)
	})
}

// Spared reports whether the client has taken something since Cut was called. The connection then goes on, and another one may be cut off.
func (o *Outbox) Spared() (spared bool) {
	o.account.do(func() {
		if spared = o.doomed && o.took && !o.closed; spared {
			o.doomed = false
			o.account.leaving -= o.waiting + o.encoded
			o.account.list(o)
		}
	})
	return spared
}

// Close gives everything back. Nothing counts any more.
func (o *Outbox) Close() {
	o.account.do(func() {
		o.add(-o.waiting, -o.encoded)
		o.closed = true
		if o.asked.In() {
			o.account.asking.Remove(&o.asked)
		}
	})
}

// do changes the account, and calls the connections that are affected.
func (u *unsent) do(change func()) {
	u.mu.Lock()
	change()
	woken := u.admit()
	cut := u.slowest()
	u.mu.Unlock()
	for _, o := range woken {
		o.sender.Room()
	}
	for _, o := range cut {
		o.sender.Cut()
	}
}

// add counts bytes. The caller holds the lock.
func (o *Outbox) add(waiting, encoded int64) {
	u := o.account
	if o.closed {
		return
	}
	o.waiting += waiting
	o.encoded += encoded
	u.total += waiting + encoded
	u.encoded += encoded
	if o.doomed {
		u.leaving += waiting + encoded
	} else {
		u.list(o)
	}
}

// list puts o among the holders if it holds something. The caller holds the lock.
func (u *unsent) list(o *Outbox) {
	switch holds := o.waiting+o.encoded > 0; {
	case holds && !o.place.In():
		o.moved = time.Now()
		u.holders.Push(o, &o.place)
	case !holds && o.place.In():
		u.holders.Remove(&o.place)
	}
}

// move notes that the client has taken something, or that there is something new to take. The caller holds the lock.
func (o *Outbox) move() {
	o.moved, o.took = time.Now(), true
	if o.place.In() {
		o.account.holders.Remove(&o.place)
		o.account.holders.Push(o, &o.place)
	}
}

// doom makes the connection end. The caller holds the lock.
func (o *Outbox) doom() {
	u := o.account
	o.doomed, o.took = true, false
	u.leaving += o.waiting + o.encoded
	u.holders.Remove(&o.place)
}

// grant counts what Encode has asked for. The caller holds the lock.
func (o *Outbox) grant() {
	asks := o.asks
	o.asks = 0
	o.add(0, asks)
	o.move()
}

// fits reports whether there is room for what o asks. One answer may always be encoded. The caller holds the lock.
func (u *unsent) fits(o *Outbox) bool { return u.encoded == 0 || u.encoded+o.asks <= u.max/2 }

// admit gives room to those who wait for it, while there is some. The caller holds the lock.
func (u *unsent) admit() (woken []*Outbox) {
	for o := u.asking.First(); o != nil && u.fits(o); o = u.asking.First() {
		u.asking.Remove(&o.asked)
		o.grant()
		woken = append(woken, o)
	}
	return woken
}

// slowest returns the connections to cut off so that the others are within the bound. Stalled ones go first. A single
// connection may exceed the bound. The caller holds the lock.
func (u *unsent) slowest() (cut []*Outbox) {
	for u.total-u.leaving > u.max && u.holders.Len() > 1 {
		o := u.stalled()
		if o == nil {
			o = u.holders.First()
		}
		o.doom()
		cut = append(cut, o)
	}
	return cut
}

// stalled returns the connection whose client has taken nothing of an encoded answer for the longest time, if that
// time exceeds unsentPatience; otherwise nil. A connection whose answer waits for room is not stalled: there is
// nothing to take. The caller holds the lock.
func (u *unsent) stalled() *Outbox {
	for o := u.holders.First(); o != nil && time.Since(o.moved) >= u.patience; o = o.place.Next() {
		if o.encoded > 0 {
			return o
		}
	}
	return nil
}

// watch arranges that clients who take nothing are cut off while others wait for room. The caller holds the lock.
func (u *unsent) watch() {
	if u.timer == nil {
		u.timer = time.AfterFunc(u.patience, u.relieve)
	}
}

// relieve cuts off stalled connections until there is room for the first waiting answer.
func (u *unsent) relieve() {
	u.mu.Lock()
	u.timer = nil
	var cut []*Outbox
	if first := u.asking.First(); first != nil {
		u.watch()
		over := u.encoded + first.asks - u.max/2
		for o := u.stalled(); o != nil && over > 0; o = u.stalled() {
			over -= o.encoded
			o.doom()
			cut = append(cut, o)
		}
	}
	u.mu.Unlock()
	for _, o := range cut {
		o.sender.Cut()
	}
}
