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

// memberReads asks one collection for many members: a key of the read stands for those of one command. No value of a
// member is kept, since a change of the collection does not say whose value has changed. Only its body uses it.
type memberReads struct {
	redis        task.Redis
	command, key string
	each         int // how many members one command asks for at most: memberCommandMax, or 1 if its reply is not an array
	members      int
}

// Keys implements task.Read.
func (m *memberReads) Keys() int {
	if m.members == 0 {
		return 0
	}
	return (m.members + m.each - 1) / m.each
}

// Batch implements task.Read.
func (m *memberReads) Batch(from int) int {
	return min(m.Keys(), from+min(memberBatchMax/m.each, task.PartCommands))
}

// Key implements task.Read.
func (m *memberReads) Key(dst []byte, _ int) []byte { return append(dst, m.key...) }

// of returns which members a command asks for.
func (m *memberReads) of(k int) (from, to int) { return k * m.each, min(m.members, (k+1)*m.each) }

// Refuse implements task.Read. No reply comes here: see fault.
func (m *memberReads) Refuse(resp.Reply, int) error { return nil }

// Encode implements task.Read.
func (m *memberReads) Encode(dst []byte, _ int) ([]byte, bool) { return dst, false }

// Decode implements task.Read.
func (m *memberReads) Decode([]byte, int) error { return nil }

// begin begins command k.
func (m *memberReads) begin(b *resp.Batch, k int) (from, to int) {
	from, to = m.of(k)
	b.ExpectReplies(m.each * answerBytes)
	b.Begin(2 + to - from)
	b.ArgString(m.command)
	b.ArgString(m.key)
	return from, to
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
