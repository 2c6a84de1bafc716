package builtin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// tasks is the engines' view of package task.
var tasks = task.Engine(taskrun.Key{})

// sameReplies answers every command with the same bytes, as one part. It allocates nothing for
// a batch if it has answered one of that size before. One goroutine.
type sameReplies struct {
	taskrun.NoWaiter
	reply []byte
	batch resp.Batch
	known map[int]resp.Replies
	rest  resp.Replies
}

func (w *sameReplies) NewBatch() *resp.Batch {
	w.batch.Reset()
	return &w.batch
}

func (w *sameReplies) Do(_ *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	n := b.Len()
	if _, ok := w.known[n]; !ok {
		decoder := resp.NewDecoder(resp.Limits{})
		decoder.Reset(n)
		if _, _, err := decoder.Decode(bytes.Repeat(w.reply, n)); err != nil {
			return resp.Replies{}, err
		}
		w.known[n] = decoder.Replies()
	}
	return w.known[n], nil
}

func (w *sameReplies) Begin(ep *registry.Endpoint, b *resp.Batch) (err error) {
	w.rest, err = w.Do(ep, b)
	return err
}

func (w *sameReplies) Next() (int, resp.Replies, error) {
	part := w.rest
	w.rest = resp.Replies{}
	return 0, part, nil
}

func (w *sameReplies) Sleep(time.Duration) error { return nil }

// preparedRun returns a run of a task over rows. Every command is answered by the same bytes. A
// nil batch means no input.
func preparedRun(t testing.TB, spec task.Spec, params map[string]any, in rowset.RowSet, reply []byte) func() {
	t.Helper()
	reg := lookupRegistry()
	rows := task.Spec{Op: "test::rows", Output: task.Source, Run: func(*task.Ctx) (rowset.RowSet, error) { return in, nil }}
	catalog, err := tasks.NewTrustingCatalog([]task.Spec{spec, rows})
	require.NoError(t, err)
	inputs := []string{}
	if in.Batch != nil {
		inputs = append(inputs, "rows")
	}
	artifact, err := json.Marshal(map[string]any{"schema_version": 1, "plan_name": "p", "outputs": []string{"x"}, "nodes": []any{
		map[string]any{"node_id": "rows", "op": "test::rows", "inputs": []string{}},
		map[string]any{"node_id": "x", "op": spec.Op, "inputs": inputs, "params": params},
	}})
	require.NoError(t, err)
	graph, err := plan.Load("p", artifact, catalog, reg)
	require.NoError(t, err)
	c := &task.Ctx{Node: graph.Nodes[1], UserID: 42, Params: new(expr.Params), Registry: reg}
	tasks.Env(c).Waiter = &sameReplies{reply: reply, known: make(map[int]resp.Replies)}
	if in.Batch != nil {
		c.Inputs = []rowset.RowSet{in}
	}
	return func() {
		if _, err := tasks.Invoke(tasks.SpecOf(c.Node), c); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkLookup measures all of a lookup except Redis: commands, replies that are already
// decoded, columns. With memory, all rows hit the engine's table.
func BenchmarkLookup(b *testing.B) {
	texts := map[string]string{
		"likes": "53120", "i1": "823411", "at": "1793412098", "i2": "5310", "price": "53.21", "f1": "0.53120984012948012", "title": "Title of item 312", "premium": "1",
	}
	for _, fields := range [][]any{{"likes"}, {"likes", "i1", "at", "i2", "price", "f1", "title"}, {"likes", "i1", "at", "i2", "price", "f1", "title", "premium"}} {
		reply := fmt.Appendf(nil, "*%d\r\n", len(fields))
		for _, field := range fields {
			text := texts[field.(string)]
			reply = fmt.Appendf(reply, "$%d\r\n%s\r\n", len(text), text)
		}
		params := map[string]any{"endpoint": "ep_0001", "key": "item:{id}", "fields": fields}
		for _, rows := range []int{100, 10_000} {
			for _, memory := range []bool{false, true} {
				b.Run(fmt.Sprintf("columns=%d/rows=%d/memory=%v", len(fields), rows, memory), func(b *testing.B) {
					ids := make([]int64, rows)
					for i := range ids {
						ids[i] = int64(i * 7)
					}
					spec := specOf(b, "lookup")
					if memory {
						spec = withTable(spec, rowcache.NewTable(64<<20, time.Hour))
					}
					run := preparedRun(b, spec, params, rankdtest.Rows(ids...), reply)
					run() // It fills the table.
					b.ReportAllocs()
					for b.Loop() {
						run()
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
				})
			}
		}
	}
}
