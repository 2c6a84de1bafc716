package builtin

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

var endpointParam = plan.ParamSchema{
	Name: "endpoint", Type: plan.Endpoint, Required: true,
	Doc: "The Redis that the node reads, by its id in the registry.",
}

// fanoutParam returns the parameter that bounds how many entries a task reads of each list. An
// artifact states it; the source of a plan may leave it out.
func fanoutParam(most int64) plan.ParamSchema {
	ifAbsent := int64(100)
	rule := between(1, most)
	rule.Default = &ifAbsent
	return plan.ParamSchema{Name: "fanout", Type: plan.Int, Required: true, Source: rule,
		Doc: "The most entries that the node reads of each list. Entries without an id count, too."}
}

// perRow returns the RowsMax of a task that makes as many rows as a parameter says of each row, or at all without an input.
func perRow(param string) func(n *plan.Node, in int64) int64 {
	return func(n *plan.Node, in int64) int64 {
		if len(n.Inputs) == 0 {
			in = 1
		}
		return plan.MulRows(in, max(0, n.Params.Int(param)))
	}
}

// atMost returns the RowsMax of a task that keeps as many rows as a parameter says.
func atMost(param string) func(n *plan.Node, in int64) int64 {
	return func(n *plan.Node, in int64) int64 { return min(in, max(0, n.Params.Int(param))) }
}

// askedMin is how many list entries a fan-out may ask for at once, however few rows its request may still make, so
// that a low bound does not cause many round trips. The replies to so many entries take some 1 MB.
const askedMin = 1 << 16

// listText says which ids come from a list.
const listText = "An id is an optional minus and at least one digit at the start of an entry. The node ignores the rest of the entry, " +
	"and drops entries that do not start so or do not fit 64 bits. It takes the first `fanout` entries before it drops any. The answer's `completeness` says how many it dropped, with the first of them and its key."

// listReference documents a task that expands each row to the list at a key with this prefix.
func listReference(prefix, more string) task.Reference {
	return task.Reference{
		Text: "The node reads the list at `" + prefix + "{id}` for each row. The new rows take the place of the rows of the input, " +
			"whose columns are lost.\n\n" + listText,
		Redis: "One `LRANGE` for each row of the input, all in one round trip. Very many rows or entries take more. " + more,
		Order: "The rows follow the order of the input, and for each row the order of its list.",
		Empty: "A key that does not exist is an empty list. An input without rows gives no rows.",
		Duplicates: "Rows with the same id each read the list, and give its entries again. An entry that is there twice gives two rows. " +
			"Equal reads in flight travel to Redis once.",
		Failures: "A key of another type than list fails the node. So do an error of Redis, a `fanout` out of its range, and more rows " +
			"than the request may make (`--max_rows`).",
	}
}

// readLists reads, for each active row of the input in order, the first "fanout" entries
// of the list at prefix+id, as one batch, and returns the ids in them. It drops entries
// without an id after that cut, so they use up fan-out. A list that Redis refuses fails the node, or is left
// out and counted if the node may be partial.
//
// Each entry counts as a row. readLists does not read entries that the request could not use: of a list it reads at
// most one entry more than the request may still make rows, which is enough to fail. If the lists could hold more
// than that together, and more than askedMin, it reads them by several batches, one after the other. It also does so
// for more than task.PartCommands lists, and if it reads more than listPart entries of a single list. It takes the
// replies part by part.
//
// Lists that the engine has in memory, as rule allows, are not read again.
func readLists(c *task.Ctx, prefix string, rule *taskrun.RecallRule, fanoutMax int64) ([]int64, error) {
	fanout := c.Node.Params.Int("fanout")
	if fanout < 1 || fanout > fanoutMax {
		return nil, task.Invalidf("fanout is %d, must be between 1 and %d", fanout, fanoutMax)
	}
	r := listReader{c: c, redis: c.Redis(c.Node.Endpoint), prefix: prefix}
	in := c.Inputs[0]
	if in.Len() == 1 && fanout > listPart {
		return r.readLong(in.ID(0), fanout)
	}
	recall := tasks.Recall(c, c.Node.Endpoint, rule)
	for from, to := 0, 0; from < in.Len(); from = to {
		left := c.RowsLeft()
		most := min(fanout, left+1)
		to = from + int(min(int64(in.Len()-from), max(1, max(left, askedMin)/most), task.PartCommands))
		b := r.newBatch(most)
		if recall != nil && most == fanout { // A shorter part of a list is useless to others.
			lists := keptLists{r, in, fanout}
			if err := recallKeys(c, r.redis, recall, keyReads{lists.key, lists.ask, lists.encode, lists.refuse, lists.take}, b, from, to); err != nil {
				return nil, err
			}
			r = lists.listReader // A pointer to r would cost an allocation of those that keep nothing, too.
			continue
		}
		for i := from; i < to; i++ {
			r.ask(b, in.ID(i), 0, most)
		}
		parts := r.redis.Parts(b)
		for parts.Next() {
			if _, err := r.take(&parts, func(i int) int64 { return in.ID(from + i) }); err != nil {
				return nil, err
			}
		}
		if err := parts.Err(); err != nil {
			return nil, err
		}
	}
	return r.join()
}

// join returns the ids, and reports the entries without one.
func (r *listReader) join() ([]int64, error) {
	r.unread.tell(r.c)
	return r.ids.join(r.c)
}

// listPart is the most entries of a single list that one command asks for. Redis serves nobody else meanwhile, for
// some 0.3 ms.
const listPart = 10_000

// longCommands is how many commands for pieces of one list make a batch, once the first was full: some 8 MB of
// replies. A batch of several commands takes turns with the calls of others.
const longCommands = 64

