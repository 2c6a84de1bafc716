package builtin

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// sourceCase is a node that joins sources. All of its inputs and references may have all
// columns of random batches.
type sourceCase struct {
	op     string
	inputs int
	params string
}

var sourceCases = []sourceCase{
	{"union", 1, `{}`},
	{"union", 3, `{"source": "k5201", "rank": "k5002", "names": ["a", "b", "c"]}`},
	{"dedupe", 1, `{}`},
	{"dedupe", 1, `{"sources": "k5201"}`},
	{"dedupe", 1, `{"by": "k1001", "keep": "max", "column": "k5001", "sources": "k5202"}`},
	{"dedupe", 1, `{"by": "k3001", "keep": "min", "column": "k1002"}`},
	{"dedupe", 1, `{"by": "k5101"}`},
	{"join", 1, `{"right": "in", "columns": ["k1001", "k3001", "k5001", "k5101", "k5201"]}`},
	{"join", 1, `{"right": "in", "how": "inner", "on": "k3001", "right_on": "k3002", "columns": ["k5202"]}`},
	{"join", 1, `{"right": "in", "how": "anti", "on": "k5001"}`},
	{"blend", 3, `{"ratio": [3, 2, 1]}`},
	{"blend", 2, `{"names": ["a", "b"], "pattern": ["b", "a"], "source": "k5201", "rank": "k5001"}`},
	{"blend", 3, `{"names": ["a", "b", "c"], "positions": [2, 5, 90], "fixed": ["b", "c", "b"]}`},
	{"aggregate", 1, `{"by": ["k3001", "k5101"], "values": [{"method": "count", "out_key": "k5002"}, {"method": "mean", "column": "k5001", "out_key": "score"}]}`},
	{"aggregate", 1, `{"by": ["k3001"], "keep": "first", "values": [{"method": "sum", "column": "k5001", "out_key": "k5001"}, {"method": "max", "column": "k1001", "out_key": "k1001"}]}`},
	{"aggregate", 1, `{"values": [{"method": "count", "column": "k3002", "out_key": "score"}, {"method": "sum", "column": "k1002", "out_key": "second"}]}`},
	{"sample", 1, `{"count": 40, "weight": "k1001", "propensity": "score", "seed": 3}`},
	{"sample", 1, `{"count": 200, "propensity": "score"}`},
	{"cap", 1, `{"by": "k3001", "max": 2}`},
	{"frequency_cap", 1, `{"endpoint": "ep_0001", "key": "seen:{user}:{id}", "max": 2}`},
	{"frequency_cap", 1, `{"endpoint": "ep_0001", "key": "seen:{user}:{Key.k3001}:{id}", "max": 2}`},
	{"exclude", 1, `{"endpoint": "ep_0001", "key": "seen:{user}"}`},
	{"exclude", 1, `{"endpoint": "ep_0001", "key": "seen:{user}", "kind": "sorted_set", "by": "k3001"}`},
}

// ctx returns what a body needs to run the node, except for its inputs and references.
func (s sourceCase) ctx(t testing.TB) *task.Ctx {
	reg := testRegistry()
	source := task.Spec{Op: "test::all", Output: task.Source, Run: func(*task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, nil },
		Writes: func(_ *plan.Node, reg *registry.Registry) (keys []registry.KeyID) {
			for _, key := range reg.Keys() {
				keys = append(keys, key.ID)
			}
			return keys
		}}
	catalog, err := task.NewCatalog(append(Specs(), source)...)
	require.NoError(t, err)
	artifact, err := json.Marshal(map[string]any{
		"schema_version": 1, "plan_name": "p", "outputs": []string{"it"},
		"nodes": []any{
			map[string]any{"node_id": "it", "op": s.op, "inputs": slices.Repeat([]string{"in"}, s.inputs), "params": json.RawMessage(s.params)},
			map[string]any{"node_id": "in", "op": "test::all", "inputs": []string{}},
		},
	})
	require.NoError(t, err)
	g, err := plan.Load("p.plan.json", artifact, catalog, reg)
	require.NoError(t, err)
	c := &task.Ctx{Node: g.Nodes[0], UserID: 1, RequestID: "r", Params: new(expr.Params), Registry: reg}
	tasks.Env(c).Waiter = &fakeRedis{answer: everyThird}
	return c
}

// everyThird answers SMISMEMBER and ZMSCORE: every third member is in the set. It answers GET with a count from 0 to 3, by the length of the key.
func everyThird(args []string) []byte {
	if args[0] == "GET" {
		return redcon.AppendBulkString(nil, strconv.Itoa(len(args[1])%4))
	}
	reply := redcon.AppendArray(nil, len(args)-2)
	for i := range args[2:] {
		switch {
		case args[0] == "SMISMEMBER" && i%3 == 0:
			reply = redcon.AppendInt(reply, 1)
		case args[0] == "SMISMEMBER":
			reply = redcon.AppendInt(reply, 0)
		case i%3 == 0:
			reply = redcon.AppendBulkString(reply, "1.5")
		default:
			reply = redcon.AppendNull(reply)
		}
	}
	return reply
}

// Bodies give the same results in slices of other requests, full of other values, as in fresh
// ones.
func TestSourcesInUsedMemory(t *testing.T) {
	for _, s := range sourceCases {
		t.Run(s.op+" "+s.params, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(14, 7))
			pool, both := usedMemory(t)
			c := s.ctx(t)
			for range 25 {
				c.Inputs, c.Refs = nil, nil
				for range s.inputs {
					c.Inputs = append(c.Inputs, rowsettest.RowSet(rng, 330))
				}
				for range c.Node.Refs {
					c.Refs = append(c.Refs, rowsettest.RowSet(rng, 330))
				}
				both(c, func(want, got rowset.RowSet) { require.True(t, rowsettest.Equal(want, got)) })
			}
			assert.Positive(t, pool.Bytes(), "the pool was used")
		})
	}
}

// sourceRows returns rows with all types of columns. Every second row has the id of another
// one.
func sourceRows(rng *rand.Rand, n int) rowset.RowSet {
	b := rowsettest.Batch(rng, n)
	for i := range b.IDs {
		b.IDs[i] = rng.Int64N(int64(n)/2 + 1)
	}
	return rowset.Dense(b)
}

// A body makes the same number of allocations for many rows as for few.
func TestSourcesAllocateNothingPerRow(t *testing.T) {
	for _, s := range sourceCases {
		if s.op == "exclude" || s.op == "frequency_cap" {
			continue // the fake Redis allocates
		}
		t.Run(s.op+" "+s.params, func(t *testing.T) {
			allocations := func(rows int) float64 {
				rng := rand.New(rand.NewPCG(14, 8))
				m := rowset.NewMemory(rowset.NewPool(rowset.PoolConfig{LengthMin: 1, BytesMax: 1 << 30}))
				m.SetLending(true)
				c := s.ctx(t)
				c.Memory = m
				for range s.inputs {
					c.Inputs = append(c.Inputs, sourceRows(rng, rows))
				}
				for range c.Node.Refs {
					c.Refs = append(c.Refs, sourceRows(rng, rows))
				}
				body := tasks.SpecOf(c.Node).Run
				return testing.AllocsPerRun(5, func() {
					_, err := body(c)
					assert.NoError(t, err)
					m.Release(nil)
				})
			}
			few, many := allocations(2_000), allocations(64_000)
			assert.LessOrEqual(t, many, few+48, "the dictionaries of sets may grow a few times more often")
		})
	}
}
