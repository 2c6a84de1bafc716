package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

func batchOf(ids ...int64) *rowset.Batch { return &rowset.Batch{IDs: ids} }

// fakeRedis is a Waiter whose Redis answers at once.
type fakeRedis struct {
	answer  resptest.Answer
	batch   resp.Batch
	decoder *resp.Decoder
	sent    [][]string // the commands of each batch
	rest    resp.Replies
	from    int
}

func (r *fakeRedis) NewBatch() *resp.Batch {
	r.batch.Reset()
	return &r.batch
}

func (r *fakeRedis) Do(_ *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	var replies []byte
	var commands []string
	raw := slices.Clone(b.Encoded())
	for len(raw) > 0 {
		_, args, _, rest, err := redcon.ReadNextCommand(raw, nil)
		if err != nil {
			return resp.Replies{}, err
		}
		var words []string
		for _, arg := range args {
			words = append(words, string(arg))
		}
		commands = append(commands, strings.Join(words, " "))
		replies = append(replies, r.answer(words)...)
		raw = rest
	}
	r.sent = append(r.sent, commands)
	r.decoder = resp.NewDecoder(resp.Limits{})
	r.decoder.Reset(b.Len())
	if _, done, err := r.decoder.Decode(replies); err != nil || !done {
		return resp.Replies{}, errors.Join(err, errors.New("incomplete"))
	}
	return r.decoder.Replies(), nil
}

func (r *fakeRedis) Begin(ep *registry.Endpoint, b *resp.Batch) (err error) {
	r.rest, err = r.Do(ep, b)
	r.from = 0
	return err
}

// Next gives three replies at a time.
func (r *fakeRedis) Next() (from int, part resp.Replies, err error) {
	from, r.from = r.from, min(r.from+3, r.rest.Len())
	return from, r.rest.Slice(from, r.from), nil
}

func (r *fakeRedis) Exchange(*registry.Endpoint, *remote.Exchange) error { panic("no service") }

func (r *fakeRedis) Sleep(time.Duration) error { return nil }

func (r *fakeRedis) Await(fn func() error) error { return fn() }

// listsOf answers as resptest.Followers does, from lists with that many entries.
func listsOf(entries int) resptest.Answer {
	return func(args []string) []byte {
		if last, err := strconv.Atoi(args[len(args)-1]); err == nil && last >= entries {
			if entries == 0 {
				return redcon.AppendArray(nil, 0)
			}
			args = append(slices.Clone(args[:len(args)-1]), strconv.Itoa(entries-1))
		}
		return resptest.Followers(args)
	}
}

// ctxOf returns what a body needs to run a node of that op with those parameters, except for
// its inputs.
func ctxOf(t testing.TB, op, params string, more ...task.Spec) *task.Ctx {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	catalog, err := task.NewCatalog(append(Specs(), more...)...)
	require.NoError(t, err)
	inputs := `"in"`
	if s, ok := catalog.OpSchema(op); ok && s.Impl.(*task.Spec).Inputs == 0 {
		inputs = ""
	}
	g, err := plan.Load("p.plan.json", fmt.Appendf(nil, `{"schema_version": 1, "plan_name": "p", "outputs": ["out"],
		"nodes": [{"node_id": "in", "op": "fixed_source", "inputs": []},
			{"node_id": "out", "op": %q, "inputs": [%s], "params": {%s}}],
		"expr_table": {"e": {"op": "key_ref", "key_id": 1}},
		"pred_table": {"p": {"op": "cmp", "cmp": "<", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 3}}}}`,
		op, inputs, params), catalog, reg)
	require.NoError(t, err)
	c := &task.Ctx{Node: g.Nodes[1], UserID: 1, Params: new(expr.Params), Registry: reg}
	tasks.Env(c).Waiter = &fakeRedis{answer: listsOf(1 << 30)}
	return c
}

const endpoint = `"endpoint": "ep_0001"`

