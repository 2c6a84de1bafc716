package builtin

import (
	"math"

	"github.com/rankd/rankd/resp"
)

// askMembers asks the collection of a kind that has one key for all rows about these ids.
func (d *lookupDecoder) askMembers(ids []int64) error {
	reads := memberReads{
		redis: d.redis, command: d.kind.command, key: d.key.Prefix, each: d.kind.asks,
		arguments: func(b *resp.Batch, from, to int) {
			if d.hasNoBit(ids[from]) {
				b.ArgInt(0) // Redis takes no other offset for it, and nobody looks at the answer.
			} else {
				d.key.AskFor(b, ids[from:to])
			}
		},
		take: func(from, to int, reply resp.Reply) error {
			if d.kind.reply == resp.Integer {
				return d.takeAnswer(reply, ids[from])
			}
			i := from
			for answer := range reply.All() {
				if err := d.takeAnswer(answer, ids[i]); err != nil {
					return err
				}
				i++
			}
			return nil
		},
		refuse: func(from, to int, err error) error {
			for range ids[from:to] {
				if err := d.drop(err); err != nil {
					return err
				}
			}
			return nil
		},
	}
	return reads.read(len(ids))
}

// hasNoBit reports whether no string has a bit for an id.
func (d *lookupDecoder) hasNoBit(id int64) bool {
	return d.kind.reply == resp.Integer && (id < 0 || id > math.MaxUint32)
}

// takeAnswer takes what a collection says of one id.
func (d *lookupDecoder) takeAnswer(answer resp.Reply, id int64) (err error) {
	if d.hasNoBit(id) {
		err = d.absent(0, id)
	} else {
		err = d.value(0, answer, id)
	}
	d.rows++
	return err
}
