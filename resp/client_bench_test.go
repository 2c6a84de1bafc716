package resp

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkClient measures the client alone, per command: Do, the flight, decoding and Done, on
// a transport that costs nothing. All calls ask for different users. With off, each command is
// sent as it is.
func BenchmarkClient(b *testing.B) {
	for _, in := range []struct {
		calls, commands int
		off             bool
	}{{1, 1, false}, {64, 1, false}, {64, 1, true}, {64, 10, false}, {64, 10, true}} {
		b.Run(fmt.Sprintf("calls=%d/commands=%d/off=%v", in.calls, in.commands, in.off), func(b *testing.B) {
			c, w := newWire(b)
			c.opts.NoCoalesceReads = in.off
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
					for id := range in.commands {
						call.Batch.CmdID(t, int64(i*in.commands+id))
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
