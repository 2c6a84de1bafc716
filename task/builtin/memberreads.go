package builtin

import (
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
	c            *task.Ctx
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

// Recall implements task.Read.
func (m *memberReads) Recall([]byte, int) error { return nil }

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
	want, elements := resp.Array, n
	if m.each == 1 {
		want, elements = resp.Integer, 0
	}
	if reply.Kind() == want && (elements == 0 || reply.Len() == n) {
		return nil
	}
	return wrongReply(m.c, m.command, []byte(m.key), reply, want, elements)
}
