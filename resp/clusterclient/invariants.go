package clusterclient

import "fmt"

// CheckInvariants compares the client's lists and counters with each other, and those of its nodes, as that of a
// resp.Client does. Simulations and tests call it between two callbacks. Loop only.
func (c *Client) CheckInvariants() error {
	mapless, retrying := 0, 0
	for o := c.underWay.First(); o != nil; o = o.place.Next() {
		if err := o.checkInvariants(); err != nil {
			return err
		}
		if o.mapless {
			mapless++
		}
		if len(o.again) > 0 {
			retrying++
		}
	}
	if mapless != c.mapless || retrying != c.retrying {
		return fmt.Errorf("clusterclient: %d calls wait for the map and %d are sent again, counted %d and %d", mapless, retrying, c.mapless, c.retrying)
	}
	for o := c.settled.First(); o != nil; o = o.place.Next() {
		if !o.isSettled || c.calls[o.call] != o || !c.deferred {
			return fmt.Errorf("clusterclient: a settled call is not to be delivered")
		}
	}
	if n := c.underWay.Len() + c.settled.Len(); n != len(c.calls) {
		return fmt.Errorf("clusterclient: %d calls, of which the lists have %d", len(c.calls), n)
	}
	for number, node := range c.nodes {
		if node == nil {
			continue
		}
		if err := node.CheckInvariants(); err != nil {
			return fmt.Errorf("node %s: %w", c.state.Addr(number), err)
		}
	}
	return nil
}

// checkInvariants checks that each command without a reply is under way, waits to be sent again, or waits for the map.
func (o *operation) checkInvariants() error {
	commands := len(o.again)
	for _, l := range o.legs {
		if l.op != o || !l.left {
			return fmt.Errorf("clusterclient: a leg has not left, or belongs to another call")
		}
		for _, k := range l.commands {
			if k != asking {
				commands++
			}
		}
	}
	if o.mapless {
		commands += o.call.Batch.Len()
	}
	if commands != o.missing || o.isSettled || o.client.calls[o.call] != o {
		return fmt.Errorf("clusterclient: %d commands of a call lack their reply, and %d are under way, settled: %v", o.missing, commands, o.isSettled)
	}
	return nil
}
