package respfront

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/serve/session"
)

// inFlight is how many requests the benchmarks have at a time.
const inFlight = 64

// BenchmarkRank measures one request with 63 others, without sockets. One measurement goes
// through a session. The other asks the engine directly and prints the answer. The difference
// is the cost of the front and the service.
func BenchmarkRank(b *testing.B) {
	b.Run("session", func(b *testing.B) {
		w := newWorld(b, everybody(b), Options{}, nil)
		c := w.wire()
		data := make([]byte, 0, inFlight*64)
		for range inFlight {
			data = append(data, commands("RANK three 1")...)
		}
		done := make(chan struct{}, 1)
		var wait func()
		wait = func() {
			if c.session.State().Owed > 0 {
				w.Loop().Defer(wait)
				return
			}
			done <- struct{}{}
		}
		round := func() {
			c.out.Reset()
			c.session.OnData(data)
			w.Loop().Defer(wait)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for range (b.N + inFlight - 1) / inFlight {
			require.True(b, w.Loop().Post(round))
			<-done
		}
		b.StopTimer()
		w.hangUp(c)
	})
	b.Run("engine", func(b *testing.B) {
		w := newWorld(b, everybody(b), Options{}, nil)
		var buf []byte
		answered := 0
		done := make(chan struct{}, 1)
		finish := func(a *rankd.Answer, err error) {
			buf = a.AppendJSON(buf[:0], rankd.FormatFlat)
			if answered++; answered == inFlight {
				answered = 0
				done <- struct{}{}
			}
		}
		round := func() {
			for range inFlight {
				if err := w.engine.Intake().Start(context.Background(), rankd.Request{Plan: "three", UserID: 1, ID: "0123456789abcdef0123456789abcdef0123"}, finish); err != nil {
					panic(err)
				}
			}
		}
		b.ReportAllocs()
		b.ResetTimer()
		for range (b.N + inFlight - 1) / inFlight {
			require.True(b, w.Loop().Post(round))
			<-done
		}
	})
}

// BenchmarkReader measures one command among 64.
func BenchmarkReader(b *testing.B) {
	r := reader{argsMax: DefaultMaxArguments, bytesMax: session.DefaultMaxRequestBytes}
	var argv [][]byte
	data := make([]byte, 0, inFlight*64)
	for range inFlight {
		data = append(data, commands("RANK concat_plan 123456")...)
	}
	b.ReportAllocs()
	for rest := data[:0]; b.Loop(); {
		if len(rest) == 0 {
			rest = data
		}
		args, size, err := r.next(rest, argv)
		if err != nil || size == 0 {
			b.Fatal(size, err)
		}
		argv, rest = args, rest[size:]
	}
}
