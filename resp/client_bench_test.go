package resp

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkClient measures the client alone, per command: Do, the in-flight FIFO, decoding
// and Done, on a transport that costs nothing.
func BenchmarkClient(b *testing.B) {
	for _, in := range []struct{ calls, commands int }{{1, 1}, {64, 1}, {64, 10}} {
		b.Run(fmt.Sprintf("calls=%d/commands=%d", in.calls, in.commands), func(b *testing.B) {
			c, w := newWire(b)
			t := NewTemplate("HGETALL", "user:{id}")
			calls := make([]Call, in.calls)
			elements := 0
			for i := range calls {
				calls[i].Done = func(call *Call) { elements += call.Replies.At(0).Len() }
			}
			w.reply = bytes.Repeat(userHash(), in.calls*in.commands)
			b.ReportAllocs()
			for n := 0; n < b.N; n += in.calls * in.commands {
				for i := range calls {
					call := &calls[i]
					call.Batch.Reset()
					for id := range int64(in.commands) {
						call.Batch.CmdID(t, id)
					}
					if err := c.Do(call); err != nil {
						b.Fatal(err)
					}
				}
				w.answer()
			}
			if elements == 0 {
				b.Fatal("no replies")
			}
		})
	}
}
