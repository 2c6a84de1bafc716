package builtin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The kinds of Redis keys that candidates reads.
const (
	kindList      = "list"
	kindSet       = "set"
	kindSortedSet = "sorted_set"
)

// candidatesMax is the most entries that candidates takes of one key.
const candidatesMax = 100_000

// candidates makes rows of the ids in a list, a set or a sorted set.
func candidates() task.Spec {
	limit := between(1, candidatesMax)
	return task.Spec{
		Op:  "core::candidates",
		Doc: "Makes rows of the ids in a Redis list, set or sorted set.",
		Params: withRecallParams([]plan.ParamSchema{
			{Name: "endpoint", Type: plan.Endpoint, Required: true, Doc: "The Redis that has the key."},
			{Name: "key", Type: plan.Template, Required: true, Doc: "The key: `inbox:{user}` is one key for the request, `sim:{id}` one key for " +
				"each row of the input. Another name in braces is a field of the request's context."},
			{Name: "kind", Type: plan.Enum, StrValue: kindList, Source: plan.SourceRule{OneOf: []string{kindList, kindSet, kindSortedSet}},
				Doc: "The type of the key."},
			{Name: "limit", Type: plan.Int, PerRequest: true, IntValue: 100, Source: limit, Doc: "How many entries of each key become rows, at most."},
			{Name: "reverse", Type: plan.Bool, Doc: "Takes the entries from the other end: of a list the last first, of a sorted set the lowest score first."},
			entityParam,
			{Name: "min", Type: plan.ExprID, Added: true, Doc: "The least score of a sorted set. Without it there is no bound. The expression reads no columns."},
			{Name: "max", Type: plan.ExprID, Added: true, Doc: "The highest score of a sorted set, as `min`."},
			{Name: "min_member", Type: plan.Template, Added: true, Doc: "The first member of a sorted set whose members have the same score, by their bytes. Its marks are those of `key` without `{id}`."},
			{Name: "max_member", Type: plan.Template, Added: true, Doc: "The last member of such a sorted set, as `min_member`."},
			{Name: "exclusive", Type: plan.Enum, Added: true, StrValue: exclusiveNone,
				Source: plan.SourceRule{OneOf: []string{exclusiveNone, exclusiveMin, exclusiveMax, exclusiveBoth}},
				Doc:    "The bounds that are not in the range themselves."},
			{Name: "score", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true},
				Doc: "A column for the scores of a sorted set. Without it there is none."},
		}...),
		InputsMax: 1,
		Strict:    true,
		Prepare:   prepareCandidates,
		Output:    task.Expand,
		RowsMax:   perRow("limit"),
		Writes:    task.KeyParams("score"),
		IDs:       plan.ReadsTextIDs,
		Place:     task.Waits,
		Partial:   true,
		Forgets:   true,
		Ask:       askCandidates,
		Make:      makeCandidates,
		Explain:   explainCandidates,
		Reference: candidatesReference(),
	}
}

