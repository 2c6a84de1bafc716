package builtin

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// listPart is the most entries of a single list that one command asks for. Redis serves nobody else meanwhile, for
// some 0.3 ms.
const listPart = 10_000

// longCommands is how many commands for pieces of one long list make a batch, once the first was full: some 8 MB of
// replies. A batch of several commands takes turns with the calls of others.
const longCommands = 64

// askedMin is how many entries a batch may ask for, however few rows the request may still make, so that a low bound
// does not cause many round trips. The replies to so many entries take some 1 MB.
const askedMin = 1 << 16

// entryBytes is about how long a list entry is in a reply: an id of seven digits, and what RESP
// adds.
const entryBytes = 13

// entriesRead reads the entries of keys: ids, of a sorted set with their scores. Each entry counts as a row. A key that
// Redis refuses fails the node, or is left out and counted if the node may be partial.
//
// One command asks for listPart entries at most: of longer keys it reads several pieces, and then a key of the read stands
// for a piece. A batch asks for at most as many entries as the request may still make rows, unless it asks for few or
// reads one key.
//
// A list that a row fans out to is cut at the limit, and then entries without an id are dropped, so they use up the
// limit. Of it the read asks for at most one entry more than the request may still make rows, which is enough to fail. A
// single such list may be very long: the read asks for its pieces until one finds the end. So if the list changes
// meanwhile, an entry may be missing or appear twice.
//
// A value that is kept begins with twice the number of ids. It is odd if some entry has none, or makes no row: then come
// the numbers of all entries, of those that count as rows, and of scores that do not parse, and what is not an id. The
// ids follow, texts behind their lengths, and their scores. Only the body uses it.
type entriesRead struct {
	c       *task.Ctx
	key     task.RedisKey
	kind    string        // that of a list or of a sorted set is read in pieces
	stated  *askedCommand // what is asked instead, for all entries at once; nil: pieces
	form    *replyForm    // of the reply to it
	sorted  bool          // of the entries of that reply the lowest ids count
	reverse bool
	fansOut bool
	limit   int           // of each key
	end     int           // of the entries of a key that the batch may ask for
	pieces  int           // of each key
	score   *registry.Key // nil: no column
	within  *rangeArgs    // nil: all entries
	texts   bool          // whether the ids are texts

	ids chunks[int64]
	// entryTexts are text ids without a number yet, of one key. They are views.
	entryTexts [][]byte
	scores     chunks[float64]
	unread     unreadIDs
	unscored   int        // scores of ids that parse
	failed     int        // 1 + the number of the latest key that failed
	memo       *task.Memo // nil: nothing is kept
}

// begin adds the read. A nil rule keeps nothing.
func (r *entriesRead) begin(c *task.Ctx, reads *task.Reads, rule *task.Recall) {
	r.end, r.pieces = r.limit, 1
	if r.stated == nil && r.limit > listPart && (!r.fansOut || r.Keys() == 1) {
		r.pieces, rule = (r.limit+listPart-1)/listPart, nil
	}
	r.memo = reads.Add(c, c.Node.Endpoint, rule, r)
}

// long reports whether the read ends where a piece finds the end of the list.
func (r *entriesRead) long() bool { return r.fansOut && r.pieces > 1 }

// Keys implements task.Read.
func (r *entriesRead) Keys() int {
	if len(r.c.Inputs) > 0 {
		return r.c.Inputs[0].Len() * r.pieces
	}
	return r.pieces // of the one key of a template without {id}
}

// Batch implements task.Read.
func (r *entriesRead) Batch(from int) (to int) {
	left := r.c.RowsLeft()
	if r.long() {
		commands, first := longCommands, from*listPart
		if from == 0 {
			commands = 1
		}
		r.end = int(min(int64(r.limit), int64(first+commands*listPart), int64(first)+left+1))
		return (r.end + listPart - 1) / listPart
	}
	if r.fansOut {
		r.end = int(min(int64(r.limit), left+1))
	}
	room := max(left, askedMin) / int64(r.end)
	return from + r.pieces*max(1, min((r.Keys()-from)/r.pieces, task.PartCommands/r.pieces, int(room)))
}

