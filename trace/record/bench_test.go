package record

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// feedLike makes a request of 30 nodes with ten columns each, and 200 replies of 200 bytes, half of which other requests have, too.
func feedLike(n int) *Request {
	q := &Request{ID: [16]byte{byte(n), byte(n >> 8)}, UserID: int64(n), Params: []byte(`{"count":50}`), Plan: "home", Runs: []Run{{Plan: "home"}}}
	for i := range 30 {
		node := Node{ID: fmt.Sprint("n", i), Op: "core::lookup", End: Ended, Rows: Rows{N: 500, IDs: Column{Name: "id", Digest: uint64(n * i)}}}
		for c := range 10 {
			node.Rows.Columns = append(node.Rows.Columns, Column{Name: fmt.Sprint("column_", c), Digest: uint64(n) << 32 * uint64(i)})
		}
		if i < 10 {
			for v := range 20 {
				reply := fmt.Appendf(nil, "*10\r\n%0190d", n*(v%2)*1000+i*20+v)
				node.Values = append(node.Values, Value{Kind: Reply, Bytes: reply})
			}
		}
		q.Runs[0].Nodes = append(q.Runs[0].Nodes, node)
	}
	return q
}

// BenchmarkAdd writes requests, and reports bytes of the file for each.
func BenchmarkAdd(b *testing.B) {
	var requests []*Request
	for n := range 1000 {
		requests = append(requests, feedLike(n))
	}
	b.ReportAllocs()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{Sample: 1})
	require.NoError(b, err)
	b.ResetTimer()
	for n := range b.N {
		requests[n%1000].UserID = int64(n)
		if err := w.Add(requests[n%1000], nil); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	require.NoError(b, w.Close())
	b.ReportMetric(float64(out.Len())/float64(b.N), "file-bytes/op")
}

// BenchmarkNext reads them.
func BenchmarkNext(b *testing.B) {
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{Sample: 1})
	require.NoError(b, err)
	for n := range 1000 {
		require.NoError(b, w.Add(feedLike(n), nil))
	}
	require.NoError(b, w.Close())
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		r, err := NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), ReadOptions{})
		require.NoError(b, err)
		for ; n < b.N; n++ {
			if _, err := r.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}
