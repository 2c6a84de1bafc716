package served

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/generation"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
)

// BenchmarkLine makes lines of 50 rows and ten columns, of which the type is in the name: "mixed" has four integers with a
// default, three strings, and three floats of full length, of which one is computed behind the node of the log.
func BenchmarkLine(b *testing.B) {
	for _, c := range []struct{ name, types string }{{"mixed", "iiiisssfff"}, {"int", "iiiiiiiiii"}, {"string", "ssssssssss"}, {"float", "ffffffffff"}} {
		b.Run(c.name, func(b *testing.B) {
			const rows = 50
			r := recordOf(b, c.types, rows)
			l := New(Config{To: io.Discard})
			var line []byte
			read := clock.NewThreadCPU()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			b.ReportAllocs()
			_, began := read()
			for b.Loop() {
				line = l.line(line[:0], r)
			}
			_, now := read()
			b.ReportMetric(float64(now-began)/float64(b.N*rows*len(c.types)), "cpu-ns/value")
			b.ReportMetric(float64(len(line)), "bytes/line")
		})
	}
}

// recordOf returns a record of that many rows, with a column for each letter of types: i, s or f. The answer has them in another order,
// as behind a sort.
func recordOf(b testing.TB, types string, rows int) *Record {
	tables := "[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n"
	for i, c := range types {
		kind := map[rune]string{'i': "int\"\ndefault = 0", 's': `string"`, 'f': `float"`}[c]
		tables += fmt.Sprintf("[[key]]\nid = %d\nname = \"column_%d\"\ntype = \"%s\nnullable = true\nwritable = true\n", 10+i, i, kind)
	}
	reg, err := registry.Load(fstest.MapFS{"keys.toml": {Data: []byte(tables)}, "params.toml": {}, "endpoints.test.toml": {}}, "test")
	require.NoError(b, err)
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("how a reactor ranks posts for users who follow many authors")
	ids, order := make([]int64, rows), make([]int32, rows)
	for i := range ids {
		ids[i], order[i] = 100_000+random.Int64N(900_000), int32(rows-1-i)
	}
	var columns []rowset.Column
	var filled []registry.KeyID
	for i, c := range types {
		key, _ := reg.Key(registry.KeyID(10 + i))
		switch c {
		case 'i':
			column := rowset.NewIntBuilder(key.ID, rows)
			for range rows {
				column.Append(random.Int64N(1_000_000))
			}
			columns, filled = append(columns, column.Column()), append(filled, key.ID)
		case 's':
			column := rowset.NewStringBuilder(key.ID, rows)
			for range rows {
				column.Append([]byte(words[random.IntN(len(words))] + " " + words[random.IntN(len(words))]))
			}
			columns = append(columns, column.Column())
		default:
			column := rowset.NewFloatBuilder(key.ID, rows)
			for range rows {
				column.Append(random.Float64())
			}
			columns = append(columns, column.Column())
		}
	}
	before := rowset.NewBatch(ids, columns[:len(columns)-1]...)
	node, scored := &plan.Node{ID: "rows"}, &plan.Node{ID: "scored", Index: 1}
	g := &plan.Graph{Name: "p", Digest: strings.Repeat("5f", 32), Registry: reg, Nodes: []*plan.Node{node, scored}, Outputs: []int{1},
		Log: &plan.Log{At: node, Behind: []registry.KeyID{columns[len(columns)-1].KeyID()}, Filled: filled}}
	behind := rowset.RowSet{Batch: rowset.NewBatch(ids, columns...), Rows: order, N: rows}
	return &Record{
		Served:     scheduler.Served{Node: node, Rows: rowset.Dense(before), Outputs: []rowset.RowSet{behind}},
		Generation: new(generation.Generation), Graph: g, Result: new(scheduler.Result), RequestID: "0d9c8a52-6d0e-4c0f-9b3e-2f4d1c7a9b10", ID: [16]byte{1}, UserID: 7,
		At: time.Date(2026, 11, 27, 22, 30, 0, 0, time.UTC), Elapsed: time.Millisecond,
	}
}