// Key implements task.Read.
func (r *entriesRead) Key(dst []byte, k int) []byte {
	var id int64
	if len(r.c.Inputs) > 0 {
		id = r.c.Inputs[0].ID(k / r.pieces)
	}
	return r.key.Append(dst, id)
}

// Ask implements task.Read.
func (r *entriesRead) Ask(b *resp.Batch, from, to int) {
	part := r.limit
	if r.pieces > 1 {
		part = listPart
	}
	b.ExpectReplies(min(r.end, part) * entryBytes)
	var few [64]byte
	for k := from; k < to; k++ {
		first := k % r.pieces * part
		r.ask(b, r.Key(few[:0], k), first, min(r.end, first+part)-1)
	}
}

// ask appends the command for the entries first to last of a key.
func (r *entriesRead) ask(b *resp.Batch, key []byte, first, last int) {
	arguments := 4
	switch {
	case r.stated != nil:
		r.stated.ask(b, key)
		return
	case r.within != nil:
		r.within.ask(b, key, r.reverse, first, last-first+1, r.score != nil)
		return
	case r.score != nil:
		arguments = 5
	}
	b.Begin(arguments)
	b.ArgString(r.command())
	b.ArgBytes(key)
	if r.kind == kindList && r.reverse {
		first, last = -last-1, -first-1 // counted from the end
	}
	b.ArgInt(int64(first))
	b.ArgInt(int64(last))
	if r.score != nil {
		b.ArgString("WITHSCORES")
	}
}

// command returns the command, up to the key.
func (r *entriesRead) command() string {
	switch {
	case r.stated != nil:
		return r.stated.label()
	case r.kind == kindList:
		return "LRANGE"
	case r.reverse, r.within != nil:
		return "ZRANGE"
	default:
		return "ZREVRANGE"
	}
}

// Take implements task.Read.
func (r *entriesRead) Take(replies resp.Replies, at, to, k int) error {
	for at < to {
		next, entries := at, 0
		for ; next < to && r.fits(replies.At(next)); next++ {
			entries += r.entries(replies.At(next))
		}
		if err := r.makeRoom(entries, 0); err != nil {
			return err
		}
		for ; at < next; at, k = at+1, k+1 {
			reply := replies.At(at)
			if err := r.take(reply, k); err != nil {
				return err
			}
			if r.long() && reply.Len() < min(listPart, r.end-k*listPart) {
				return io.EOF
			}
		}
		if at < to {
			if err := r.refuse(replies.At(at), k); err != nil {
				return err
			}
			at, k = at+1, k+1
		}
	}
	return nil
}

// fits reports whether a reply has the shape of its command.
func (r *entriesRead) fits(reply resp.Reply) bool {
	if r.stated != nil {
		return r.form.fits(reply)
	}
	return reply.Kind() == resp.Array
}

// makeRoom makes room for the rows of so many entries, of the first of more keys.
func (r *entriesRead) makeRoom(entries, more int) error {
	if err := r.c.MakeRows(int64(entries)); err != nil {
		return err
	}
	r.ids.expect(entries, more, r.c.Memory.IDs)
	if r.score != nil {
		r.scores.expect(entries, more, r.c.Memory.Floats)
	}
	return nil
}

// take takes the entries of a reply about key k.
func (r *entriesRead) take(reply resp.Reply, k int) error {
	if r.memo != nil {
		return r.takeToKeep(reply, k)
	}
	r.gather(reply, k)
	r.nameUnread(k)
	return r.number()
}

// takeToKeep is take for a key whose entries are kept.
func (r *entriesRead) takeToKeep(reply resp.Reply, k int) error {
	sum, unscored, ids, scores := r.unread, r.unscored, len(r.ids.last), len(r.scores.last)
	r.unread, r.unscored = unreadIDs{}, 0
	r.gather(reply, k)
	if err := r.number(); err != nil {
		return err
	}
	r.keep(r.entries(reply), r.ids.last[ids:], r.scores.last[scores:])
	sum.join(r.unread)
	r.unread, r.unscored = sum, unscored+r.unscored
	r.nameUnread(k)
	return nil
}

