package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// watchBatches returns the built-in tasks; watch is told of each new batch that a body makes,
// on the goroutine that made it.
func watchBatches(watch func(c *task.Ctx, made *rowset.Batch)) []task.Spec {
	watched := func(body task.Body) task.Body {
		return func(c *task.Ctx) (rowset.RowSet, error) {
			out, err := body(c)
			given := slices.ContainsFunc(slices.Concat(c.Inputs, c.Refs), func(in rowset.RowSet) bool { return in.Batch == out.Batch })
			if err == nil && !given {
				watch(c, out.Batch)
			}
			return out, err
		}
	}
	specs, tasks := builtin.Specs(), task.Engine(taskrun.Key{})
	for i := range specs {
		specs[i] = tasks.WithBody(specs[i], watched(tasks.Body(specs[i])))
	}
	return specs
}

// finiteLists is the world of resptest.Followers with lists of 0 to 6 entries.
func finiteLists(args []string) []byte {
	if strings.EqualFold(args[0], "LRANGE") {
		_, digits, _ := strings.Cut(args[1], ":")
		id, _ := strconv.Atoi(digits)
		entries := id % 7
		if last, _ := strconv.Atoi(args[3]); entries == 0 {
			return []byte("*0\r\n")
		} else if last >= entries {
			args = []string{args[0], args[1], args[2], strconv.Itoa(entries - 1)}
		}
	}
	return resptest.Followers(args)
}