// candidatesReference documents candidates.
func candidatesReference() task.Reference {
	return task.Reference{
		Text: "`candidates` reads ids that something else has put into Redis: an inbox, a list of similar items, the most popular of a country. " +
			"A `key` without `{id}` makes it a source, which reads one key for the request. With `{id}` it reads one key for each row of its input, " +
			"and its result has the rows of all keys.\n\n" +
			"A key is as in Redis, with marks in it: `{user}` is the user of the request, `{id}` the id of a row, and another name a field of the request's " +
			"context that is an int, a string or a bool (`1` or `0`). Two braces stand for one, as in the hash tag `{{u:{user}}}`. A key has at most 512 bytes and 16 marks. " +
			"A string of the context brings at most 512 bytes.\n\n" +
			"The ids of a list come from its head, where `LPUSH` puts the newest. A sorted set gives the highest score first. `reverse` starts at the other end. " +
			"A set has no order: `candidates` reads it whole and takes the lowest ids.\n\n" +
			"`min` and `max` take the part of a sorted set whose scores are in that range: `min: now() - 7 * 86400` takes those of the last seven days, if scores are times. " +
			"`min_member` and `max_member` take the part between two members by their bytes; Redis orders a sorted set so only if all its members have the same score. " +
			"A bound is in the range itself unless `exclusive` names it, and the range is empty if the lower bound is above the upper one. `limit` counts from the start of the range.\n\n" +
			"With `entity` the rows are of that entity of the registry. If its ids are strings, an entry is an id as it stands, of 1 to 256 bytes, and ids of a set ascend by their bytes.",
		Writes: "the column of `score`, if given; the result has no other columns, also none of the input",
		Redis: "One command for each key: `LRANGE`, `SMEMBERS`, `ZREVRANGE` or, with `reverse`, `ZRANGE`; for a range `ZRANGE` with `BYSCORE` or `BYLEX`, since Redis 6.2. A `limit` above 10,000 makes one command for each 10,000 " +
			"entries, so an entry may be there twice, or missing, if the key changes meanwhile. One round trip carries up to 4,096 commands, and " +
			"fewer if their entries could exceed the rows that the request may still make.",
		Order: "The keys follow the order of the input's rows. Within a key the rows follow the order of its list, or of its scores; Redis orders members of equal score by their bytes, descending, and " +
			"ascending with `reverse`. Ids of a set ascend.",
		Nulls: "The column of `score` has no nulls.",
		Empty: "A key that does not exist has no entries. An input without rows gives a result without rows and asks Redis nothing.",
		Duplicates: "Each entry becomes a row: an id that is there twice, in one key or in two, has two rows. Rows of the input with the same id each bring the entries of its key. " +
			"[dedupe](dedupe.md) removes the duplicates.",
		Failures: "The node fails if a key has another type than `kind` (with `on_error` `partial` such a key has no entries, and the row that asked counts as dropped), if a string of the context is too long for a key, if a bound of the range is null or not a number, or if Redis cannot be reached. An entry that is not an integer of 64 bits, or " +
			"whose score is not finite, is dropped and counted: `malformed` of `--metrics`. The answer's `completeness` says how many were no such integers, with the first of them and its key. " +
			"In a list and a sorted set it takes a place of the limit. The limit of a set counts ids alone, and `of` in `completeness` counts all its members.\n\n" +
			"A plan does not load if the node has an input and its `key` has no `{id}`, or the other way round, or if it names `score` beside `min_member` or `max_member`, whose members have one score.",
		Example: task.Example{
			Plan:  "ctx.candidates({ endpoint: redis, key: \"inbox:{user}\", kind: \"sorted_set\", min: 1, limit: 3, score: Key.score })",
			Redis: []string{"ZADD inbox:1 0.5 11 2.25 12 1.5 13 0.25 14 3 draft"},
		},
	}
}

// prepareCandidates checks that the parameters fit together.
func prepareCandidates(n *plan.Node, reg *registry.Registry) (any, error) {
	p := &n.Params
	kind, perRow := p.String("kind"), p.Template("key").PerRow()
	switch {
	case perRow && len(n.Inputs) == 0:
		return nil, plan.ParamErrorf("key", "has {id}, so the node needs an input whose rows have ids")
	case !perRow && len(n.Inputs) > 0:
		return nil, plan.ParamErrorf("key", "has no {id}, so the node reads one key and takes no input")
	case p.Key("score") != nil && kind != kindSortedSet:
		return nil, plan.ParamErrorf("score", "is for kind %q, not %q", kindSortedSet, kind)
	case p.Bool("reverse") && kind == kindSet:
		return nil, plan.ParamErrorf("reverse", "is not for kind %q, whose entries have no order", kindSet)
	}
	within, err := rangeOf(p)
	if err != nil {
		return nil, err
	}
	entity, _ := reg.Entity(p.String("entity"))
	shape := fmt.Sprint("candidates", []any{kind, p.Bool("reverse"), p.Key("score") != nil, p.Int("limit"), entity.TextIDs()})
	if within != nil {
		shape = within.shape(shape)
	}
	if p.LeastInt("limit") < p.Int("limit") {
		shape = "" // each request has its own
	}
	return &preparedCandidates{recallRule(n, shape, p.Template("key").Start()), within}, nil
}

// preparedCandidates is a candidates node as the plan states it. Immutable once built; any goroutine.
type preparedCandidates struct {
	recall task.Recall
	within *memberRange // nil: all entries
}

