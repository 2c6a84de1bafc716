package builtin

import (
	"errors"
	"slices"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// tasks is the view that engines have of package task.
var tasks = task.Engine(taskrun.Key{})

// A lookup also reads for later lookups of the same rows (plan.Node.Ahead). One command for each row has the fields
// of all lookups that share its key. The commands of other keys leave in the same batch:
//
//	item:{id} title ─▶ vm ─▶ item:{id} likes ─▶ stats:{id} views     HMGET item:7 title likes   one call
//	                                                                 HMGET stats:7 views
//
// Each lookup still decodes its own values, so that its errors, its counts and its rows are its own. The first one
// does so on behalf of the others, while the replies are valid. They find their decoder when they run. A lookup that
// needs other ids after all ignores it, and reads.

// lookupSharing says how a lookup reads for a later one. Two keys in one call take longer than one, so a lookup with
// a timeout of its own does not share a call. Neither does a lookup whose values may fail it while the plan goes on:
// it would have read for the others in vain.
func lookupSharing(n, later *plan.Node) plan.Sharing {
	a, b := n.Prepared.(*preparedLookup), later.Prepared.(*preparedLookup)
	switch {
	case n.Endpoint != later.Endpoint, a.kind.asks > 0 || b.kind.asks > 0, a.missing == missingFail && n.Lenient():
		return plan.Apart
	case a.kind.command == b.kind.command && sameKeys(n, later):
		return plan.Together
	case n.Timeout == 0:
		return plan.Beside
	}
	return plan.Apart
}

// sameKeys reports whether two lookups make the same keys of the same rows.
func sameKeys(n, later *plan.Node) bool {
	a, b := n.Params.Template("key"), later.Params.Template("key")
	return slices.Equal(a.Before, b.Before) && sameRow(n, later) && slices.Equal(a.After, b.After)
}

// sameRow reports whether the same columns of a row fill in the keys of two lookups, in the same way.
func sameRow(n, later *plan.Node) bool {
	return slices.Equal(n.Prepared.(*preparedLookup).row, later.Prepared.(*preparedLookup).row)
}

// A lookupRead is one command for each id, for one lookup or several. Immutable once built; any goroutine.
type lookupRead struct {
	nodes   []*plan.Node // in the plan's order, whose keys are the same
	fields  []string     // of all hashes
	command *resp.Template
}

// readsOf returns what a lookup with others ahead reads, its own command first.
func readsOf(n *plan.Node, own *preparedLookup) []lookupRead {
	reads := []lookupRead{{nodes: []*plan.Node{n}, fields: own.fields()}}
	for _, later := range n.Ahead {
		l := later.Prepared.(*preparedLookup)
		at := slices.IndexFunc(reads, func(r lookupRead) bool { return lookupSharing(r.nodes[0], later) == plan.Together })
		if at < 0 {
			at, reads = len(reads), append(reads, lookupRead{})
		}
		reads[at].nodes, reads[at].fields = append(reads[at].nodes, later), append(reads[at].fields, l.fields()...)
	}
	for i := range reads {
		if prefix, suffix, ok := reads[i].nodes[0].Params.Template("key").Literal(); ok {
			reads[i].command = reads[i].nodes[0].Prepared.(*preparedLookup).kind.keyCommand(prefix, suffix, reads[i].fields)
		}
	}
	return reads
}

// lookupFor is one lookup's part of a read. The body that reads uses it first, and then the body of the lookup.
type lookupFor struct {
	*lookupDecoder
	first int             // of its fields in the reply
	ids   []int64         // whose values it has, in their order; of one with an error also the id at fault
	texts *rowset.IDTexts // of the ids, as distinctIDs has them
	err   error           // that ends it
}

// readFor is a lookupRead of one run. Only the body uses it.
type readFor struct {
	ids     []int64 // as those of distinctIDs
	key     task.RedisKey
	command *resp.Template
	width   int          // elements of a reply; of GET: 0
	parts   []*lookupFor // in the plan's order
}

// hand leaves the later nodes their values, and returns the decoder of the node itself.
func (g *lookupGroup) hand() *lookupDecoder {
	tasks.Env(g.c).Keep().ReadAhead = g.left
	return g.reads[0].parts[0].lookupDecoder
}

// aheadOf returns the decoder of a node for which an earlier one has read these ids, or nil.
func aheadOf(c *task.Ctx, ids *distinctIDs) (*lookupDecoder, error) {
	p, ok := tasks.Env(c).Rare().Ahead.(*lookupFor)
	if !ok || p.err == nil && len(p.ids) < len(ids.values) || !ids.beginWith(p.ids, p.texts) {
		return nil, nil
	}
	p.c, p.redis = c, c.Redis(c.Node.Endpoint)
	return p.lookupDecoder, p.err
}

// lookupGroup reads for a lookup and for those ahead: a key of the read stands for a command. Only the body uses it.
type lookupGroup struct {
	c        *task.Ctx
	ids      *distinctIDs // of the lookup itself
	reads    []readFor
	left     []any // for Env.ReadAhead
	tooLarge bool  // the replies are too long for one call

	at, next int // the reply that comes next: to command next of reads[at]
}

// newLookupGroup returns a group that reads what the node and the later ones look up.
func newLookupGroup(c *task.Ctx, own *preparedLookup, key task.RedisKey, ids *distinctIDs) (*lookupGroup, error) {
	g := &lookupGroup{c: c, ids: ids, left: make([]any, len(c.Node.Ahead))}
	for i := range own.reads {
		if err := g.add(&own.reads[i], key); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// add adds a read to the group. A read that cannot work is left to its node, which reports why.
func (g *lookupGroup) add(read *lookupRead, headKey task.RedisKey) error {
	r := readFor{command: read.command, width: len(read.fields)}
	key, first, ids := headKey, read.nodes[0], g.ids
	if first != g.c.Node {
		var err error
		if key, err = g.c.RedisKey(first.Params.Template("key")); err != nil {
			return nil
		}
		if !sameRow(first, g.c.Node) {
			own := first.Prepared.(*preparedLookup).distinctOf(g.c, g.c.Inputs[0], key)
			ids = &own
		}
		key = key.OfTexts(ids.texts)
	}
	r.ids, r.key = ids.values, key
	if r.command == nil {
		r.command = first.Prepared.(*preparedLookup).kind.keyCommand(key.Prefix, key.Suffix, read.fields)
	}
	fields := 0
	for _, n := range read.nodes {
		l := n.Prepared.(*preparedLookup)
		d, err := newLookupDecoder(g.c, l, key, *ids)
		switch {
		case err == nil:
			p := &lookupFor{lookupDecoder: d, first: fields, ids: g.c.Memory.IDs(len(r.ids))[:0], texts: ids.texts}
			r.parts = append(r.parts, p)
			if n != g.c.Node {
				g.left[slices.Index(g.c.Node.Ahead, n)] = p
			}
		case n == g.c.Node:
			return err
		}
		fields += l.width()
	}
	g.reads = append(g.reads, r)
	return nil
}

// Keys implements task.Read.
func (g *lookupGroup) Keys() (n int) {
	for i := range g.reads {
		n += len(g.reads[i].ids)
	}
	return n
}

// Batch implements task.Read.
func (g *lookupGroup) Batch(from int) int { return nextBatch(from, g.Keys()) }

// Key implements task.Read. No value is kept.
func (g *lookupGroup) Key(dst []byte, _ int) []byte { return dst }

// Ask implements task.Read.
func (g *lookupGroup) Ask(b *resp.Batch, from, to int) {
	values := 0
	for i := range g.reads {
		r := &g.reads[i]
		n := len(r.ids)
		if first, last := min(from, n), min(to, n); first < last {
			r.key.Ask(b, r.command, r.ids[first:last])
			values = max(values, r.width, 1)
		}
		from, to = max(0, from-n), max(0, to-n)
	}
	b.ExpectReplies(values * entryBytes)
}

// Take implements task.Read.
func (g *lookupGroup) Take(replies resp.Replies, at, to, _ int) (next int, err error) {
	for ; at < to; at++ {
		if err := g.take(replies.At(at)); err != nil {
			return 0, err
		}
	}
	return at, nil
}

// Refuse implements task.Read. Each lookup refuses what it gets itself.
func (g *lookupGroup) Refuse(resp.Reply, int) error { return nil }

// Encode implements task.Read.
func (g *lookupGroup) Encode(dst []byte, _ int) ([]byte, bool) { return dst, false }

// Decode implements task.Read.
func (g *lookupGroup) Decode([]byte, int) error { return nil }

// Failed implements task.FallibleRead.
func (g *lookupGroup) Failed(err error) error {
	if g.tooLarge = errors.Is(err, resp.ErrTooLarge); g.tooLarge {
		return nil
	}
	return err
}

// take takes the next reply. The error is that of the lookup itself.
func (g *lookupGroup) take(reply resp.Reply) error {
	for g.next == len(g.reads[g.at].ids) {
		g.at, g.next = g.at+1, 0
	}
	r := &g.reads[g.at]
	id := r.ids[g.next]
	g.next++
	for _, p := range r.parts {
		if p.err != nil {
			continue
		}
		p.ids = append(p.ids, id)
		if p.err = p.takeFrom(reply, p.first, r.width, id); p.err != nil && p == g.reads[0].parts[0] {
			return p.err
		}
		if p.err == nil && p.gone(p.rows-1) {
			break // Later lookups never see the row.
		}
	}
	return nil
}

// takeFrom takes the reply for one id, which has width elements: those of this lookup begin at first.
func (d *lookupDecoder) takeFrom(reply resp.Reply, first, width int, id int64) error {
	if !d.hash || width == len(d.columns) {
		return d.take(reply, id)
	}
	if reply.Kind() != resp.Array || reply.Len() != width {
		return d.dropKey(reply, id, resp.Array, width)
	}
	if d.maxAge > 0 {
		if _, fresh := d.fresh(textOf(reply.At(first + d.ageAt))); !fresh {
			return d.tooOld(id)
		}
	}
	for i := range d.columns {
		if err := d.value(i, reply.At(first+i), id); err != nil {
			return err
		}
	}
	d.rows++
	return nil
}

// gone reports whether the rows of an id were left out.
func (d *lookupDecoder) gone(at int) bool { return isSet(d.dropped, at) || isSet(d.failed, at) }

func isSet(bits rowset.Bitmap, at int) bool { return bits != nil && bits.Get(at) }
