package scheduler_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/internal/testing/schedulertest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
	"github.com/rankd/rankd/trace"
)

// A turn is what the loop does for a body between two waits of that body, in one callback.
type turn struct{ commands, entries, rows, texts int64 }

// turns notes the largest turns of all bodies. Any goroutine.
type turns struct {
	mu   sync.Mutex
	most map[string]turn // by op
}

// of returns spec with a body whose turns are counted.
func (ts *turns) of(spec task.Spec) task.Spec {
	tasks := task.Engine(taskrun.Key{})
	run := tasks.Body(spec)
	return tasks.WithBody(spec, func(c *task.Ctx) (rowset.RowSet, error) {
		env := tasks.Env(c)
		w := &turnWaiter{Waiter: env.Waiter, all: ts, op: spec.Op, c: c}
		w.begin()
		env.Waiter = w
		defer func() { env.Waiter = w.Waiter }()
		out, err := run(c)
		w.end()
		return out, err
	})
}

// turnWaiter counts the turns of one body, which alone uses it.
type turnWaiter struct {
	taskrun.Waiter
	all         *turns
	op          string
	c           *task.Ctx
	now         turn
	rows, texts int64 // when the turn began
}

func (w *turnWaiter) numbered() int64 {
	if ids := w.c.Params.IDs(); ids != nil {
		return int64(ids.Texts().Len())
	}
	return 0
}

func (w *turnWaiter) begin() { w.now, w.rows, w.texts = turn{}, w.c.RowsLeft(), w.numbered() }

func (w *turnWaiter) end() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	m := w.all.most[w.op]
	w.all.most[w.op] = turn{max(m.commands, w.now.commands), max(m.entries, w.now.entries), max(m.rows, w.rows-w.c.RowsLeft()),
		max(m.texts, w.numbered()-w.texts)}
}

func (w *turnWaiter) got(replies resp.Replies) {
	w.begin()
	for _, reply := range replies.All() {
		w.now.entries += int64(max(1, reply.Len()))
	}
}

func (w *turnWaiter) Compute(fn func()) error {
	w.end()
	defer w.begin()
	return w.Waiter.(taskrun.Computer).Compute(fn)
}

func (w *turnWaiter) Begin(ep *registry.Endpoint, b *resp.Batch) error {
	w.now.commands += int64(b.Len())
	return w.Waiter.Begin(ep, b)
}

func (w *turnWaiter) Do(ep *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	w.now.commands += int64(b.Len())
	w.end()
	replies, err := w.Waiter.Do(ep, b)
	w.got(replies)
	return replies, err
}

func (w *turnWaiter) Next() (int, resp.Replies, error) {
	w.end()
	from, replies, err := w.Waiter.Next()
	w.got(replies)
	return from, replies, err
}

// keptOf are the rows of any plan.
type keptOf taskrun.Resident

func (k *keptOf) Resident(string) (*taskrun.Resident, error) { return (*taskrun.Resident)(k), nil }

// traced is runOn with what ran where.
func traced(e scheduler.Engine, x *scheduler.Execution) (r *scheduler.Result, t *trace.Trace) {
	x.Record = trace.Full
	ended := make(chan struct{})
	e.Submit(x, func(result *scheduler.Result) {
		r, t = result, result.Recording.Trace()
		close(ended)
	})
	<-ended
	return r, t
}