// nameUnread names the key of the first entry that is not an id, if that is key k.
func (r *entriesRead) nameUnread(k int) {
	if r.unread.unnamed() {
		r.unread.name(string(r.Key(nil, k)))
	}
}

// keep writes the entries of a key to the memo, of which so many count as rows, unless they were cut.
func (r *entriesRead) keep(rows int, ids []int64, scores []float64) {
	if r.end < r.limit {
		return
	}
	dst, n := r.memo.Bytes, uint64(len(ids))*2
	if r.unread.Of == rows && rows == len(ids) {
		dst = binary.AppendUvarint(dst, n)
	} else {
		for _, n := range [...]uint64{n + 1, uint64(r.unread.Of), uint64(rows), uint64(r.unscored)} {
			dst = binary.AppendUvarint(dst, n)
		}
		dst = r.unread.encode(dst)
	}
	for _, id := range ids {
		if r.texts {
			text := r.c.Params.IDs().Texts().At(id)
			dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
		} else {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(id))
		}
	}
	for _, score := range scores {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
	}
	r.memo.Bytes = dst
	r.memo.Keep()
}

// Recall implements task.Read.
func (r *entriesRead) Recall(value []byte, k int) error {
	n, size := binary.Uvarint(value)
	value = value[size:]
	counts := [3]int{int(n / 2), int(n / 2), 0}
	if n%2 != 0 {
		for i := range counts {
			n, size := binary.Uvarint(value)
			counts[i], value = int(n), value[size:]
		}
		value = r.unread.decode(value)
		r.nameUnread(k)
	}
	if err := r.makeRoom(counts[1], r.Keys()-k-1); err != nil {
		return err
	}
	r.unread.Of += counts[0]
	r.unscored += counts[2]
	for range n / 2 {
		if r.texts {
			n, size := binary.Uvarint(value)
			r.entryTexts = append(r.entryTexts, value[size:][:n])
			value = value[size:][n:]
		} else {
			r.ids.last = append(r.ids.last, int64(binary.LittleEndian.Uint64(value)))
			value = value[8:]
		}
	}
	for ; len(value) > 0; value = value[8:] {
		r.scores.last = append(r.scores.last, math.Float64frombits(binary.LittleEndian.Uint64(value)))
	}
	return r.number()
}

// refuse takes a reply of the wrong kind. It leaves out the rows of the key, or returns the error.
func (r *entriesRead) refuse(reply resp.Reply, k int) error {
	var err error
	if !r.c.Partial() || r.c.Shortfall().Err == nil { // Many keys may fail, and each text costs time on the loop.
		err = wrongReply(r.c, r.command(), r.Key(nil, k), reply, resp.Array, 0)
	}
	if !r.c.Partial() {
		return err
	}
	key := k/r.pieces + 1
	if r.failed != key { // several commands read a long key
		r.c.DropRows(1, err)
	}
	if r.failed = key; r.long() { // It fails with all that was read of it.
		r.ids, r.unread = chunks[int64]{}, unreadIDs{}
		return io.EOF
	}
	return nil
}

// entries returns how many entries of a reply may become rows.
func (r *entriesRead) entries(reply resp.Reply) int { return min(r.all(reply), r.limit) }

// all returns how many entries a reply has.
func (r *entriesRead) all(reply resp.Reply) int {
	switch {
	case r.stated != nil && r.form.shape != idsReply:
		n, _ := r.form.entries(reply, nil)
		return n
	case r.score != nil:
		return reply.Len() / 2
	}
	return reply.Len()
}

// number adds the ids that are texts.
func (r *entriesRead) number() (err error) {
	if r.texts {
		r.ids.last, err = r.c.NumberIDs(r.ids.last, r.entryTexts...)
		r.entryTexts = r.entryTexts[:0]
	}
	return err
}

