package rowcache

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
)

// FuzzTable runs operations that the bytes describe, three bytes for each. A Get returns only
// values that were put since the last invalidation of their key, by a read that was sent after
// it.
func FuzzTable(f *testing.F) {
	f.Add([]byte("\x1a\x00\x00\x20\x07\x00\x00\x07\x00\x3a\x07\x00\x00\x07\x00"))             // kept, hit, invalidated
	f.Add([]byte("\x1a\x00\x00\x3a\x07\x00\x20\x07\x00\x00\x07\x00"))                         // invalidated between
	f.Add([]byte("\x1a\x00\x00\x20\x07\x00\x3c\x00\x00\x00\x07\x00\x1a\x00\x01\x20\x07\x01")) // all invalidated
	f.Add(bytes.Repeat([]byte("\x1a\x00\x00\x20\x07\xff\x25\x09\xfe\x00\x07\xff\x6a\x00\x00\xa0\xf7\xff"), 300))
	f.Fuzz(func(t *testing.T, operations []byte) {
		type id struct {
			key   string
			shape Shape
		}
		type read struct {
			token   Token
			sent    clock.Time
			changed map[string]bool // keys since; "" is all
		}
		const maxAge = 100 * time.Microsecond
		table, now := NewTable(BytesMin, maxAge), clock.First
		kept := make(map[id]map[string]clock.Time) // what a Get may return, with the time of its read
		reads := []read{{table.Token(), now, map[string]bool{}}}
		for n := 0; n+2 < len(operations); n += 3 {
			op, a, b := operations[n], operations[n+1], operations[n+2]
			now = now.Add(time.Duration(b) * 10)
			at := id{"key:" + strconv.Itoa(int(a)|int(op)>>6<<8), Shape(b % 3)}
			switch op & 63 {
			default:
				if value, sent, ok := table.get([]byte(at.key), at.shape, now, 0); ok {
					require.Contains(t, kept[at], string(value), at)
					require.Equal(t, kept[at][string(value)], sent)
					require.LessOrEqual(t, now.Sub(sent), maxAge)
				}
			case 26, 27, 28, 29, 30, 31:
				reads = append(reads, read{table.Token(), now, map[string]bool{}})
			case 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55:
				r := reads[len(reads)-1-int(b)%len(reads)]
				value := strconv.Itoa(n) + string(make([]byte, 8*int(b)*int(a)))
				table.Put([]byte(at.key), at.shape, []byte(value), r.token, r.sent)
				if !r.changed[at.key] && !r.changed[""] {
					if kept[at] == nil {
						kept[at] = map[string]clock.Time{}
					}
					kept[at][value] = r.sent
				}
			case 56, 57, 58, 59:
				table.Invalidate([]byte(at.key))
				for shape := range Shape(3) {
					delete(kept, id{at.key, shape})
				}
				for _, r := range reads {
					r.changed[at.key] = true
				}
			case 60:
				table.InvalidateAll(now)
				clear(kept)
				reads = append(reads[:0], read{table.Token(), now, map[string]bool{}})
			}
		}
		table.check(t, BytesMin)
	})
}
