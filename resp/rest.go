package resp

import (
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/loop/clock"
)

// A rest has large calls leave time to others. Redis runs one command at a time. Parts that leave as soon as those before
// are answered take all the time that small calls do not take, so that these find a busy server and
// queue up. So large calls send one burst of parts and wait for the replies. The next burst leaves as
// soon as no other call is under way. If others always are, it leaves after a rest. Loop only.
type rest struct {
	calls int         // under way that rest
	until clock.Time  // no burst begins before, unless no other call is under way
	timer *loop.Timer // fires then, if a burst waits for it
	burst uint64      // the iteration in which the last part was gathered
	asked uint64      // calls that Do had accepted by then
	alone bool        // nobody else has asked since the burst before
}

// restFactor is how much longer than the burst before a rest lasts.
const restFactor = 2

// learn looks at the replies to a large call, and has it rest if they are long or many.
func (c *Client) learn(call *Call) {
	n := call.Batch.Len()
	if call.rests || n <= c.opts.wholeCommands() && n*call.replyBytes() <= shortBytes {
		return
	}
	call.rests = true
	c.rest.calls++
}

// mayBurst reports whether calls that rest may send now. Otherwise the timer or an answer has them try again.
func (c *Client) mayBurst() bool {
	r := &c.rest
	if r.calls == 0 || r.burst == c.loop.Iteration() {
		return r.calls > 0 // The burst goes on as long as there is room.
	}
	others := c.underWay.len - r.calls
	nobodyElse := others == 0 && r.asked == c.stats.Batches
	if c.bulk.commands > 0 {
		r.alone = r.alone && nobodyElse
		return r.alone
	}
	r.alone = nobodyElse
	switch {
	case others == 0 || r.until <= c.loop.Now():
		return true
	case !r.timer.Active() || r.timer.Due() != r.until:
		_ = r.timer.StartAt(r.until) // A loop that stops refuses. The owner has closed the client before.
	}
	return false
}

// hasRoom reports whether a part fits beside those of other calls that rest. If others ask, too, there is room for one
// part of long replies, or for two of short ones, which take Redis some 0.1 ms.
func (c *Client) hasRoom(b bulk) bool {
	room := bulk{c.opts.bulkCommands(), bulkBytes}
	if !c.rest.alone {
		room = bulk{max(1, room.commands/4), partBytes}
	}
	return c.bulk.commands == 0 || c.bulk.commands+b.commands <= room.commands && c.bulk.bytes+b.bytes <= room.bytes
}

// sent notes that a part of a call was gathered that rests.
func (r *rest) sent(c *Client) { r.burst, r.asked = c.loop.Iteration(), c.stats.Batches }

// flightAnswered gives back the room of a flight's parts of large calls.
func (c *Client) flightAnswered(f flight) {
	if f.bulk.commands == 0 {
		return
	}
	if c.bulk.sub(f.bulk); c.bulk.commands == 0 {
		now := c.loop.Clock().Now() // Reading the replies has taken time, too.
		c.rest.until = now.Add(restFactor * now.Sub(f.sentAt))
	}
}