// TestTurnsAreBounded: however much a request reads, the loop does a bounded part of it in one callback. It counts
// commands, entries of replies, rows and numbered texts, and no time. A node that computes, or makes rows without a wait, has
// few on the loop until it was measured.
func TestTurnsAreBounded(t *testing.T) {
	const n, entriesMax = 100_000, 10_000 // one list, or the replies of a part; builtin.listPart
	redis, err := resptest.NewServer(func(args []string) []byte {
		switch args[0] {
		case "LRANGE":
			from, _ := strconv.Atoi(args[2])
			to, _ := strconv.Atoi(args[3])
			to = min(to+1, n)
			list := redcon.AppendArray(nil, max(0, to-from))
			for i := from; i < to; i++ {
				list = redcon.AppendBulkString(list, "sku-"+strconv.Itoa(i))
			}
			return list
		case "HMGET":
			return redcon.AppendBulkString(redcon.AppendArray(nil, 1), "1.5")
		}
		return redcon.AppendOK(nil)
	})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	folder := registrytest.Tables{Keys: registrytest.BuiltIn().Keys, Params: registrytest.BuiltIn().Params,
		Endpoints: registrytest.Redis + "[endpoint.policy]\nrequest_timeout_ms = 60000\n"}.FS()
	folder["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"product\"\nid = \"string\"\n")}
	reg, err := registry.Load(folder, "test")
	require.NoError(t, err)
	server, err := registry.ParseServer(redis.Addr())
	require.NoError(t, err)
	reg = reg.WithRedis(server)

	ts := &turns{most: make(map[string]turn)}
	var specs []task.Spec
	for _, spec := range builtin.Specs() {
		specs = append(specs, ts.of(spec))
	}
	catalog, err := task.NewCatalog(specs...)
	require.NoError(t, err)
	kept := &keptOf{IDs: rowset.NewIDDict()}
	kept.Entity, _ = reg.Entity("product")
	texts := make([][]byte, n)
	for i := range texts {
		texts[i] = fmt.Appendf(nil, "sku-%d", i+n/2) // Half of them are in the list.
	}
	ids, err := kept.IDs.Number(nil, texts...)
	require.NoError(t, err)
	kept.Rows = rowset.Dense(rowset.NewBatch(ids))
	e := openAsync(t, scheduler.Config{Registry: reg, MaxRows: 100 * n})
	for _, mode := range []plan.Mode{plan.Adaptive, plan.OffloadAll} {
		clear(ts.most)
		g := schedulertest.GraphFor(t, reg, catalog, "last",
			schedulertest.Node("list", "candidates", "", fmt.Sprintf(`"endpoint": "ep_0001", "key": "items", "entity": "product", "limit": %d`, n), ""),
			schedulertest.Node("looked", "lookup", "list", `"endpoint": "ep_0001", "key": "item:{id}", "fields": ["final_score"], "missing": "drop"`, ""),
			schedulertest.Node("kept", "resident", "", `"plan": "items", "entity": "product"`, ""),
			strings.Replace(schedulertest.Node("both", "union", "looked", "", ""), `["looked"]`, `["looked", "kept"]`, 1),
			schedulertest.Node("all", "dedupe", "both", "", ""),
			schedulertest.Node("short", "candidates", "", `"endpoint": "ep_0001", "key": "items", "entity": "product", "limit": 100`, ""),
			schedulertest.Node("few", "take", "short", `"count": 50`, ""),
			strings.Replace(schedulertest.Node("last", "union", "all", "", ""), `["all"]`, `["all", "few"]`, 1))
		x := &scheduler.Execution{Graph: g, UserID: 1, Residents: kept, Mode: mode, Params: expr.Params{}}
		x.Params.SetIDs(kept.IDs.Extend())
		r, ran := traced(e, x)
		require.NoError(t, r.Err)
		t.Log(mode, ts.most)
		assert.Zero(t, ts.most["core::resident"].texts, "rows that the engine keeps have their numbers")
		assert.Positive(t, ts.most["core::candidates"].texts)
		for _, op := range []string{"core::candidates", "core::lookup"} { // on the loop
			most := ts.most[op]
			assert.Positive(t, most.entries)
			assert.LessOrEqual(t, most.commands, int64(task.PartCommands), op)
			assert.LessOrEqual(t, most.entries, int64(entriesMax), op)
			assert.LessOrEqual(t, most.texts, int64(entriesMax), op)
			assert.LessOrEqual(t, most.rows, int64(entriesMax), op)
		}
		computed := map[trace.Place]int{}
		for _, node := range ran.Nodes {
			if node.ID == "all" {
				assert.Equal(t, n+n/2, node.RowsOut, "equal texts are equal ids")
			}
			if node.Op == "core::candidates" || node.Op == "core::lookup" {
				assert.Equal(t, trace.OnLoop, node.Place, node.ID)
				continue
			}
			if computed[node.Place]++; node.Place == trace.OnPool {
				continue
			}
			assert.Equal(t, plan.Adaptive, mode, "%s: nodes that compute stay off the loop", node.ID)
			assert.LessOrEqual(t, node.RowsIn, scheduler.FirstRowsMax, node.ID)
			assert.LessOrEqual(t, node.RowsOut, max(node.RowsIn, scheduler.LoopRowsMax), node.ID)
		}
		assert.Equal(t, mode == plan.Adaptive, computed[trace.Inline] > 0, "some have few rows")
		assert.GreaterOrEqual(t, computed[trace.OnPool], 3)
	}
}
