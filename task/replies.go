package task

import (
	"fmt"

	"github.com/rankd/rankd/resp"
)

// Errorf returns an error of class ErrRedis about a reply of this endpoint. Its text
// names the endpoint and its address.
func (r Redis) Errorf(format string, args ...any) error {
	return r.wrap(fmt.Errorf("redis %s: %w", r.endpoint.Addr(), fmt.Errorf(format, args...)))
}

// CheckKind returns nil if reply is of that kind. Otherwise the error is of class
// ErrRedis and names the command, its key prefix+id, and the server's message or the
// kind of the reply. It allocates nothing unless it fails.
func (r Redis) CheckKind(reply resp.Reply, want resp.Kind, command, prefix string, id int64) error {
	if reply.Kind() == want {
		return nil
	}
	if err := reply.Err(); err != nil {
		return r.Errorf("%s %s%d: %w", command, prefix, id, err)
	}
	return r.Errorf("%s %s%d: reply is %s, want %s", command, prefix, id, reply.Kind(), want)
}

// ParseID reads the id at the start of a list entry: an optional minus, then at least
// one ASCII digit, as many as there are. It ignores the rest. ok is false if the entry does
// not start so, or its digits do not fit an int64.
func ParseID(entry []byte) (id int64, ok bool) {
	negative := len(entry) > 0 && entry[0] == '-'
	digits := entry
	if negative {
		digits = digits[1:]
	}
	var n uint64
	i := 0
	for ; i < len(digits) && '0' <= digits[i] && digits[i] <= '9'; i++ {
		d := uint64(digits[i] - '0')
		if n > (1<<63-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	switch {
	case i == 0, n == 1<<63 && !negative:
		return 0, false
	case negative:
		return int64(-n), true
	default:
		return int64(n), true
	}
}
