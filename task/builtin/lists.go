package builtin

import (
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
)

var endpointParam = plan.ParamSchema{Name: "endpoint", Type: plan.Endpoint, Required: true}

// fanoutParam returns the parameter that bounds how many entries a task reads of each list. An
// artifact states it; the source of a plan may leave it out.
func fanoutParam(most int64) plan.ParamSchema {
	ifAbsent := int64(100)
	rule := between(1, most)
	rule.Default = &ifAbsent
	return plan.ParamSchema{Name: "fanout", Type: plan.Int, Required: true, Source: rule}
}

// askedMin is how many list entries a fan-out may ask for at once, however few rows its
// request may still make, so that a low bound does not cause many round trips. As replies
// so many entries are some 1 MB.
const askedMin = 1 << 16

// readLists reads, for each active row of the input in order, the first "fanout" entries
// of the list at prefix+id, as one batch, and returns the ids in them. It drops entries
// without an id after that cut, so they use up fan-out.
//
// Each entry counts as a row. readLists does not read entries that the request could not
// take: it reads a list up to one entry more than the request may still make rows, which is
// enough to fail. If the lists could hold more than that together, and more than askedMin, it
// reads them by several batches, one after the other. It also does so for more than
// task.PartCommands lists. It takes the replies part by part.
func readLists(c *task.Ctx, prefix string, fanoutMax int64) ([]int64, error) {
	fanout := c.Node.Params.Int("fanout")
	if fanout < 1 || fanout > fanoutMax {
		return nil, task.Invalidf("fanout is %d, must be between 1 and %d", fanout, fanoutMax)
	}
	in := c.Inputs[0]
	redis := c.Redis(c.Node.Endpoint)
	var ids []int64
	for from, to := 0, 0; from < in.Len(); from = to {
		left := c.RowsLeft()
		most := min(fanout, left+1)
		to = from + int(min(int64(in.Len()-from), max(1, max(left, askedMin)/most), task.PartCommands))
		b := redis.NewBatch()
		b.ExpectReplies(int(most) * entryBytes)
		for i := from; i < to; i++ {
			b.Begin(4)
			b.ArgString("LRANGE")
			b.ArgKey(prefix, in.ID(i))
			b.ArgInt(0)
			b.ArgInt(most - 1)
		}
		parts := redis.Parts(b)
		for parts.Next() {
			replies := parts.Replies()
			entries := 0
			for i := range replies.Len() {
				reply := replies.At(i)
				if err := redis.CheckKind(reply, resp.Array, "LRANGE", prefix, in.ID(from+parts.From()+i)); err != nil {
					return nil, err
				}
				entries += reply.Len()
			}
			if err := c.MakeRows(int64(entries)); err != nil {
				return nil, err
			}
			ids = slices.Grow(ids, entries)
			for i := range replies.Len() {
				for entry := range replies.At(i).All() {
					if id, ok := task.ParseID(entry.Bytes()); ok {
						ids = append(ids, id)
					}
				}
			}
		}
		if err := parts.Err(); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// entryBytes is about how long a list entry is in a reply: an id of seven digits, and what RESP
// adds.
const entryBytes = 13
