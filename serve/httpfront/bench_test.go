package httpfront

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/serve"
)

// inFlight is how many requests the benchmarks have in flight.
const inFlight = 64

// cpuTime returns the processor time of the process, which includes that of the clients of the
// benchmarks.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measure runs b.N requests over that many connections, each by one call of ask. It reports the
// processor time per request.
func measure(b *testing.B, connections int, ask func(i int)) {
	var left sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for i := range connections {
		left.Go(func() {
			for range b.N/connections + 1 {
				ask(i)
			}
		})
	}
	left.Wait()
	b.ReportMetric(float64(cpuTime(b)-before)/float64((b.N/connections+1)*connections), "cpu-ns/op")
}

// overHTTP measures a server at addr, with connections that send one text and read answers of
// one length.
func overHTTP(b *testing.B, addr string) {
	for _, connections := range []int{1, inFlight} {
		b.Run(strconv.Itoa(connections), func(b *testing.B) {
			text := []byte(post("/v1/rank/one", `{"user_id": 1, "request_id": "r"}`))
			conns := make([]net.Conn, connections)
			lengths := make([]int, connections)
			for i := range conns {
				nc, err := net.Dial("tcp", addr)
				require.NoError(b, err)
				defer nc.Close()
				conns[i] = nc
				_, err = nc.Write(text)
				require.NoError(b, err)
				answer := make([]byte, 4096)
				lengths[i], err = nc.Read(answer)
				require.NoError(b, err)
				require.Contains(b, string(answer[:lengths[i]]), `"candidates":[{"id":1}]`)
			}
			buffers := make([][]byte, connections)
			for i := range buffers {
				buffers[i] = make([]byte, lengths[i])
			}
			measure(b, connections, func(i int) {
				_, err := conns[i].Write(text)
				if err == nil {
					_, err = io.ReadFull(conns[i], buffers[i])
				}
				if err != nil || !bytes.HasSuffix(buffers[i], []byte("]}")) {
					panic(fmt.Sprint(err, string(buffers[i])))
				}
			})
		})
	}
}

// BenchmarkRank measures a request over HTTP to the front, with its client.
func BenchmarkRank(b *testing.B) { overHTTP(b, startFront(b).addr) }

// BenchmarkNetHTTP measures the same request to net/http, with a handler that does no more than
// the front does. The handler leaves out tokens, framing, limits and deadlines.
func BenchmarkNetHTTP(b *testing.B) {
	s := startFront(b)
	type exchange struct {
		query    *serve.Query
		answered chan struct{}
		body     bytes.Buffer
		out      []byte
	}
	pool := sync.Pool{New: func() any {
		x := &exchange{answered: make(chan struct{}, 1)}
		x.query = s.service.NewQuery(serve.HTTP, func(*serve.Query) { x.answered <- struct{}{} })
		return x
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/rank/{plan}", func(w http.ResponseWriter, r *http.Request) {
		x := pool.Get().(*exchange)
		defer pool.Put(x)
		x.body.Reset()
		_, _ = x.body.ReadFrom(r.Body)
		q := x.query
		q.Caller, q.Plan, q.Body = s.front.store.Anonymous(), []byte(r.PathValue("plan")), x.body.Bytes()
		s.service.Ask(q)
		<-x.answered
		x.out = q.Reply.AppendBody(x.out[:0])
		w.Header().Set("Content-Type", typeJSON)
		w.Header().Set("X-Request-Id", q.Reply.RequestID)
		w.WriteHeader(q.Reply.Class.Status())
		_, _ = w.Write(x.out)
		q.Release()
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	server := &http.Server{Handler: mux}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	overHTTP(b, l.Addr().String())
	require.NoError(b, server.Close())
	<-served
}

// BenchmarkInProcess measures the same request to the engine, without a front.
func BenchmarkInProcess(b *testing.B) {
	s := startFront(b)
	for _, connections := range []int{1, inFlight} {
		b.Run(strconv.Itoa(connections), func(b *testing.B) {
			answered := make([]chan *rankd.Answer, connections)
			out := make([][]byte, connections)
			for i := range answered {
				answered[i] = make(chan *rankd.Answer, 1)
			}
			measure(b, connections, func(i int) {
				s.engine.Submit(context.Background(), rankd.Request{Plan: "one", UserID: 1, ID: "r"}, func(a *rankd.Answer, err error) { answered[i] <- a })
				out[i] = (<-answered[i]).AppendJSON(out[i][:0], rankd.FormatFlat)
			})
		})
	}
}

// BenchmarkEcho measures the cost of sockets and client: its server reads the same bytes and
// writes an answer of the same length.
func BenchmarkEcho(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer l.Close()
	reply := []byte("HTTP/1.1 200 OK\r\nContent-Length: 102\r\n\r\n" + `{"request_id":"r","engine_request_id":"0d9a6cbb-7efa-4c8c-b40a-4ad7dbb26cf6","candidates":[{"id":1}]}`)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				r := bufio.NewReader(nc)
				for {
					if _, err := r.Peek(1); err != nil {
						return
					}
					_, _ = r.Discard(r.Buffered())
					_, _ = nc.Write(reply)
				}
			}()
		}
	}()
	overHTTP(b, l.Addr().String())
}

// BenchmarkHead measures what the front needs to find the end of a request and to read its
// head. The request has some 200 bytes with six fields. The benchmark HTTPParsers of
// bench/peers has the same request.
func BenchmarkHead(b *testing.B) {
	text := []byte("POST /v1/rank/feed HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\nContent-Length: 14\r\n" +
		"X-Request-Id: 0d9a6cbb-7efa-4c8c-b40a-4ad7dbb26cf6\r\nContent-Type: application/json\r\n\r\n" + `{"user_id": 1}`)
	b.ReportAllocs()
	var c codec
	for b.Loop() {
		n, whole := c.findEnd(text)
		c.line, c.looked = 0, 0
		if !whole || c.head.parse(text[:n]) != "" || c.head.id() == nil || c.head.length != 14 {
			b.Fatal("refused")
		}
	}
}
