package builtin

import (
	"encoding/binary"
	"io"
	"slices"
	"strconv"

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

// askLists adds a read of the first "fanout" entries of the list at prefix+id, for each active row of the input.
func askLists(c *task.Ctx, r *task.Reads, prefix string, rule *task.Recall, fanoutMax int64) error {
	fanout := c.Node.Params.Int("fanout")
	if fanout < 1 || fanout > fanoutMax {
		return task.Invalidf("fanout is %d, must be between 1 and %d", fanout, fanoutMax)
	}
	l := task.NewRead[listRead](r)
	l.c, l.prefix, l.in, l.fanout = c, prefix, c.Inputs[0], fanout
	if l.long = l.in.Len() == 1 && fanout > listPart; l.long {
		rule = nil
	}
	l.keeps = r.Add(c, c.Node.Endpoint, rule, l)
	return nil
}

// listRule returns which lists a node takes from memory.
func listRule(n *plan.Node, prefix string) task.Recall {
	return recallRule(n, "LRANGE "+strconv.FormatInt(n.Params.Int("fanout"), 10), prefix)
}

// listPart is the most entries of a single list that one command asks for. Redis serves nobody else meanwhile, for
// some 0.3 ms.
const listPart = 10_000

// longCommands is how many commands for pieces of one list make a batch, once the first was full: some 8 MB of
// replies. A batch of several commands takes turns with the calls of others.
const longCommands = 64

// listRead reads lists of ids. It drops entries without an id after the cut at fanout, so they use up fan-out. A list
// that Redis refuses fails the node, or is left out and counted if the node may be partial.
//
// Each entry counts as a row. listRead does not read entries that the request could not use: of a list it reads at
// most one entry more than the request may still make rows, which is enough to fail. If the lists of a batch could
// hold more than that together, and more than askedMin, the batch is shorter.
//
// A single long list is read in pieces of listPart entries, until one finds the end; a key stands for a piece then. So
// if the list changes meanwhile, an entry may be missing or appear twice.
//
// A value that is kept has the number of the list's entries, those that are not ids, and the ids. Only the body uses it.
type listRead struct {
	c      *task.Ctx
	prefix string
	in     rowset.RowSet
	fanout int64
	long   bool
	most   int64 // entries that a command of the batch asks for
	end    int64 // of the entries of a list that the batch may ask for

	ids    idList
	unread unreadIDs
	keeps  bool
	lists  []keptList // of the keys that replies have brought, if they are kept
}

// keptList is what a reply has brought of a key. Only the body uses it.
type keptList struct {
	key    int
	ids    []int64
	unread unreadIDs
	whole  bool // the command asked for as many entries as the plan says
}

// joined returns all ids, and reports the entries without one.
func (l *listRead) joined() []int64 {
	l.unread.tell(l.c)
	return l.ids.join(l.c)
}

// Keys implements task.Read.
func (l *listRead) Keys() int {
	if l.long {
		return int((l.fanout + listPart - 1) / listPart)
	}
	return l.in.Len()
}

// Batch implements task.Read.
func (l *listRead) Batch(from int) (to int) {
	left := l.c.RowsLeft()
	if l.long {
		commands := int64(longCommands)
		if from == 0 {
			commands = 1
		}
		first := int64(from) * listPart
		l.end = min(l.fanout, first+commands*listPart, first+left+1)
		l.most = min(l.end-first, listPart)
		return from + int((l.end-first+listPart-1)/listPart)
	}
	l.most = min(l.fanout, left+1)
	l.end = l.most
	return from + int(min(int64(l.in.Len()-from), max(1, max(left, askedMin)/l.most), task.PartCommands))
}

// id returns the id whose list key k reads.
func (l *listRead) id(k int) int64 {
	if l.long {
		k = 0
	}
	return l.in.ID(k)
}

// Key implements task.Read.
func (l *listRead) Key(dst []byte, k int) []byte {
	return strconv.AppendInt(append(dst, l.prefix...), l.id(k), 10)
}

// Ask implements task.Read.
func (l *listRead) Ask(b *resp.Batch, from, to int) {
	b.ExpectReplies(int(l.most) * entryBytes)
	for k := from; k < to; k++ {
		first := int64(0)
		if l.long {
			first = int64(k) * listPart
		}
		b.Begin(4)
		b.ArgString("LRANGE")
		b.ArgKey(l.prefix, l.id(k))
		b.ArgInt(first)
		b.ArgInt(min(first+l.most, l.end) - 1)
	}
}

// Take implements task.Read.
func (l *listRead) Take(replies resp.Replies, at, to, k int) (next int, err error) {
	entries := 0
	for next = at; next < to && replies.At(next).Kind() == resp.Array; next++ {
		entries += replies.At(next).Len()
	}
	if err := l.c.MakeRows(int64(entries)); err != nil {
		return 0, err
	}
	l.ids.grow(l.c, entries)
	l.unread.Of += entries
	for ; at < next; at++ {
		l.add(replies.At(at), k)
		if n := replies.At(at).Len(); l.long && int64(n) < min(listPart, l.end-int64(k)*listPart) {
			return 0, io.EOF
		}
		k++
	}
	return next, nil
}

// add adds the entries of a reply about key k.
func (l *listRead) add(reply resp.Reply, k int) {
	ids, start, unread := l.ids.last, len(l.ids.last), unreadIDs{}
	for entry := range reply.All() {
		if id, ok := task.ParseID(entry.Bytes()); ok {
			ids = append(ids, id)
		} else {
			unread.add(entry.Bytes())
		}
	}
	l.ids.last = ids
	if l.unread.join(unread); l.unread.unnamed() {
		l.unread.name(string(l.Key(nil, k)))
	}
	if l.keeps {
		unread.Of = reply.Len()
		l.lists = append(l.lists, keptList{key: k, ids: ids[start:], unread: unread, whole: l.most == l.fanout})
	}
}

// Refuse implements task.Read. A long list fails with all that was read of it.
func (l *listRead) Refuse(reply resp.Reply, k int) error {
	err := l.c.DropKey(l.c.Redis(l.c.Node.Endpoint), reply, resp.Array, "LRANGE", l.prefix, l.id(k))
	if l.long && err == nil {
		l.ids, l.unread = idList{}, unreadIDs{}
		return io.EOF
	}
	return err
}

// Encode implements task.Read.
func (l *listRead) Encode(dst []byte, k int) ([]byte, bool) {
	at, _ := slices.BinarySearchFunc(l.lists, k, func(list keptList, k int) int { return list.key - k })
	list := &l.lists[at]
	dst = list.unread.encode(binary.AppendUvarint(dst, uint64(list.unread.Of)))
	for _, id := range list.ids {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(id))
	}
	return dst, list.whole
}

// Decode implements task.Read.
func (l *listRead) Decode(value []byte, k int) error {
	entries, n := binary.Uvarint(value)
	if err := l.c.MakeRows(int64(entries)); err != nil {
		return err
	}
	l.unread.Of += int(entries)
	value = l.unread.decode(value[n:])
	if l.unread.unnamed() {
		l.unread.name(string(l.Key(nil, k)))
	}
	for l.ids.expect(l.c, len(value)/8, l.in.Len()-k-1); len(value) > 0; value = value[8:] {
		l.ids.last = append(l.ids.last, int64(binary.LittleEndian.Uint64(value)))
	}
	return nil
}

// entryBytes is about how long a list entry is in a reply: an id of seven digits, and what RESP
// adds.
const entryBytes = 13
