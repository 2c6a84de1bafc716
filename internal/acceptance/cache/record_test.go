package cache_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/enginetest"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace/record"
)

// TestRandomPlansRunAgain records requests of random plans, with and without what memory has, and runs them again.
func TestRandomPlansRunAgain(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: redis.Addr()})
	defer client.Close()
	rng := rand.New(rand.NewPCG(55, *cacheSeeds))
	cacheData(rng, func(args ...string) {
		var b resp.Batch
		b.Cmd(args...)
		require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error { return replies.At(0).Err() }))
	})
	folder, names := fstest.MapFS{}, []string{}
	for i := range 100 {
		name := fmt.Sprintf("random%d", i)
		names = append(names, name)
		folder[name+".plan.json"] = &fstest.MapFile{Data: []byte(cachePlan(rng, name, []string{"list", "set", "sorted_set"}))}
	}
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		t.Run(string(model), func(t *testing.T) {
			s := new(enginetest.Records)
			e := enginetest.Open(t, rankd.Options{
				Model: model, Redis: redis.Addr(), Registry: enginetest.CacheTables(enginetest.CacheForAnHour), Plans: folder, Record: s, RecordUsers: 100,
			})
			_, err := e.Plans()
			require.NoError(t, err)
			failed := 0
			for range 400 {
				if _, err := e.Rank(t.Context(), rankd.Request{Plan: names[rng.IntN(len(names))], UserID: int64(1 + rng.IntN(11))}); err != nil {
					failed++
				}
			}
			require.NoError(t, e.Close())
			require.Equal(t, rankd.Records{Written: 400}, e.Records())
			require.Greater(t, failed, 5)
			values := map[record.Kind]int{}
			for _, r := range s.Requests {
				for _, n := range r.Runs[0].Nodes {
					for _, v := range n.Values {
						values[v.Kind]++
					}
				}
			}
			require.Greater(t, values[record.Reply], 500)
			if model == rankd.Reactor {
				require.Greater(t, values[record.Memory], 500)
			}
			s.ReplayAll(t, nil)
		})
	}
}

// differencePlan reads ids, looks up a column, and takes the best two; ten::clock is a task of the program's own.
const differencePlan = `{"schema_version": 1, "plan_name": "best", "nodes": [
 {"node_id": "all", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{user}"}},
 {"node_id": "likes", "op": "lookup", "inputs": ["all"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["likes"], "missing": "null"}},
 {"node_id": "sorted", "op": "sort", "inputs": ["likes"], "params": {"by": %d, "order": "desc"}},
 {"node_id": "best", "op": "take", "inputs": ["sorted"], "params": {"count": 2}}%s], "outputs": ["%s"]}`