func askCandidates(c *task.Ctx, reads *task.Reads, _ int) error {
	p, prepared := &c.Node.Params, c.Node.Prepared.(*preparedCandidates)
	limit, err := c.Int("limit")
	if err != nil {
		return err
	}
	r := task.NewRead[candidatesRead](reads)
	*r = candidatesRead{
		c: c, kind: p.String("kind"), reverse: p.Bool("reverse"), limit: int(limit), pieces: 1,
		score: p.Key("score"), texts: c.Node.Entity.TextIDs(),
	}
	if prepared.within != nil {
		if r.within, err = prepared.within.arguments(c); err != nil {
			return err
		}
	}
	if r.key, err = c.RedisKey(p.Template("key")); err != nil {
		return err
	}
	r.key = r.key.OfTexts(c.IDTexts())
	rule := &prepared.recall
	if r.kind != kindSet && r.limit > listPart {
		r.pieces, rule = (r.limit+listPart-1)/listPart, nil
	}
	r.keeps = reads.Add(c, c.Node.Endpoint, rule, r)
	return nil
}

func makeCandidates(c *task.Ctx, reads *task.Reads) (rowset.RowSet, error) {
	return reads.At(0).(*candidatesRead).rows(), nil
}

// candidatesRead reads the entries of keys. One command asks for listPart entries at most: of longer keys it reads
// several pieces, and then a key of the read stands for a piece.
//
// A value that is kept has four counts: of all entries and of those that count as rows, of scores that do not parse,
// and of ids. Then come the entries that are not ids, the ids, texts behind their lengths, and their scores. Only the
// body uses it.
type candidatesRead struct {
	c       *task.Ctx
	key     task.RedisKey
	kind    string
	reverse bool
	limit   int           // of each key
	pieces  int           // of each key
	score   *registry.Key // nil: no column
	within  *rangeArgs    // nil: all entries
	texts   bool          // whether the ids are texts

	text []byte // of a key
	ids  idList
	// entryTexts are text ids without a number yet, of one key. They are views.
	entryTexts [][]byte
	scores     []float64
	unread     unreadIDs
	unscored   int // scores of ids that parse
	failed     int // 1 + the number of the latest key that failed
	keeps      bool
	kept       []keptCandidates // of the keys that replies have brought, if they are kept
}

// keptCandidates is what a reply has brought of a key. Only the body uses it.
type keptCandidates struct {
	keptList
	rows, unscored int // entries that count as rows, and scores that do not parse
	scores         []float64
}

// Keys implements task.Read.
func (r *candidatesRead) Keys() int {
	if len(r.c.Inputs) > 0 {
		return r.c.Inputs[0].Len() * r.pieces
	}
	return r.pieces // of the one key of a template without {id}
}

// Batch implements task.Read. A batch asks for at most as many entries as the request may still make rows, unless it
// asks for few or reads one key.
func (r *candidatesRead) Batch(from int) (to int) {
	room := max(r.c.RowsLeft(), askedMin) / int64(r.limit)
	return from + r.pieces*max(1, min((r.Keys()-from)/r.pieces, task.PartCommands/r.pieces, int(room)))
}

// Key implements task.Read.
func (r *candidatesRead) Key(dst []byte, k int) []byte {
	var id int64
	if len(r.c.Inputs) > 0 {
		id = r.c.Inputs[0].ID(k / r.pieces)
	}
	return r.key.Append(dst, id)
}

// Ask implements task.Read.
func (r *candidatesRead) Ask(b *resp.Batch, from, to int) {
	b.ExpectReplies(min(r.limit, listPart) * entryBytes)
	for k := from; k < to; k++ {
		r.text = r.Key(r.text[:0], k)
		piece := k % r.pieces
		r.ask(b, r.text, piece*listPart, min(r.limit, (piece+1)*listPart)-1)
	}
}

// ask appends the command for the entries first to last of a key.
func (r *candidatesRead) ask(b *resp.Batch, key []byte, first, last int) {
	switch {
	case r.kind == kindSet:
		b.Begin(2)
		b.ArgString("SMEMBERS")
		b.ArgBytes(key)
		return
	case r.within != nil:
		r.within.ask(b, key, r.reverse, first, last-first+1, r.score != nil)
		return
	case r.kind == kindSortedSet && r.score != nil:
		b.Begin(5)
	default:
		b.Begin(4)
	}
	b.ArgString(r.command())
	b.ArgBytes(key)
	if r.kind == kindList && r.reverse {
		first, last = -last-1, -first-1 // counted from the end
	}
	b.ArgInt(int64(first))
	b.ArgInt(int64(last))
	if r.kind == kindSortedSet && r.score != nil {
		b.ArgString("WITHSCORES")
	}
}