// randomPlan writes a plan of all tasks that make or select rows.
func randomPlan(rng *rand.Rand) string {
	const rowsMax = 400 // of a node
	var nodes, outputs []string
	var rows []int // of each node, at most
	add := func(n int, op, input, params string, args ...any) {
		id := fmt.Sprintf("n%d", len(nodes))
		nodes = append(nodes, fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": [%s], "params": {%s}}`,
			id, op, input, fmt.Sprintf(params, args...)))
		rows = append(rows, n)
		outputs = append(outputs, strconv.Quote(id))
	}
	source := func() {
		if rng.IntN(2) == 0 {
			add(1, "viewer", "", `"endpoint": "ep_0001"`)
			return
		}
		n := rng.IntN(30)
		add(n, "fixed_source", "", `"row_count": %d`, n)
	}
	source()
	for range 3 + rng.IntN(9) {
		in, rhs := rng.IntN(len(rows)), rng.IntN(len(rows))
		input, n := fmt.Sprintf(`"n%d"`, in), rows[in]
		fanout := 1 + rng.IntN(8)
		switch kind := rng.IntN(10); {
		case kind == 0:
			source()
		case kind < 4 && n*fanout < rowsMax:
			add(n*fanout, []string{"follow", "recommendation", "media"}[rng.IntN(3)], input,
				`"endpoint": "ep_0001", "fanout": %d`, fanout)
		case kind < 6 && n+rows[rhs] < rowsMax:
			add(n+rows[rhs], "concat", input, `"rhs": "n%d"`, rhs)
		case kind == 6:
			add(n, "filter", input, `"pred_id": "odd"`)
		case kind == 7:
			add(n, "sort", input, `"by": 1, "order": "desc"`)
		case kind == 8:
			add(min(n, fanout), "take", input, `"count": %d`, fanout)
		default:
			add(n, "vm", input, `"out_key": 2001, "expr_id": "e"`)
		}
	}
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": "random", "nodes": [%s], "outputs": [%s],
		"expr_table": {"e": {"op": "neg", "x": {"op": "key_ref", "key_id": 1}}},
		"pred_table": {"odd": {"op": "in", "lhs": {"op": "key_ref", "key_id": 1}, "list": [1, 3, 5, 7, 9, 8003, 8005]}}}`,
		strings.Join(nodes, ", "), strings.Join(outputs, ", "))
}

// answerText writes all that an answer holds.
func answerText(r *scheduler.Result) string {
	var b strings.Builder
	for _, out := range r.Outputs {
		b.WriteString("\n")
		scores, countries := out.Batch.Float(2001), out.Batch.String(keyCountry)
		for i := range out.Len() {
			row := int(out.Row(i))
			fmt.Fprint(&b, out.Batch.IDs[row])
			if scores != nil && scores.Valid.Get(row) {
				fmt.Fprint(&b, "=", scores.Values[row])
			}
			if countries != nil {
				country, _ := countries.Value(row)
				b.WriteString(country)
			}
			b.WriteString(" ")
		}
	}
	return b.String()
}

// TestMaxRowsHoldsOnRandomPlans: if the rows of all batches stay within the bound, an engine
// gives the same answer as without one. Otherwise the request fails with a *task.RowsError of
// some node. A request never makes more rows than the bound. Requests that run at the same time
// have a bound each.
func TestMaxRowsHoldsOnRandomPlans(t *testing.T) {
	server, err := resptest.NewServer(finiteLists)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	reg := registryAt(t, server.Addr(), "")
	const users = 6
	var made [users + 1]atomic.Int64 // by the request of each user
	tasks, err := task.NewCatalog(watchBatches(func(c *task.Ctx, b *rowset.Batch) {
		made[c.UserID].Add(int64(b.Len()))
	})...)
	require.NoError(t, err)
	// all runs the plan for all users at once.
	all := func(e engine, g *plan.Graph) (results [users + 1]*scheduler.Result) {
		var done sync.WaitGroup
		for user := range int64(users) {
			made[user+1].Store(0)
			done.Go(func() { results[user+1], _ = run(e, g, user+1, 0) })
		}
		done.Wait()
		return results
	}
	unbounded := closing(t, blocking.OpenSequential(scheduler.Config{Registry: reg}))
	answers, refusals := 0, 0
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 0))
		text := randomPlan(rng)
		g, err := plan.Load("random.plan.json", []byte(text), tasks, reg)
		require.NoError(t, err)
		var want [users + 1]string
		var rows [users + 1]int64
		for user, r := range all(unbounded, g) {
			if user > 0 {
				require.NoError(t, r.Err)
				want[user], rows[user] = answerText(r), made[user].Load()
			}
		}
		some := max(1, int(rows[1+rng.IntN(users)]))
		for _, bound := range []int{some, some + 1, max(1, some-1), 1 + rng.IntN(some)} {
			for _, en := range engines {
				e := en.open(t, scheduler.Config{Registry: reg, MaxRows: bound})
				for user, r := range all(e, g) {
					if user == 0 {
						continue
					}
					about := fmt.Sprintf("seed %d, %s, user %d, bound %d of %d rows\n%s", seed, en.name, user, bound, rows[user], text)
					require.LessOrEqual(t, made[user].Load(), int64(bound), about)
					if rows[user] <= int64(bound) {
						require.NoError(t, r.Err, about)
						require.Equal(t, want[user], answerText(r), about)
						answers++
						continue
					}
					requireTooManyRows(t, r, bound, about)
					refusals++
				}
				e.Close(scheduler.Forever)
			}
		}
	}
	assert.Greater(t, answers, 200)
	assert.Greater(t, refusals, 200)
}

func requireTooManyRows(t *testing.T, r *scheduler.Result, bound int, about string) {
	t.Helper()
	require.ErrorIs(t, r.Err, task.ErrTooManyRows, about)
	var node *scheduler.NodeError
	require.ErrorAs(t, r.Err, &node, about)
	var rows *task.RowsError
	require.ErrorAs(t, r.Err, &rows, about)
	require.Equal(t, int64(bound), rows.Limit, about)
	require.Greater(t, rows.Rows, rows.Left, about)
	for _, name := range []string{node.Node, strconv.Itoa(bound), "max_rows"} {
		require.ErrorContains(t, r.Err, name, about)
	}
	require.Nil(t, r.Outputs, about)
}

// TestThirtyLargeSources: sources whose rows would take 24 GB take next to no memory.
func TestThirtyLargeSources(t *testing.T) {
	reg := registryAt(t, "127.0.0.1:1", "")
	nodes := make([]string, 30)
	for i := range nodes {
		nodes[i] = fmt.Sprintf(`{"node_id": "s%d", "op": "fixed_source", "inputs": [], "params": {"row_count": 100000000}}`, i)
	}
	g := loadPlan(t, reg, strings.Join(nodes, ",")+`, {"node_id": "out", "op": "take", "inputs": ["s0"], "params": {"count": 1}}`)
	for _, en := range engines {
		t.Run(en.name, func(t *testing.T) {
			e := en.open(t, scheduler.Config{Registry: reg})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, _ := run(e, g, user, 0)
			runtime.ReadMemStats(&after)
			requireTooManyRows(t, r, task.DefaultMaxRows, "")
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(10<<20))
		})
	}
}

// TestARefusedRequestIsLetGo: after a request has failed by the bound, the garbage collector
// frees all that it made, whatever its caller does with the error.
func TestARefusedRequestIsLetGo(t *testing.T) {
	server, err := resptest.NewServer(resptest.Followers)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	reg := registryAt(t, server.Addr(), "")
	var mu sync.Mutex
	var made []weak.Pointer[rowset.Batch]
	watched, err := task.NewCatalog(watchBatches(func(_ *task.Ctx, b *rowset.Batch) {
		mu.Lock()
		defer mu.Unlock()
		made = append(made, weak.Make(b))
	})...)
	require.NoError(t, err)
	const nodes = `
		{"node_id": "me", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
		{"node_id": "friends", "op": "follow", "inputs": ["me"], "params": {"endpoint": "ep_0001", "fanout": 50}},
		{"node_id": "small", "op": "fixed_source", "inputs": [], "params": {"row_count": 1000}},
		{"node_id": "large", "op": "fixed_source", "inputs": [], "params": {"row_count": 10000}},
		{"node_id": "sorted", "op": "sort", "inputs": ["large"], "params": {"by": 1, "order": "desc"}},
		{"node_id": "both", "op": "concat", "inputs": ["sorted"], "params": {"rhs": "small"}},
		{"node_id": "all", "op": "concat", "inputs": ["both"], "params": {"rhs": "friends"}},
		{"node_id": "twice", "op": "concat", "inputs": ["all"], "params": {"rhs": "all"}},
		{"node_id": "out", "op": "concat", "inputs": ["twice"], "params": {"rhs": "me"}}`
	g, err := plan.Load("test.plan.json", fmt.Appendf(nil,
		`{"schema_version": 1, "plan_name": "test", "nodes": [%s], "outputs": ["out", "both", "small"]}`, nodes), watched, reg)
	require.NoError(t, err)
	for _, en := range engines {
		t.Run(en.name, func(t *testing.T) {
			made = nil
			e := en.open(t, scheduler.Config{Registry: reg, MaxRows: 40_000}) // "twice" is one too many
			r, _ := run(e, g, user, 0)
			requireTooManyRows(t, r, 40_000, "")
			var node *scheduler.NodeError
			require.ErrorAs(t, r.Err, &node)
			assert.Equal(t, "twice", node.Node)
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, made, 6)
			// A worker that has handed over its result may not have returned yet.
			assert.Eventually(t, func() bool {
				runtime.GC()
				return !slices.ContainsFunc(made, func(p weak.Pointer[rowset.Batch]) bool { return p.Value() != nil })
			}, slack, time.Millisecond)
			runtime.KeepAlive(r)
		})
	}
}
