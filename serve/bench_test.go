package serve_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/serve"
)

// BenchmarkAsk measures a request through the service, as a RESP command or as JSON. It
// compares with one that goes to the engine directly, and with a refusal. The answer is made
// but not encoded.
func BenchmarkAsk(b *testing.B) {
	w := openServer(b, rankd.Options{Plan: "rows"})
	e := w.Engine()
	b.Run("engine", func(b *testing.B) {
		b.ReportAllocs()
		answered := make(chan struct{}, 1)
		r := rankd.Request{UserID: 1, ID: "r"}
		done := func(*rankd.Answer, error) { answered <- struct{}{} }
		for b.Loop() {
			require.NoError(b, e.Intake().Start(context.Background(), r, done))
			<-answered
		}
	})
	for name, fill := range map[string]func(q *serve.Query){
		"command":    func(q *serve.Query) { q.User = []byte("1") },
		"command_id": func(q *serve.Query) { q.User, q.RequestID = []byte("1"), []byte("r") },
		"json":       func(q *serve.Query) { q.Body = []byte(`{"user_id": 1, "request_id": "r"}`) },
		"refused":    func(q *serve.Query) { q.User, q.Plan = []byte("0"), []byte("rows") },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			answered := make(chan struct{}, 1)
			q := w.NewQuery(serve.RESP, func(*serve.Query) { answered <- struct{}{} })
			for b.Loop() {
				q.Caller = w.caller
				fill(q)
				w.Ask(q)
				<-answered
				q.Release()
			}
		})
	}
	b.Run("overloaded", func(b *testing.B) {
		b.ReportAllocs()
		full := openServer(b, rankd.Options{Plan: "held", MaxInflight: 1})
		running, ran := full.start(func(q *serve.Query) { q.User = []byte("1") })
		<-full.gate.entered
		answered := make(chan struct{}, 1)
		q := full.NewQuery(serve.RESP, func(*serve.Query) { answered <- struct{}{} })
		for b.Loop() {
			q.Caller, q.User = full.caller, []byte("1")
			full.Ask(q)
			<-answered
			q.Release()
		}
		close(full.gate.opened)
		<-ran
		require.Equal(b, outcome.OK, running.Reply.Class)
	})
}