// command returns the name of the command.
func (r *candidatesRead) command() string {
	switch {
	case r.kind == kindSet:
		return "SMEMBERS"
	case r.kind == kindList:
		return "LRANGE"
	case r.reverse, r.within != nil:
		return "ZRANGE"
	default:
		return "ZREVRANGE"
	}
}

// Take implements task.Read.
func (r *candidatesRead) Take(replies resp.Replies, at, to, k int) (next int, err error) {
	entries := 0
	for next = at; next < to && replies.At(next).Kind() == resp.Array; next++ {
		entries += r.entries(replies.At(next))
	}
	if err := r.makeRoom(entries, 0); err != nil {
		return 0, err
	}
	for ; at < next; at++ {
		if err := r.add(replies.At(at), k); err != nil {
			return 0, err
		}
		k++
	}
	return next, nil
}

// makeRoom makes room for the rows of so many entries, of the first of more keys.
func (r *candidatesRead) makeRoom(entries, more int) error {
	if err := r.c.MakeRows(int64(entries)); err != nil {
		return err
	}
	r.ids.expect(r.c, entries, more)
	if r.score != nil {
		r.scores = slices.Grow(r.scores, entries)
	}
	return nil
}

// add adds the entries of a reply about key k.
func (r *candidatesRead) add(reply resp.Reply, k int) error {
	sum, unscored, ids, scores := r.unread, r.unscored, len(r.ids.last), len(r.scores)
	r.unread, r.unscored = unreadIDs{}, 0
	r.gather(reply)
	if err := r.number(); err != nil {
		return err
	}
	if r.keeps {
		r.kept = append(r.kept, keptCandidates{
			keptList: keptList{key: k, ids: r.ids.last[ids:], unread: r.unread},
			rows:     r.entries(reply), unscored: r.unscored, scores: r.scores[scores:],
		})
	}
	sum.join(r.unread)
	r.unread, r.unscored = sum, unscored+r.unscored
	r.nameUnread(k)
	return nil
}

// nameUnread names the key of the first entry that is not an id, if that is key k.
func (r *candidatesRead) nameUnread(k int) {
	if r.unread.unnamed() {
		r.unread.name(string(r.Key(nil, k)))
	}
}

// Encode implements task.Read.
func (r *candidatesRead) Encode(dst []byte, k int) ([]byte, bool) {
	at, _ := slices.BinarySearchFunc(r.kept, k, func(kept keptCandidates, k int) int { return kept.key - k })
	kept := &r.kept[at]
	for _, n := range [...]int{kept.unread.Of, kept.rows, kept.unscored, len(kept.ids)} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	dst = kept.unread.encode(dst)
	for _, id := range kept.ids {
		if r.texts {
			text := r.c.Params.IDs().Texts().At(id)
			dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
		} else {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(id))
		}
	}
	for _, score := range kept.scores {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
	}
	return dst, true
}

// Decode implements task.Read.
func (r *candidatesRead) Decode(value []byte, k int) error {
	var counts [4]int
	for i := range counts {
		n, size := binary.Uvarint(value)
		counts[i], value = int(n), value[size:]
	}
	if err := r.makeRoom(counts[1], r.Keys()-k-1); err != nil {
		return err
	}
	r.unread.Of += counts[0]
	r.unscored += counts[2]
	value = r.unread.decode(value)
	r.nameUnread(k)
	for range counts[3] {
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
		r.scores = append(r.scores, math.Float64frombits(binary.LittleEndian.Uint64(value)))
	}
	return r.number()
}

// Refuse implements task.Read. It leaves out the rows of the key, or returns the error.
func (r *candidatesRead) Refuse(reply resp.Reply, k int) error {
	err := r.wrongReply(reply, k)
	if !r.c.Partial() {
		return err
	}
	key := k/r.pieces + 1
	if r.failed != key { // several commands read a long key
		r.c.DropRows(1, err)
	}
	r.failed = key
	return nil
}