// listReader reads lists for one run of a node. Only its body uses it.
type listReader struct {
	c      *task.Ctx
	redis  task.Redis
	prefix string
	ids    idList
	unread unreadIDs
}

// readLong reads up to fanout entries of one list, by several commands, until one finds the end. So if the list
// changes meanwhile, an entry may be missing or appear twice.
func (r *listReader) readLong(id, fanout int64) ([]int64, error) {
	listOf := func(int) int64 { return id }
	for first, commands := int64(0), 1; first < fanout; commands = longCommands {
		to := min(fanout, first+int64(commands)*listPart, first+r.c.RowsLeft()+1)
		b := r.newBatch(min(to-first, listPart))
		for at := first; at < to; at += listPart {
			r.ask(b, id, at, min(to-at, listPart))
		}
		parts, from := r.redis.Parts(b), first
		for parts.Next() {
			entries, err := r.take(&parts, listOf)
			if err != nil {
				return nil, err
			}
			if r.c.Shortfall().Dropped > 0 {
				return nil, nil // The list has failed, including what was read of it.
			}
			from += int64(entries)
			if asked := int64(parts.From() + parts.Replies().Len()); from < min(to, first+asked*listPart) {
				return r.join() // The end of the list. Commands not sent yet are given up.
			}
		}
		if err := parts.Err(); err != nil {
			return nil, err
		}
		first = to
	}
	return r.join()
}

// listRule returns which lists a node takes from memory.
func listRule(n *plan.Node, prefix string) taskrun.RecallRule {
	return recallRule(n, "LRANGE "+strconv.FormatInt(n.Params.Int("fanout"), 10), prefix)
}

// keptLists are lists of the rows of in as keyReads. A value has the number of the list's entries, and the ids in them. Only the body uses it.
type keptLists struct {
	listReader
	in     rowset.RowSet
	fanout int64
}

func (l *keptLists) key(dst []byte, k int) []byte {
	return strconv.AppendInt(append(dst, l.prefix...), l.in.ID(k), 10)
}

func (l *keptLists) ask(b *resp.Batch, k int) { l.listReader.ask(b, l.in.ID(k), 0, l.fanout) }

func (l *keptLists) encode(dst []byte, reply resp.Reply) ([]byte, bool) {
	if reply.Kind() != resp.Array {
		return dst, false
	}
	dst = binary.AppendUvarint(dst, uint64(reply.Len()))
	start := len(dst)
	var unread unreadIDs
	dst = unread.encode(dst)
	for entry := range reply.All() {
		if id, ok := task.ParseID(entry.Bytes()); ok {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(id))
		} else {
			unread.add(entry.Bytes())
		}
	}
	if unread.Count > 0 {
		dst = slices.Replace(dst, start, start+1, unread.encode(nil)...)
	}
	return dst, true
}

func (l *keptLists) refuse(reply resp.Reply, k int) error {
	return l.c.DropKey(l.redis, reply, resp.Array, "LRANGE", l.prefix, l.in.ID(k))
}

func (l *keptLists) take(values *taskrun.Values) error {
	entries := 0
	for _, value := range values.All {
		n, _ := binary.Uvarint(value)
		entries += int(n)
	}
	if err := l.c.MakeRows(int64(entries)); err != nil {
		return err
	}
	l.ids.grow(l.c, entries)
	for k, value := range values.All {
		read, n := binary.Uvarint(value)
		l.unread.Of += int(read)
		for value = l.unread.decode(value[n:]); len(value) > 0; value = value[8:] {
			l.ids.last = append(l.ids.last, int64(binary.LittleEndian.Uint64(value)))
		}
		if l.unread.unnamed() {
			l.unread.name(string(l.key(nil, k)))
		}
	}
	return nil
}

// newBatch returns a batch for commands that ask for so many entries each.
func (r *listReader) newBatch(most int64) *resp.Batch {
	b := r.redis.NewBatch()
	b.ExpectReplies(int(most) * entryBytes)
	return b
}

// ask appends the command for so many entries of a list, from first on.
func (r *listReader) ask(b *resp.Batch, id, first, most int64) {
	b.Begin(4)
	b.ArgString("LRANGE")
	b.ArgKey(r.prefix, id)
	b.ArgInt(first)
	b.ArgInt(first + most - 1)
}

// take takes one part of the replies to a batch, of which command i asks for the list of listOf(i). It returns the
// number of entries.
func (r *listReader) take(parts *task.Parts, listOf func(i int) int64) (entries int, err error) {
	replies := parts.Replies()
	for i := range replies.Len() {
		reply := replies.At(i)
		if reply.Kind() == resp.Array {
			entries += reply.Len()
		} else if err := r.c.DropKey(r.redis, reply, resp.Array, "LRANGE", r.prefix, listOf(parts.From()+i)); err != nil {
			return 0, err
		}
	}
	if err := r.c.MakeRows(int64(entries)); err != nil {
		return 0, err
	}
	r.ids.grow(r.c, entries)
	r.unread.Of += entries
	ids := r.ids.last
	for i := range replies.Len() {
		reply := replies.At(i)
		if reply.Kind() != resp.Array {
			continue // left out
		}
		for entry := range reply.All() {
			if id, ok := task.ParseID(entry.Bytes()); ok {
				ids = append(ids, id)
			} else {
				r.unread.add(entry.Bytes())
			}
		}
		if r.unread.unnamed() {
			r.unread.name(r.prefix + strconv.FormatInt(listOf(parts.From()+i), 10))
		}
	}
	r.ids.last = ids
	return entries, nil
}

// entryBytes is about how long a list entry is in a reply: an id of seven digits, and what RESP
// adds.
const entryBytes = 13
