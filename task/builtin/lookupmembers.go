package builtin

import (
	"math"

	"github.com/rankd/rankd/resp"
)

// memberRead reads what the collection of a kind that has one key for all rows says of ids. Only the body uses it.
type memberRead struct {
	d *lookupDecoder
	memberReads
}

// Ask implements task.Read.
func (m *memberRead) Ask(b *resp.Batch, from, to int) {
	for k := from; k < to; k++ {
		first, last := m.begin(b, k)
		if ids := m.d.ids.values[first:last]; m.d.hasNoBit(ids[0]) {
			b.ArgInt(0) // Redis accepts no other offset for it, and the answer is not used.
		} else {
			m.d.key.AskFor(b, ids)
		}
	}
}

// Take implements task.Read.
func (m *memberRead) Take(replies resp.Replies, at, to, k int) error {
	if m.d.columns == nil {
		m.d.begin()
	}
	for ; at < to; at++ {
		first, last := m.of(k)
		reply := replies.At(at)
		if err := m.d.takeAnswers(m.d.ids.values[first:last], reply, m.fault(reply, last-first)); err != nil {
			return err
		}
		k++
	}
	return nil
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