// TestAReplaySaysWhereItDiffers changes a record, and a task, and runs the request again.
func TestAReplaySaysWhereItDiffers(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: redis.Addr()})
	defer client.Close()
	for _, command := range [][]string{{"RPUSH", "inbox:1", "7", "8", "9"}, {"HSET", "item:7", "likes", "12"}, {"HSET", "item:8", "likes", "15"}} {
		var b resp.Batch
		b.Cmd(command...)
		require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error { return replies.At(0).Err() }))
	}
	runs := int64(0) // of ten::clock, which reads something else than a record has
	clockTask := task.Spec{
		Op: "ten::clock", Doc: "Keeps some rows.", Inputs: 1, Output: task.Subset, Place: task.Computes,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			runs++
			return rowset.Take(c.Inputs[0], int(runs%2)), nil
		},
	}
	awaits := task.Spec{
		Op: "ten::awaits", Doc: "Keeps some rows.", Inputs: 1, Output: task.Subset, Place: task.Waits,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			return c.Inputs[0], c.Await(func(context.Context) error { return nil })
		},
	}
	reg, err := registry.Load(enginetest.CacheTables(""), "dev")
	require.NoError(t, err)
	key, _ := reg.KeyByName("likes")
	likes := key.ID
	folder := fstest.MapFS{
		"best.plan.json":   {Data: fmt.Appendf(nil, differencePlan, likes, "", "best")},
		"clock.plan.json":  {Data: fmt.Appendf(nil, differencePlan, likes, `, {"node_id": "now", "op": "ten::clock", "inputs": ["best"], "params": {}}`, "now")},
		"awaits.plan.json": {Data: fmt.Appendf(nil, differencePlan, likes, `, {"node_id": "now", "op": "ten::awaits", "inputs": ["best"], "params": {}}`, "now")},
	}
	for name := range folder {
		folder[name].Data = bytes.ReplaceAll(folder[name].Data, []byte(`"best", "nodes"`), fmt.Appendf(nil, `"%s", "nodes"`, name[:len(name)-len(".plan.json")]))
	}
	reply := func(r *record.Request, node, n int) *record.Value {
		values := r.Runs[0].Nodes[node].Values
		return &values[slices.IndexFunc(values, func(v record.Value) bool { return v.Kind == record.Reply })+n]
	}
	for name, c := range map[string]struct {
		plan    string
		change  func(r *record.Request)
		want    string // of the difference; empty: equal
		foreign bool
		fails   string // the error of Replay
	}{
		"nothing":         {plan: "best", change: func(*record.Request) {}},
		"a value":         {plan: "best", change: func(r *record.Request) { reply(r, 1, 1).Bytes = []byte("*1\r\n$2\r\n13\r\n") }, want: "node likes (core::lookup) of plan best: its values: column likes, row 2: 15 was recorded, and now it is 13"},
		"a list":          {plan: "best", change: func(r *record.Request) { reply(r, 0, 0).Bytes = []byte("*3\r\n$1\r\n8\r\n$1\r\n7\r\n$1\r\n9\r\n") }, want: "node all (core::candidates) of plan best: the ids of its rows, or their order: column id, row 1: 7 was recorded, and now it is 8"},
		"another request": {plan: "best", change: func(r *record.Request) { r.Runs[0].Nodes[1].Asked++ }, want: "node likes (core::lookup) of plan best: it asks Redis or a service for something else"},
		"the order":       {plan: "best", change: func(r *record.Request) { r.Runs[0].Nodes[2].Rows.IDs.Digest++ }, want: "node sorted (core::sort) of plan best: the type of its values: column id"},
		"the answer":      {plan: "best", change: func(r *record.Request) { r.Answer.Outputs[0].N = 3 }, want: "output 1 of the answer: how many rows there are: 3 was recorded, and now it is 2"},
		"a value too few": {plan: "best", change: func(r *record.Request) { n := &r.Runs[0].Nodes[1]; n.Values = n.Values[:len(n.Values)-1] }, want: "node likes (core::lookup) of plan best: how it ended: with rows was recorded, and now it is with the error the record has nothing for what the node asks here"},
		"of no sample":    {plan: "best", change: func(r *record.Request) { r.Marked = true }, fails: "its user is not of the sample"},
		"another plan":    {plan: "best", change: func(r *record.Request) { r.Runs[0].Digest = "f00" }, fails: "has run plan best with the digest f00"},
		"not a reply":     {plan: "best", change: func(r *record.Request) { reply(r, 1, 0).Bytes = []byte("*1\r\n$2\r\n13") }, fails: "node likes: reply 0 of the record is malformed"},
		"a clock":         {plan: "clock", change: func(*record.Request) {}, want: "node now (ten::clock) of plan clock: how many rows there are: 1 was recorded, and now it is 0", foreign: true},
		"a function":      {plan: "awaits", change: func(*record.Request) {}, want: "node now (ten::awaits) of plan awaits: how it ended: with rows was recorded, and now it is with the error no record has what a function of Await brings", foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			runs = 0
			s := new(enginetest.Records)
			e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: enginetest.CacheTables(""), Plans: folder, Tasks: []task.Spec{clockTask, awaits}, Record: s, RecordUsers: 100})
			_, err := e.Rank(t.Context(), rankd.Request{Plan: c.plan, UserID: 1})
			require.NoError(t, err)
			require.NoError(t, e.Close())
			require.Len(t, s.Requests, 1)
			c.change(s.Requests[0])
			g, err := s.Generation(s.Requests[0].Generation)
			require.NoError(t, err)
			again := enginetest.Open(t, rankd.Options{NoSecrets: true, Registry: enginetest.FolderOf(g.Tables, ""), Env: g.Env, Plans: enginetest.FolderOf(g.Plans, ".plan.json"), Tasks: []task.Spec{clockTask, awaits}})
			replayed, err := again.Intake().Replay(t.Context(), s.Requests[0], s, rankd.Request{})
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			if c.want == "" {
				require.Nil(t, replayed.Difference)
				return
			}
			require.NotNil(t, replayed.Difference)
			assert.Equal(t, c.want, replayed.Difference.String())
			assert.Equal(t, c.foreign, replayed.Difference.Foreign)
		})
	}
}

