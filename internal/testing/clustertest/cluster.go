// Package clustertest has the slots of a simulated Redis Cluster. The worlds of tests put servers around
// them.
package clustertest

import (
	"fmt"
	"net"
	"strings"

	"github.com/rankd/rankd/resp/cluster"
)

// Spans is the number of spans of slots that have one owner each.
const Spans = 16

// Nobody stands for no node.
const Nobody = -1

// A Cluster says which node has each slot. Nodes have numbers from 0 on. One goroutine at a time.
type Cluster struct {
	Owner  [Spans]int
	Target [Spans]int // who imports the span, of which the owner has half the keys left; Nobody: it stays
	// Addr returns the address of a node, "host:1".
	Addr func(node int) string
	// Replicas returns the replicas of a master. Nil: there are none.
	Replicas func(master int) []int
	// ID returns the id of a node. Nil: "id" and its number.
	ID func(node int) string
}

// New returns a cluster whose spans are dealt out to so many masters.
func New(masters int, addr func(node int) string) Cluster {
	c := Cluster{Addr: addr}
	for i := range c.Owner {
		c.Owner[i], c.Target[i] = i%masters, Nobody
	}
	return c
}

// SpanOf returns the span of a slot.
func SpanOf(slot int) int { return slot * Spans / cluster.Slots }

// Redirect returns what a master answers to a command for a slot, if it redirects the command as Redis does. asked says
// that ASKING came before.
func (c *Cluster) Redirect(master, slot int, asked bool) (reply string, ok bool) {
	span := SpanOf(slot)
	switch owner, target := c.Owner[span], c.Target[span]; {
	case owner != master && (target != master || !asked):
		return c.Moved(slot), true
	case owner == master && target != Nobody && slot%2 == 0:
		return fmt.Sprintf("-ASK %d %s\r\n", slot, c.Addr(target)), true
	}
	return "", false
}

// Moved returns the reply that names the owner of a slot.
func (c *Cluster) Moved(slot int) string {
	return fmt.Sprintf("-MOVED %d %s\r\n", slot, c.Addr(c.Owner[SpanOf(slot)]))
}

// MyID returns the answer of a node to CLUSTER MYID.
func (c *Cluster) MyID(node int) string {
	id := fmt.Sprint("id", node)
	if c.ID != nil {
		id = c.ID(node)
	}
	return fmt.Sprintf("$%d\r\n%s\r\n", len(id), id)
}

// Slots returns the answer to CLUSTER SLOTS. It lacks the spans for which lacks is true; nil: none.
func (c *Cluster) Slots(lacks func(span int) bool) string {
	var out strings.Builder
	spans := 0
	for i, master := range c.Owner {
		if lacks != nil && lacks(i) {
			continue
		}
		spans++
		nodes := []int{master}
		if c.Replicas != nil {
			nodes = append(nodes, c.Replicas(master)...)
		}
		fmt.Fprintf(&out, "*%d\r\n:%d\r\n:%d\r\n", 2+len(nodes), i*cluster.Slots/Spans, (i+1)*cluster.Slots/Spans-1)
		for _, node := range nodes {
			host, port, err := net.SplitHostPort(c.Addr(node))
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(&out, "*3\r\n$%d\r\n%s\r\n:%s\r\n%s", len(host), host, port, c.MyID(node))
		}
	}
	return fmt.Sprintf("*%d\r\n", spans) + out.String()
}
