package resp

import "github.com/rankd/rankd/loop/clock"

// A rest has large calls leave time to others. Redis runs one command at a time. Parts that leave as soon as those before
// are answered take all the time that small calls do not take, so that these find a busy server and
// queue up. If most calls are small, large ones send one burst of parts, wait for its replies, and rest as
// long as these took. The busier the server, the longer is the rest. Loop only.
type rest struct {
	until clock.Time // no burst begins before, if most calls are small
	burst uint64     // the iteration in which the last part was gathered
}

// restFactor is how much longer than the burst before a rest lasts.
const restFactor = 1

// mostlyLarge reports whether at least half of the calls under way are large and have more to send. They
// need not rest then: hardly anybody would gain from it, and everybody would wait.
func (c *Client) mostlyLarge() bool { return c.underWay.len <= 2*c.large.calls }

// largeMaySend reports whether large calls may gather parts now. Otherwise a timer or an answer has them try again.
func (c *Client) largeMaySend() bool {
	switch {
	case c.large.calls == 0:
		return false
	case c.mostlyLarge():
		return true
	case c.bulk.commands > 0:
		return c.rest.burst == c.loop.Iteration()
	case c.loop.Now() < c.rest.until:
		c.schedule(c.rest.until)
		return false
	}
	return true
}

// largeRoom returns how much all large calls together may have in flight. Beside many small ones that is one
// part of long replies, or two of short ones, which take Redis some 0.1 ms.
func (c *Client) largeRoom() bulk {
	if c.mostlyLarge() {
		return bulk{c.opts.bulkCommands(), bulkBytes}
	}
	return bulk{max(1, c.opts.bulkCommands()/4), bulkBytes / 2}
}

// flightAnswered gives back the room of a flight's parts of large calls.
func (c *Client) flightAnswered(f flight) {
	if f.bulk.commands == 0 {
		return
	}
	if c.bulk.sub(f.bulk); c.bulk.commands == 0 {
		now := c.loop.Now()
		c.rest.until = now.Add(restFactor * now.Sub(f.sentAt))
	}
}
