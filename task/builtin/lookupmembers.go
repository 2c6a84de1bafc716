package builtin

import (
	"math"

	"github.com/rankd/rankd/resp"
)

// askMembers asks the collection of a kind that has one key for all rows about these ids.
func (d *lookupDecoder) askMembers(ids []int64) error {
	reads := memberReads{redis: d.redis, command: d.kind.command, key: d.key.Prefix, each: d.kind.asks}
	return reads.read(len(ids), func(b *resp.Batch, from, to int) {
		if d.hasNoBit(ids[from]) {
			b.ArgInt(0) // Redis accepts no other offset for it, and the answer is not used.
		} else {
			d.key.AskFor(b, ids[from:to])
		}
	}, func(from, to int, reply resp.Reply, err error) error { return d.takeAnswers(ids[from:to], reply, err) })
}

// hasNoBit reports whether no string has a bit for an id.
func (d *lookupDecoder) hasNoBit(id int64) bool {
	return d.kind.reply == resp.Integer && (id < 0 || id > math.MaxUint32)
}

// takeAnswers takes a collection's answers for these ids, or the error instead.
func (d *lookupDecoder) takeAnswers(ids []int64, reply resp.Reply, err error) error {
	for i, id := range ids {
		switch {
		case err != nil:
			if err := d.drop(err); err != nil {
				return err
			}
			continue
		case d.hasNoBit(id):
			err = d.absent(0, id)
		case reply.Kind() == resp.Integer:
			err = d.value(0, reply, id)
		default:
			err = d.value(0, reply.At(i), id)
		}
		if d.rows++; err != nil {
			return err
		}
	}
	return nil
}