func (r *candidatesRead) wrongReply(reply resp.Reply, k int) error {
	redis, key := r.c.Redis(r.c.Node.Endpoint), task.Quote(string(r.Key(nil, k)))
	if err := reply.Err(); err != nil {
		return redis.Errorf("%s %s: %w", r.command(), key, err)
	}
	return redis.Errorf("%s %s: reply is %s, want %s", r.command(), key, reply.Kind(), resp.Array)
}

// entries returns how many entries of a reply may become rows.
func (r *candidatesRead) entries(reply resp.Reply) int {
	n := reply.Len()
	if r.score != nil {
		n /= 2
	}
	return min(n, r.limit)
}

// number adds the ids that are texts.
func (r *candidatesRead) number() (err error) {
	if r.texts {
		r.ids.last, err = r.c.NumberIDs(r.ids.last, r.entryTexts...)
		r.entryTexts = r.entryTexts[:0]
	}
	return err
}

// gather adds the entries of a reply: ids that are texts to entryTexts, for number.
func (r *candidatesRead) gather(reply resp.Reply) {
	r.unread.Of += reply.Len()
	switch {
	case r.texts:
		r.gatherTexts(reply)
	case r.score != nil:
		r.unread.Of -= reply.Len() / 2
		for member, score := range reply.Pairs() {
			id, known := rowset.ParseInt(member.Bytes())
			value, finite := rowset.ParseFloat(score.Bytes())
			switch {
			case !known:
				r.unread.add(member.Bytes())
				continue
			case !finite:
				r.unscored++
				continue
			}
			r.ids.last = append(r.ids.last, id)
			r.scores = append(r.scores, value)
		}
	case r.kind == kindSet:
		r.addSet(reply)
	case r.kind == kindList && r.reverse:
		for i := reply.Len() - 1; i >= 0; i-- {
			r.addID(reply.At(i))
		}
	default:
		for entry := range reply.All() {
			r.addID(entry)
		}
	}
}

// gatherTexts adds the entries of a reply whose ids are texts.
func (r *candidatesRead) gatherTexts(reply resp.Reply) {
	r.entryTexts = slices.Grow(r.entryTexts, reply.Len())
	add := func(entry []byte) bool {
		ok := rowset.ValidID(entry)
		if ok {
			r.entryTexts = append(r.entryTexts, entry)
		} else {
			r.unread.add(entry)
		}
		return ok
	}
	if r.score != nil {
		r.unread.Of -= reply.Len() / 2
		for member, score := range reply.Pairs() {
			if value, finite := rowset.ParseFloat(score.Bytes()); !finite && rowset.ValidID(member.Bytes()) {
				r.unscored++
			} else if add(member.Bytes()) {
				r.scores = append(r.scores, value)
			}
		}
		return
	}
	if r.kind == kindList && r.reverse {
		for i := reply.Len() - 1; i >= 0; i-- {
			add(reply.At(i).Bytes())
		}
		return
	}
	for entry := range reply.All() {
		add(entry.Bytes())
	}
	if r.kind == kindSet {
		slices.SortFunc(r.entryTexts, bytes.Compare)
		r.entryTexts = r.entryTexts[:min(len(r.entryTexts), r.limit)]
	}
}

func (r *candidatesRead) addID(entry resp.Reply) {
	if id, ok := rowset.ParseInt(entry.Bytes()); ok {
		r.ids.last = append(r.ids.last, id)
	} else {
		r.unread.add(entry.Bytes())
	}
}

// addSet adds the lowest ids of a set, ascending.
func (r *candidatesRead) addSet(reply resp.Reply) {
	members := r.c.Memory.IDs(reply.Len())[:0]
	for entry := range reply.All() {
		if id, ok := rowset.ParseInt(entry.Bytes()); ok {
			members = append(members, id)
		} else {
			r.unread.add(entry.Bytes())
		}
	}
	slices.Sort(members)
	r.ids.last = append(r.ids.last, members[:min(len(members), r.limit)]...)
}

// rows returns the rows of all ids.
func (r *candidatesRead) rows() rowset.RowSet {
	ids := r.ids.join(r.c)
	r.unread.tell(r.c)
	if r.score == nil {
		return rowset.Dense(rowset.NewBatch(ids))
	}
	r.c.CountMalformed(r.score.Name, r.unscored)
	return rowset.Dense(rowset.NewBatch(ids, &rowset.FloatColumn{Key: r.score.ID, Values: r.scores}))
}
