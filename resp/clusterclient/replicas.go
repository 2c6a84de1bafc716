package clusterclient

import (
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
)

// A probe asks a node how far it follows its master, and measures the round trip. Loop only.
type probe struct {
	resp.Call
	client   *Client
	node     int
	underWay bool
	left     clock.Time // when the question left; 0: it has not
}

// probe asks the nodes that are due. Only a client that reads from replicas has any.
func (c *Client) probe(now clock.Time) {
	if c.opts.ReadFrom == resp.ReadMaster || c.closed {
		return
	}
	for _, number := range c.state.Probe(now) {
		to := c.node(number)
		for number >= len(c.probes) {
			c.probes = append(c.probes, nil)
		}
		p := c.probes[number]
		if p == nil {
			p = &probe{client: c, node: number}
			p.Done, p.Watch = p.answered, p
			p.Batch.Cmd("INFO", "replication")
			c.probes[number] = p
		}
		if p.underWay {
			continue
		}
		p.left, p.Deadline = 0, now.Add(c.opts.ConnectTimeout)
		p.underWay = to.Do(&p.Call) == nil
	}
}

// Sent implements resp.Watch.
func (p *probe) Sent(_, _, _ int, at clock.Time) { p.left = at }

// Replied implements resp.Watch.
func (p *probe) Replied(int, int, int) {}

// answered takes a node's answer.
func (p *probe) answered(call *resp.Call) {
	c := p.client
	p.underWay = false
	r, err := cluster.Replication{}, call.Err
	if err == nil {
		r, err = cluster.ParseReplication(call.Replies.At(0))
	}
	if err != nil {
		if c.state.Unprobed(p.node, err, c.loop.Now()) {
			c.opts.OnDenied(c.state.Addr(p.node), err)
		}
		return
	}
	c.state.Probed(p.node, r, p.left, c.loop.Now())
	if c.state.Suspects() {
		c.schedule(c.state.Due())
	}
}

// missed decides about command k, which a node has not answered.
func (o *operation) missed(l *leg, k int) cluster.Verdict {
	if !o.client.state.IsReplica(l.node) {
		return cluster.Verdict{}
	}
	return o.client.state.Missed(l.node, cluster.Route(o.call.Batch.Span(k, k+1)), l.reached, o.hopsOf(k))
}
