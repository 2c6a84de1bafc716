package builtin

import (
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
)

// The most members that one command and one round trip ask for. A command of 1,024 members occupies Redis for some
// 0.1 ms, and encoding 64 such commands takes the loop some 1 ms.
const (
	memberCommandMax = 1 << 10
	memberBatchMax   = 64 * memberCommandMax
)

// answerBytes is about how long a reply is for each member: a score of ten digits, and what RESP adds.
const answerBytes = 16

// memberReads asks one collection for many members. Only its body uses it.
type memberReads struct {
	redis        task.Redis
	command, key string
	each         int // how many members one command asks for at most: memberCommandMax, or 1 if its reply is not an array
}

// read asks for n members. arguments appends those from to to-1. take takes the reply about them: with an answer for
// each, or the error that it means. The functions are parameters, not fields, so that they cost no allocation.
func (m *memberReads) read(n int, arguments func(b *resp.Batch, from, to int), take func(from, to int, reply resp.Reply, err error) error) error {
	most := min(memberBatchMax, m.each*task.PartCommands)
	for first := 0; first < n; first += most {
		last := min(n, first+most)
		b := m.redis.NewBatch()
		b.ExpectReplies(m.each * answerBytes)
		for from := first; from < last; from += m.each {
			to := min(last, from+m.each)
			b.Begin(2 + to - from)
			b.ArgString(m.command)
			b.ArgString(m.key)
			arguments(b, from, to)
		}
		parts := m.redis.Parts(b)
		for parts.Next() {
			for i, reply := range parts.Replies().All() {
				from := first + (parts.From()+i)*m.each
				to := min(last, from+m.each)
				if err := take(from, to, reply, m.fault(reply, to-from)); err != nil {
					return err
				}
			}
		}
		if err := parts.Err(); err != nil {
			return err
		}
	}
	return nil
}

// fault says what is wrong with a reply about n members.
func (m *memberReads) fault(reply resp.Reply, n int) error {
	if err := reply.Err(); err != nil {
		return m.redis.Errorf("%s %s: %w", m.command, errtext.Text(m.key), err)
	}
	switch {
	case m.each == 1 && reply.Kind() != resp.Integer:
		return m.redis.Errorf("%s %s: reply is %s, want %s", m.command, errtext.Text(m.key), reply.Kind(), resp.Integer)
	case m.each > 1 && (reply.Kind() != resp.Array || reply.Len() != n):
		return m.redis.Errorf("%s %s: reply is %s of %d, want an array of %d", m.command, errtext.Text(m.key), reply.Kind(), reply.Len(), n)
	}
	return nil
}