var updateRecords = flag.Bool("update", false, "record testdata/earlier.rec anew, by this build")

// earlierPlan takes ids and columns from memory, fills gaps with a default, computes with now(), sorts rows of which many have equal values, and
// joins two branches.
const earlierPlan = `{"schema_version": 1, "plan_name": "earlier", "expr_table": {"aged": {"op": "sub", "a": {"op": "now"}, "b": {"op": "key_ref", "key_id": %[1]d}}}, "nodes": [
 {"node_id": "inbox", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "inbox:{user}"}},
 {"node_id": "other", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "set:{user}", "kind": "set"}},
 {"node_id": "both", "op": "concat", "inputs": ["inbox"], "params": {"rhs": "other"}},
 {"node_id": "likes", "op": "lookup", "inputs": ["both"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["likes"], "missing": "default"}, "on_error": "partial"},
 {"node_id": "aged", "op": "vm", "inputs": ["likes"], "params": {"expr_id": "aged", "out_key": %[2]d}},
 {"node_id": "sorted", "op": "sort", "inputs": ["aged"], "params": {"by": %[1]d, "order": "desc"}}],
 "outputs": ["sorted"], "capabilities_required": ["cap.rankd.expressions.v1", "cap.rankd.on_error.v1"]}`

// TestRecordsOfAnEarlierBuild runs records of an earlier build again. A build that answers otherwise has changed what plans mean.
func TestRecordsOfAnEarlierBuild(t *testing.T) {
	const path = "testdata/earlier.rec"
	if *updateRecords {
		recordEarlier(t, path)
	}
	from, err := record.Open(path, record.ReadOptions{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, from.Close()) }()
	require.Equal(t, record.ValuesVersion, from.Header().Values, "-update records anew")
	s := new(enginetest.Records)
	for {
		r, err := from.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.NoError(t, s.Add(r, from))
	}
	require.Len(t, s.Requests, 300)
	s.ReplayAll(t, nil)
}

// recordEarlier records requests of random plans and of earlierPlan.
func recordEarlier(t *testing.T, path string) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	defer redis.Close()
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: redis.Addr()})
	defer client.Close()
	rng := rand.New(rand.NewPCG(55, 2026))
	cacheData(rng, func(args ...string) {
		var b resp.Batch
		b.Cmd(args...)
		require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error { return replies.At(0).Err() }))
	})
	tables := enginetest.CacheTables(enginetest.CacheForAnHour)
	reg, err := registry.Load(tables, "dev")
	require.NoError(t, err)
	likes, _ := reg.KeyByName("likes")
	final, _ := reg.KeyByName("final")
	names, folder := []string{"earlier"}, fstest.MapFS{"earlier.plan.json": {Data: fmt.Appendf(nil, earlierPlan, likes.ID, final.ID)}}
	for i := range 40 {
		names = append(names, fmt.Sprint("random", i))
		folder[names[i+1]+".plan.json"] = &fstest.MapFile{Data: []byte(cachePlan(rng, names[i+1], []string{"list", "set", "sorted_set"}))}
	}
	file, err := os.Create(path)
	require.NoError(t, err)
	to, err := record.NewWriter(file, record.Header{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Values: record.ValuesVersion, Sample: 1})
	require.NoError(t, err)
	e, err := rankd.Open(rankd.Options{Redis: redis.Addr(), Registry: tables, Plans: folder, Record: to, RecordUsers: 100})
	require.NoError(t, err)
	plans, err := e.Plans()
	require.NoError(t, err)
	for _, p := range plans {
		require.NoError(t, p.Err)
	}
	for i := range 300 {
		_, _ = e.Rank(t.Context(), rankd.Request{Plan: names[i%len(names)], UserID: int64(1 + rng.IntN(11))}) // Some fail.
	}
	require.NoError(t, e.Close())
	require.NoError(t, to.Close())
	require.NoError(t, file.Close())
}