// TestEachNewBatchCounts: all rows of a new batch count, active or not. Those of a selection do
// not.
func TestEachNewBatchCounts(t *testing.T) {
	five := rowset.Dense(batchOf(1, 2, 3, 4, 5))
	two := rowset.RowSet{Batch: five.Batch, Rows: []int32{4, 1}, N: 2}
	uncounted := func(out func(c *task.Ctx) rowset.RowSet) task.Spec {
		return task.Spec{Op: "test::uncounted", Inputs: 1, Output: task.Expand,
			Run: func(c *task.Ctx) (rowset.RowSet, error) { return out(c), nil }}
	}
	seven := uncounted(func(*task.Ctx) rowset.RowSet { return rowset.Dense(batchOf(1, 2, 3, 4, 5, 6, 7)) })
	reference := uncounted(func(c *task.Ctx) rowset.RowSet { return c.Refs[0] })
	half := uncounted(func(c *task.Ctx) rowset.RowSet {
		_ = c.MakeRows(3)
		return rowset.Dense(batchOf(1, 2, 3, 4, 5, 6, 7))
	})
	for _, c := range []struct {
		name, op, params string
		in, ref          rowset.RowSet
		more             []task.Spec
		want             int
	}{
		{name: "source", op: "fixed_source", params: `"row_count": 5`, want: 5},
		{name: "source of none", op: "fixed_source", params: `"row_count": 0`, want: 0},
		{name: "viewer", op: "viewer", params: endpoint, want: 1},
		{name: "follow", op: "follow", params: endpoint + `, "fanout": 3`, in: two, want: 6},
		{name: "recommendation", op: "recommendation", params: endpoint + `, "fanout": 2`, in: five, want: 10},
		{name: "media", op: "media", params: endpoint + `, "fanout": 4`, in: two, want: 8},
		{name: "concat", op: "concat", params: `"rhs": "in"`, in: two, ref: five, want: 7},
		{name: "vm", op: "vm", params: `"out_key": 2001, "expr_id": "e"`, in: five, want: 5},
		{name: "vm of a selection", op: "vm", params: `"out_key": 2001, "expr_id": "e"`, in: two, want: 5},
		{name: "filter", op: "filter", params: `"pred_id": "p"`, in: five},
		{name: "sort", op: "sort", params: `"by": 1, "order": "desc"`, in: five},
		{name: "take", op: "take", params: `"count": 2`, in: five},
		{name: "sleep", op: "sleep", params: `"duration_ms": 1`, in: five},
		{name: "busy_cpu", op: "busy_cpu", params: `"busy_wait_ms": 0`, in: five},
		{name: "a task that does not count", op: "uncounted", in: two, more: []task.Spec{seven}, want: 7},
		{name: "a task that counts half of them", op: "uncounted", in: two, more: []task.Spec{half}, want: 7},
		{name: "a task that returns its reference", op: "uncounted", in: rowset.Dense(batchOf(9)), ref: five, more: []task.Spec{reference}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := ctxOf(t, c.op, c.params, c.more...)
			if tasks.SpecOf(ctx.Node).Inputs > 0 {
				ctx.Inputs = []rowset.RowSet{c.in}
			}
			if c.ref.Batch != nil {
				ctx.Refs = []rowset.RowSet{c.ref}
			}
			unbounded, err := invoke(ctx)
			require.NoError(t, err)
			for range 2 { // the second run of a context has its own count
				tasks.Env(ctx).Request = &taskrun.Request{Rows: tasks.NewRowBudget(100)}
				out, err := invoke(ctx)
				require.NoError(t, err)
				assert.Equal(t, 100-c.want, int(ctx.RowsLeft()))
				assert.Equal(t, unbounded, out)
			}
			if c.want == 0 {
				return
			}
			tasks.Env(ctx).Request = &taskrun.Request{Rows: tasks.NewRowBudget(c.want)}
			_, err = invoke(ctx)
			assert.NoError(t, err, "just enough")
			tasks.Env(ctx).Request = &taskrun.Request{Rows: tasks.NewRowBudget(c.want)}
			require.NoError(t, ctx.MakeRows(1))
			_, err = invoke(ctx)
			assert.ErrorIs(t, err, task.ErrTooManyRows, "one too few")
			assert.ErrorContains(t, err, "max_rows")
		})
	}
}

