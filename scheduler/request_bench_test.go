package scheduler

import (
	"bytes"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/examples/demo"
	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// BenchmarkRequest measures what a request costs the loop: the engine, its tasks and its Redis
// client. The loop is driven by hand, and the Redis costs next to nothing. Every run takes the
// same steps, so even a busy machine can compare the instructions of two commits. With memory,
// all reads hit the engine's table.
func BenchmarkRequest(b *testing.B) {
	catalog := trustingCatalog(b)
	for _, name := range []string{"concat_plan", "complex_dag"} {
		text, err := fs.ReadFile(demo.Plans(), name+".plan.json")
		require.NoError(b, err)
		g, err := plan.Load(name, text, catalog, testRegistry(b))
		require.NoError(b, err)
		for _, inflight := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/inflight=%d", name, inflight), func(b *testing.B) { benchmarkRequest(b, g, inflight, false) })
			b.Run(fmt.Sprintf("%s/inflight=%d/memory", name, inflight), func(b *testing.B) { benchmarkRequest(b, g, inflight, true) })
		}
	}
	for _, rows := range []int{10, 1000, 10_000} {
		g := pipeline(b, catalog, rows, 10)
		b.Run(fmt.Sprintf("pipeline of %d rows", rows), func(b *testing.B) { benchmarkRequest(b, g, 1, false) })
	}
}

// trustingCatalog returns the built-in tasks as a program has them: nobody checks what they
// return.
func trustingCatalog(b *testing.B) *task.Catalog {
	catalog, err := tasks.NewTrustingCatalog(builtin.Specs())
	require.NoError(b, err)
	return catalog
}

// pipeline returns a plan that computes with so many rows, and takes the first of them.
func pipeline(b *testing.B, catalog *task.Catalog, rows, count int) *plan.Graph {
	return graph(b, catalog, "t", source(rows), vmNode("v", "src"), node("f", "filter", "v", `"pred_id": "big"`, ""),
		node("s", "sort", "f", `"by": 2001, "order": "desc"`, ""), node("t", "take", "s", fmt.Sprintf(`"count": %d`, count), ""))
}

func benchmarkRequest(b *testing.B, g *plan.Graph, inflight int, memory bool) {
	w := newPlacedWorld(b, 0, Placement{})
	w.cpu.auto = true
	reg := testRegistry(b)
	for i, ep := range reg.Endpoints() {
		if ep.Kind == registry.Redis {
			redis := &cannedRedis{loop: w.Loop}
			redis.serve(w.Harness)
			w.endpoints[i].redis = resp.NewClient(w.Loop, redis, resp.Options{Addr: "redis", NoCoalesceReads: true})
			if memory {
				w.given.Tables = make([]*rowcache.Table, len(w.endpoints))
				w.given.Tables[i] = rowcache.NewTable(rowcache.BytesMin, time.Hour)
			}
			break // The plans read one endpoint.
		}
	}

	requests, answered, rows := make([]Execution, inflight), 0, 0
	for i := range requests {
		requests[i] = Execution{Graph: g, UserID: int64(i) + 1}
	}
	done := func(r *Result) {
		if r.Err != nil {
			b.Error(r.Err)
			return
		}
		answered, rows = answered+1, r.Outputs[0].Len()
	}
	serve := func() {
		answered = 0
		for i := range requests {
			w.Submit(&requests[i], done)
		}
		for answered < inflight && !b.Failed() {
			w.Harness.Iterate()
		}
	}
	serve() // It connects.
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += inflight {
		serve()
	}
	require.NotZero(b, rows)
}

// cannedRedis answers each command by its number of arguments, in the next iteration. It is
// also the network. Loop only.
type cannedRedis struct {
	loop     *loop.Loop
	handler  transport.Handler
	dialled  bool
	commands []byte // written and not answered
	replies  []byte
}

// serve makes r the network of a harness.
func (r *cannedRedis) serve(h *looptest.Harness) {
	h.OnPoll = func() {
		if r.dialled {
			r.dialled = false
			r.handler.OnConnect(nil)
		}
		if len(r.replies) > 0 {
			if n := r.handler.OnData(r.replies); n != len(r.replies) {
				panic("not all replies were consumed")
			}
			r.replies = r.replies[:0]
		}
	}
	h.OnFlush = r.answer
}

// Replies by the number of arguments: the one to HGETALL user:{id}, and the one to commands
// such as LRANGE follow:{id} 0 3.
var cannedReplies = map[byte]string{
	'2': "*4\r\n$4\r\nname\r\n$6\r\nuser 1\r\n$7\r\ncountry\r\n$2\r\nUS\r\n",
	'4': "*4\r\n$4\r\n1001\r\n$4\r\n1002\r\n$4\r\n1003\r\n$4\r\n1004\r\n",
}

// answer appends the replies to all commands.
func (r *cannedRedis) answer() {
	for rest := r.commands; len(rest) > 0; {
		r.replies = append(r.replies, cannedReplies[rest[1]]...)
		next := bytes.IndexByte(rest[1:], '*')
		if next < 0 {
			break
		}
		rest = rest[1+next:]
	}
	r.commands = r.commands[:0]
}

func (r *cannedRedis) Dial(_ string, _ transport.DialOptions, h transport.Handler) transport.Conn {
	r.handler, r.dialled = h, true
	return r
}

func (r *cannedRedis) Write(p []byte) error { r.commands = append(r.commands, p...); return nil }
func (r *cannedRedis) Unsent() int          { return len(r.commands) }
func (r *cannedRedis) Close(error) {
	r.loop.Post(func() { r.handler.OnClose(transport.ErrClosed) })
}