// gather adds the entries of a reply about key k: ids that are texts to entryTexts, for number.
func (r *entriesRead) gather(reply resp.Reply, k int) {
	n := r.all(reply)
	r.unread.Of += n
	switch {
	case r.stated != nil:
		r.gatherStated(reply, n)
		if warnings, ok := reply.Field("warnings"); ok && r.form.shape == hybridReply && warnings.Len() > 0 {
			r.c.FailOpen(r.c.Redis(r.c.Node.Endpoint).Errorf("%s %s: %s", r.command(), r.Key(nil, k), errtext.Text(string(warnings.At(0).Bytes()))))
		}
	case r.score != nil:
		for member, score := range reply.Pairs() {
			r.addScored(member.Bytes(), score.Bytes())
		}
	case r.kind == kindList && r.reverse:
		for i := reply.Len() - 1; i >= 0; i-- {
			r.add(reply.At(i).Bytes())
		}
	default:
		r.addAll(reply)
	}
}

// gatherStated adds those of n entries of a reply that count, which may be few of them.
func (r *entriesRead) gatherStated(reply resp.Reply, n int) {
	ids, scores := r.ids.last, r.scores.last
	if r.ids.last = r.c.Memory.IDs(n)[:0]; r.score != nil {
		r.scores.last = r.c.Memory.Floats(n)[:0]
	}
	r.form.entries(reply, r.addScored)
	switch {
	case r.sorted:
		slices.Sort(r.ids.last)
		slices.SortFunc(r.entryTexts, bytes.Compare)
	case r.reverse:
		slices.Reverse(r.ids.last)
		slices.Reverse(r.entryTexts)
		slices.Reverse(r.scores.last)
	}
	r.ids.last = append(ids, r.ids.last[:min(len(r.ids.last), r.limit)]...)
	r.entryTexts = r.entryTexts[:min(len(r.entryTexts), r.limit)]
	if r.score != nil {
		r.scores.last = append(scores, r.scores.last[:min(len(r.scores.last), r.limit)]...)
	}
}

// addScored adds an entry, with its score if the rows have one.
func (r *entriesRead) addScored(id, score []byte) {
	value, finite := 0.0, r.score == nil
	if !finite {
		value, finite = rowset.ParseFloat(score)
	}
	switch {
	case !r.add(id):
	case !finite:
		r.unscored++
		if r.texts {
			r.entryTexts = r.entryTexts[:len(r.entryTexts)-1]
		} else {
			r.ids.last = r.ids.last[:len(r.ids.last)-1]
		}
	case r.score != nil:
		r.scores.last = append(r.scores.last, value)
	}
}

// addAll adds the entries of a reply.
func (r *entriesRead) addAll(reply resp.Reply) {
	for entry := range reply.All() {
		r.add(entry.Bytes())
	}
}

// add adds an entry, and reports whether it is an id.
func (r *entriesRead) add(entry []byte) (ok bool) {
	var id int64
	whole := entry
	if r.form != nil && r.form.prefix != "" {
		if entry, ok = bytes.CutPrefix(entry, []byte(r.form.prefix)); !ok {
			entry = nil
		}
	}
	switch {
	case r.texts:
		if ok = rowset.ValidID(entry); ok {
			r.entryTexts = append(r.entryTexts, entry)
			return true
		}
	case r.fansOut:
		id, ok = task.ParseID(entry)
	default:
		id, ok = rowset.ParseInt(entry)
	}
	if !ok {
		r.unread.add(whole)
		return false
	}
	r.ids.last = append(r.ids.last, id)
	return true
}

// joined returns the ids of all keys, and reports the entries without one.
func (r *entriesRead) joined() []int64 {
	r.unread.tell(r.c)
	return r.ids.join(r.c.Memory.IDs)
}

// rows returns the rows of all ids.
func (r *entriesRead) rows() rowset.RowSet {
	ids := r.joined()
	if r.score == nil {
		return rowset.Dense(rowset.NewBatch(ids))
	}
	r.c.CountMalformed(r.score.Name, r.unscored)
	return rowset.Dense(rowset.NewBatch(ids, &rowset.FloatColumn{Key: r.score.ID, Values: r.scores.join(r.c.Memory.Floats)}))
}