// TestRowsAreCountedBeforeMemoryIsAllocated asks for more rows than any machine can hold.
func TestRowsAreCountedBeforeMemoryIsAllocated(t *testing.T) {
	huge := rowset.RowSet{Batch: batchOf(), N: math.MaxInt / 4} // the rows do not exist, only their number does
	million := rowset.Dense(batchOf(make([]int64, 1e6)...))
	for _, c := range []struct {
		op, params string
		in         rowset.RowSet
	}{
		{"fixed_source", `"row_count": 9223372036854775807`, rowset.RowSet{}},
		{"fixed_source", `"row_count": 100000000`, rowset.RowSet{}},
		{"concat", `"rhs": "in"`, huge},
		{"vm", `"out_key": 2001, "expr_id": "e"`, rowset.Take(million, 1)}, // of a column of 8 MB
		{"follow", endpoint + `, "fanout": 10000000`, rowset.Dense(batchOf(1))},
		{"media", endpoint + `, "fanout": 10000`, rowset.Dense(batchOf(1))},
	} {
		t.Run(c.op, func(t *testing.T) {
			ctx := ctxOf(t, c.op, c.params)
			tasks.Env(ctx).Request = &taskrun.Request{Rows: tasks.NewRowBudget(1000)}
			if c.in.Batch != nil {
				ctx.Inputs = []rowset.RowSet{c.in}
				ctx.Refs = ctx.Inputs
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := invoke(ctx)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, task.ErrTooManyRows)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
		})
	}
}

// TestAFanOutReadsNoMoreThanItMayMake checks what a fan-out asks for, and in how many batches.
func TestAFanOutReadsNoMoreThanItMayMake(t *testing.T) {
	many := make([]int64, 3000)
	for i := range many {
		many[i] = int64(i)
	}
	for _, c := range []struct {
		name           string
		rows           int // of the input
		fanout, listed int
		limit          int
		last           string // the last argument of the first command
		batches        []int  // commands of each batch with LRANGE
		want           int    // rows made; -1: too many
	}{
		{"the bound is far away", 3, 100, 5, 0, "99", []int{3}, 15},
		{"as many as are left", 1, 100, 100, 100, "99", []int{1}, 100},
		{"one more is enough to know", 1, 101, 1 << 30, 100, "100", []int{1}, -1},
		{"a list that is short enough", 1, 10_000, 100, 100, "100", []int{1}, 100},
		{"nothing is left", 1, 10_000, 1 << 30, 0x7fff_ffff, "0", []int{1}, -1},
		{"nothing is left and nothing there", 2, 10_000, 0, 0x7fff_ffff, "0", []int{2}, 0},
		{"empty lists of many rows in one batch", 3000, 10_000, 0, 10, "10", []int{3000}, 0},
		{"long lists of many rows in several", 3000, 100, 1, 3000, "99", []int{655, 655, 655, 655, 380}, 3000},
		{"which end at the first that is too much", 3000, 100, 10, 10_000, "99", []int{655, 655}, -1},
		{"a whole list at least", 3, 10_000, 1, 50_000, "9999", []int{3}, 3},
		{"by default a batch may hold the bound", 3000, 10_000, 1, 0, "9999", []int{1000, 999, 999, 2}, 3000},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := ctxOf(t, "media", fmt.Sprintf(`%s, "fanout": %d`, endpoint, c.fanout))
			redis := &fakeRedis{answer: listsOf(c.listed)}
			ctx.Inputs = []rowset.RowSet{rowset.Dense(batchOf(many[:c.rows]...))}
			env := tasks.Env(ctx)
			env.Waiter, env.Request = redis, &taskrun.Request{Rows: tasks.NewRowBudget(c.limit)}
			if c.limit == 0x7fff_ffff {
				require.NoError(t, ctx.MakeRows(0x7fff_ffff))
			}
			out, err := invoke(ctx)
			var batches []int
			for _, commands := range redis.sent {
				batches = append(batches, len(commands))
			}
			assert.Equal(t, c.batches, batches)
			assert.Equal(t, "LRANGE media:0 0 "+c.last, redis.sent[0][0])
			if c.want < 0 {
				assert.ErrorIs(t, err, task.ErrTooManyRows)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, out.Len())
			for i := range out.Len() {
				row, entry := i/max(1, c.listed), i%max(1, c.listed)
				assert.Equal(t, resptest.ListEntry("media", int64(row), entry), out.ID(i))
			}
		})
	}
}

