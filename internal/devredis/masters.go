package devredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/resp/cluster"
)

// ErrSlotsMove says that slots of a cluster moved while its masters were visited, so a key may have been missed.
var ErrSlotsMove = errors.New("slots of the Redis Cluster are moving: a key may be missed, so try again once they have moved")

// EachMaster calls use with a client of each master of the Redis Cluster that text names, one after the other. A server that is not a cluster is
// its only master. The error is ErrSlotsMove if the masters did not have the same slots all the time.
func EachMaster(ctx context.Context, text string, use func(*blocking.Client) error) error {
	server, o, err := anyOptions(text)
	if err != nil {
		return err
	}
	visit := func(addr string, use func(*blocking.Client) error) error {
		at := o
		at.Addr = addr
		client := blocking.NewClient(clock.NewReal(), at)
		return with(ctx, client, func() error { return use(client) })
	}
	if !server.Cluster {
		return visit(o.Addr, use)
	}
	var masters []string
	var unseen []error
	for seed := range strings.SplitSeq(o.Addr, ",") {
		err := visit(seed, func(c *blocking.Client) (err error) {
			masters, err = mastersOf(c, seed)
			return err
		})
		if err == nil {
			break
		}
		unseen = append(unseen, err)
	}
	if masters == nil {
		return errors.Join(unseen...)
	}
	before := make([]string, len(masters))
	slots := func(into []string) error {
		for i, addr := range masters {
			if err := visit(addr, func(c *blocking.Client) (err error) { into[i], err = slotsOf(c); return err }); err != nil {
				return err
			}
			if strings.Contains(into[i], "[") { // a slot on its way: [7-<-node]
				return ErrSlotsMove
			}
		}
		return nil
	}
	if err := slots(before); err != nil {
		return err
	}
	for _, addr := range masters {
		if err := visit(addr, use); err != nil {
			return err
		}
	}
	after := make([]string, len(masters))
	if err := slots(after); err != nil {
		return err
	}
	if !slices.Equal(before, after) {
		return ErrSlotsMove
	}
	return nil
}

// mastersOf returns the addresses of the masters that have slots, as the node at an address knows them.
func mastersOf(c *blocking.Client, addr string) (masters []string, err error) {
	err = ask(c, func(r resp.Reply) error {
		m, err := cluster.ParseSlots(r, addr)
		if err != nil {
			return fmt.Errorf("redis %s: %w", addr, err)
		}
		if n := m.Missing(); n > 0 {
			return fmt.Errorf("redis %s: %d slots of the cluster have no master", addr, n)
		}
		for slot := range cluster.Slots {
			if master := m.Master(slot); !slices.Contains(masters, master) {
				masters = append(masters, master)
			}
		}
		return nil
	}, "CLUSTER", "SLOTS")
	return masters, err
}

// slotsOf returns the slots of a node as it lists them, with those on their way in brackets.
func slotsOf(c *blocking.Client) (slots string, err error) {
	const own, first = "myself", 8 // the first field of a line of CLUSTER NODES that is a slot
	err = ask(c, func(r resp.Reply) error {
		for line := range strings.Lines(string(r.Bytes())) {
			if fields := strings.Fields(line); len(fields) > first && strings.Contains(fields[2], own) {
				slots = strings.Join(fields[first:], " ")
			}
		}
		return nil
	}, "CLUSTER", "NODES")
	return slots, err
}

// Scan calls use with the keys that match a pattern, a page at a time, until it says that it has enough. A page looks at some count keys. A key may be there twice,
// as SCAN has it. The views are valid until use returns.
func Scan(c *blocking.Client, pattern string, count int, use func(keys resp.Reply) (more bool, err error)) error {
	cursor := "0"
	for {
		more := false
		err := ask(c, func(r resp.Reply) (err error) {
			if r.Kind() != resp.Array || r.Len() != 2 {
				return fmt.Errorf("SCAN: the reply is %s of %d, want %s of 2", r.Kind(), r.Len(), resp.Array)
			}
			cursor = string(r.At(0).Bytes())
			more, err = use(r.At(1))
			return err
		}, "SCAN", cursor, "MATCH", pattern, "COUNT", fmt.Sprint(count))
		if err != nil || !more || cursor == "0" {
			return err
		}
	}
}

// ask sends a command and hands over its reply, which is not an error.
func ask(c Caller, use func(resp.Reply) error, command ...string) error {
	var b resp.Batch
	b.Cmd(command...)
	return c.Do(&b, 0, func(replies resp.Replies) error {
		r := replies.At(0)
		if err := r.Err(); err != nil {
			return fmt.Errorf("%s: %w", command[0], err)
		}
		return use(r)
	})
}
