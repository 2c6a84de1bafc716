package builtin

import (
	"encoding/binary"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/task"
)

// unreadIDs notes the entries of keys that are not ids. One goroutine at a time.
type unreadIDs struct {
	task.MalformedIDs
	named bool // Key has the key of First
}

// add notes one entry.
func (u *unreadIDs) add(entry []byte) {
	if u.Count == 0 {
		u.First = errtext.Text(string(entry))
	}
	u.Count++
}

// join adds what was noted of a key apart.
func (u *unreadIDs) join(of unreadIDs) {
	if u.Count == 0 {
		u.First = of.First
	}
	u.Count += of.Count
	u.Of += of.Of
}

// unnamed reports, after the entries of a key, whether First is among them.
func (u *unreadIDs) unnamed() bool { return u.Count > 0 && !u.named }

// name names the key of First.
func (u *unreadIDs) name(key string) { u.Key, u.named = errtext.Text(key), true }

// tell reports what the node could not read of so many entries.
func (u *unreadIDs) tell(c *task.Ctx) { c.DropIDs(u.MalformedIDs) }

// encode appends what there is to say of one key to a value that is kept.
func (u *unreadIDs) encode(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(u.Count))
	if u.Count > 0 {
		dst = append(binary.AppendUvarint(dst, uint64(len(u.First))), u.First...)
	}
	return dst
}

// decode notes what encode has written, and returns the rest of the value.
func (u *unreadIDs) decode(value []byte) (rest []byte) {
	n, size := binary.Uvarint(value)
	if value = value[size:]; n == 0 {
		return value
	}
	length, size := binary.Uvarint(value)
	if value = value[size:]; u.Count == 0 {
		u.First = string(value[:length])
	}
	u.Count += int(n)
	return value[length:]
}