// A source stops when nobody waits for it any more.
func TestALargeSourceStops(t *testing.T) {
	ctx := ctxOf(t, "fixed_source", `"row_count": 1000000`)
	cancel(ctx)
	_, err := invoke(ctx)
	assert.ErrorIs(t, err, task.ErrCancelled)
}

func TestASourceCounts(t *testing.T) {
	ctx := ctxOf(t, "fixed_source", `"row_count": 200000`) // several blocks
	out, err := invoke(ctx)
	require.NoError(t, err)
	require.Equal(t, 200_000, out.Len())
	for i := range out.Len() {
		require.Equal(t, int64(i)+1, out.ID(i))
	}
	_, err = invoke(ctxOf(t, "fixed_source", `"row_count": -1`))
	require.ErrorIs(t, err, task.ErrInvalid)
	assert.EqualError(t, err, "row_count is -1, must not be negative")
}

// TestLongListsAreReadInParts: several commands read one long list, up to its end, the fan-out
// or the number of rows that are left.
func TestLongListsAreReadInParts(t *testing.T) {
	for _, c := range []struct {
		list, fanout, rowsMax int
		batches               []string
		err                   error
	}{
		{25_000, 40_000, 0, []string{"0 9999", "10000 19999, 20000 29999, 30000 39999"}, nil},
		{25_000, 15_000, 0, []string{"0 9999", "10000 14999"}, nil},
		{20_000, 30_000, 0, []string{"0 9999", "10000 19999, 20000 29999"}, nil},
		{0, 30_000, 0, []string{"0 9999"}, nil},
		{25_000, 10_000, 0, []string{"0 9999"}, nil},
		{25_000, 100_000, 12_000, []string{"0 9999", "10000 12000"}, task.ErrTooManyRows},
		{25_000, 100_000, 22_000, []string{"0 9999", "10000 19999, 20000 22000"}, task.ErrTooManyRows},
		{12_000, 100_000, 12_000, []string{"0 9999", "10000 12000"}, nil},
	} {
		redis := &fakeRedis{answer: func(args []string) []byte {
			first, err := strconv.Atoi(args[2])
			require.NoError(t, err)
			last, err := strconv.Atoi(args[3])
			require.NoError(t, err)
			n := max(0, min(last, c.list-1)-first+1)
			reply := redcon.AppendArray(nil, n)
			for i := range n {
				reply = redcon.AppendBulkString(reply, strconv.Itoa(first+i+1))
			}
			return reply
		}}
		ctx := ctxOf(t, "core::media", `"endpoint": "ep_0001", "fanout": 1`)
		ctx.Inputs = []rowset.RowSet{rowset.Dense(batchOf(7))}
		env := tasks.Env(ctx)
		env.Waiter, env.Request = redis, &taskrun.Request{Rows: tasks.NewRowBudget(c.rowsMax)}
		l := &entriesRead{c: ctx, key: tasks.RowKey("follow:"), kind: kindList, fansOut: true, limit: c.fanout}
		out, err := tasks.Invoke(&task.Spec{
			Ask: func(c *task.Ctx, r *task.Reads, _ int) error {
				l.begin(c, r, nil)
				return nil
			},
			Make: func(*task.Ctx, *task.Reads) (rowset.RowSet, error) {
				return rowset.Dense(rowset.NewBatch(l.joined())), nil
			},
			Inputs: 1, Output: task.Expand, Place: task.Waits,
		}, ctx)
		var sent []string
		for _, commands := range redis.sent {
			sent = append(sent, strings.ReplaceAll(strings.Join(commands, ", "), "LRANGE follow:7 ", ""))
		}
		assert.Equal(t, c.batches, sent)
		if c.err != nil {
			assert.ErrorIs(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, min(c.list, c.fanout), out.Len())
		for i := range out.Len() {
			require.Equal(t, int64(i)+1, out.ID(i))
		}
	}
}

// crowded is a Redis whose node lets others fill the engine's memory whenever they have a turn.
type crowded struct {
	*fakeRedis
	table *rowcache.Table
	hits  *[]uint64 // in each turn of the node
	sum   *uint64
}

func (r crowded) Sleep(time.Duration) error {
	now := r.table.Stats().Hits
	*r.hits, *r.sum = append(*r.hits, now-*r.sum), now
	for i := range 1000 {
		r.table.Put(fmt.Appendf(nil, "other:%d", i), 1, bytes.Repeat([]byte{0xff}, 15<<10), r.table.Token(), 1)
	}
	return nil
}

// slowly is a clock that is put forward whenever somebody looks at it. One goroutine.
type slowly struct {
	clock.Clock
	now clock.Time
}

func (c *slowly) Now() clock.Time {
	c.now += clock.Time(15 * time.Microsecond)
	return c.now
}

// Values from memory are taken before others have their turns, since these may take the memory. A node has a turn of some
// 100 µs, in which this clock is looked at seven times, twice for some keys.
func TestOthersDoNotChangeWhatIsTakenFromMemory(t *testing.T) {
	ids := make([]int64, task.PartCommands+100)
	for i := range ids {
		ids[i] = int64(i) + 1
	}
	redis := &fakeRedis{answer: listsOf(2)}
	table := rowcache.NewTable(64<<20, time.Hour)
	var want []int64
	var hits []uint64
	before := uint64(0)
	for i, waiter := range []taskrun.Waiter{redis, redis, crowded{redis, table, &hits, &before}} {
		ctx := ctxOf(t, "core::media", endpoint+`, "fanout": 5`)
		ctx.Inputs = []rowset.RowSet{rowset.Dense(&rowset.Batch{IDs: ids})}
		env := tasks.Env(ctx)
		env.Waiter, env.Engine = waiter, &taskrun.Engine{Clock: &slowly{now: clock.First}, LoopValues: 1 << 30, Tables: slices.Repeat([]*rowcache.Table{table}, len(ctx.Registry.Endpoints()))}
		if i == 2 {
			before = table.Stats().Hits
		}
		out, err := invoke(ctx)
		require.NoError(t, err)
		if want == nil {
			want = out.Batch.IDs
		}
		require.Equal(t, want, out.Batch.IDs)
	}
	assert.GreaterOrEqual(t, table.Stats().Hits, uint64(task.PartCommands))
	require.Greater(t, len(hits), 10)
	assert.LessOrEqual(t, slices.Max(hits), uint64(5*rowcache.FindMax))
}

// counting counts the turns that a node gives to others. One goroutine.
type counting struct {
	*fakeRedis
	turns *int
}

func (r counting) Sleep(time.Duration) error {
	*r.turns++
	return nil
}

// A node that asks for 65,536 members lets others have their turns while it appends the commands. It looks at the clock for
// each two of them, and a turn is seven looks at this one.
func TestLongCommandsAreAppendedInTurns(t *testing.T) {
	ids := make([]int64, memberBatchMax)
	for i := range ids {
		ids[i] = int64(i) + 1
	}
	redis := &fakeRedis{answer: func(args []string) []byte {
		reply := redcon.AppendArray(nil, len(args)-2)
		for range len(args) - 2 {
			reply = redcon.AppendInt(reply, 0)
		}
		return reply
	}}
	turns := 0
	ctx := ctxOf(t, "core::exclude", endpoint+`, "key": "seen:{user}"`)
	ctx.Inputs = []rowset.RowSet{rowset.Dense(&rowset.Batch{IDs: ids})}
	env := tasks.Env(ctx)
	env.Waiter, env.Engine = counting{redis, &turns}, &taskrun.Engine{Clock: &slowly{now: clock.First}, LoopValues: 1 << 30}
	out, err := invoke(ctx)
	require.NoError(t, err)
	assert.Equal(t, len(ids), out.Len())
	require.Len(t, redis.sent, 1)
	assert.Len(t, redis.sent[0], memberBatchMax/memberCommandMax)
	assert.GreaterOrEqual(t, turns, 3)
}
