package peers

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"
)

// httpRequest is a request of some 200 bytes with six fields. The benchmark Head of
// serve/httpfront has the same request.
const httpRequest = "POST /v1/rank/feed HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\nContent-Length: 14\r\n" +
	"X-Request-Id: 0d9a6cbb-7efa-4c8c-b40a-4ad7dbb26cf6\r\nContent-Type: application/json\r\n\r\n" + `{"user_id": 1}`

// BenchmarkHTTPParsers measures what the libraries need for one request, head and body. The
// buffer has the whole request.
func BenchmarkHTTPParsers(b *testing.B) {
	text := []byte(httpRequest)
	source := bytes.NewReader(nil)
	buffered := bufio.NewReader(source)
	b.Run("fasthttp", func(b *testing.B) {
		var r fasthttp.Request
		b.ReportAllocs()
		for b.Loop() {
			source.Reset(text)
			buffered.Reset(source)
			if err := r.Read(buffered); err != nil || len(r.Body()) != 14 || r.Header.Peek("X-Request-Id") == nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("net/http", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			source.Reset(text)
			buffered.Reset(source)
			r, err := http.ReadRequest(buffered)
			if err != nil {
				b.Fatal(err)
			}
			if body, err := io.ReadAll(r.Body); err != nil || len(body) != 14 {
				b.Fatal(err)
			}
		}
	})
}
