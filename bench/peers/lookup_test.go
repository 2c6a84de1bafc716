package peers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// itemKeys are the kinds of the keys for itemFields.
var itemKeys = []string{"int", "int", "int", "int", "float", "float", "string", "bool"}

// itemTables are the tables of a registry with a key for each of itemFields, from 11 on.
func itemTables() fstest.MapFS {
	keys := "[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n"
	for i, field := range itemFields {
		keys += fmt.Sprintf("[[key]]\nid = %d\nname = \"k_%s\"\nfield = %q\ntype = %q\nnullable = true\nwritable = true\n", 11+i, field, field, itemKeys[i])
	}
	return fstest.MapFS{
		"keys.toml": {Data: []byte(keys)}, "params.toml": {Data: []byte("")},
		"endpoints.dev.toml": {Data: []byte("[[endpoint]]\nid = \"ep_0001\"\nname = \"redis_default\"\nkind = \"redis\"\nhost = \"127.0.0.1\"\nport = 6379\n")},
	}
}

// items is how many items the server has. Some ids do not have an item, and some values do not
// parse.
const items = 20_000

func fillItems(t testing.TB, addr string) {
	t.Helper()
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: addr})
	defer client.Close()
	rng := rand.New(rand.NewPCG(13, 1))
	var b resp.Batch
	for id := range items {
		if id%100 == 99 {
			continue
		}
		number := func(below int64) string { return strconv.FormatInt(rng.Int64N(below), 10) }
		views := number(1_000_000)
		if id%200 == 7 {
			views = "many"
		}
		b.Cmd("HSET", itemPrefix+strconv.Itoa(id), "likes", number(100_000), "views", views, "c_ts", strconv.Itoa(1_790_000_000+rng.IntN(10_000_000)),
			"author_id", number(10_000), "price", strconv.FormatFloat(float64(rng.IntN(10_000))/100, 'f', 2, 64),
			"quality", strconv.FormatFloat(rng.Float64(), 'g', -1, 64), "title", "Title of item "+number(500), "premium", number(2))
	}
	require.NoError(t, client.Do(&b, 0, func(replies resp.Replies) error {
		for _, r := range replies.All() {
			require.NoError(t, r.Err())
		}
		return nil
	}))
}

// openLookup opens an engine with one plan. Its source makes the ids that ids returns for a
// user. Then come a lookup of all fields, and a take of the first `answered` rows.
func openLookup(t testing.TB, addr string, model rankd.Model, answered int, ids func(user int64) []int64) *rankd.Engine {
	t.Helper()
	rows := task.Spec{Op: "bench::rows", Output: task.Source, Forgets: true, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		return rowset.Dense(&rowset.Batch{IDs: ids(c.UserID)}), nil
	}}
	text := fmt.Sprintf(`{"schema_version": 1, "plan_name": "lookup", "outputs": ["top"], "nodes": [
		{"node_id": "rows", "op": "bench::rows", "inputs": []},
		{"node_id": "items", "op": "core::lookup", "inputs": ["rows"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": [11,12,13,14,15,16,17,18]}},
		{"node_id": "top", "op": "core::take", "inputs": ["items"], "params": {"count": %d}}]}`, answered)
	e, err := rankd.Open(rankd.Options{Redis: addr, Registry: itemTables(), PlanFile: "lookup", PlanText: []byte(text), Model: model, Tasks: []task.Spec{rows}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	return e
}

func openItems(t testing.TB, addr string) *ItemReader {
	t.Helper()
	r, err := OpenItemReader(addr, RueidisConfig{})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// window returns ids from user on, a step apart.
func window(rows int) func(user int64) []int64 {
	return func(user int64) []int64 {
		ids := make([]int64, rows)
		for i := range ids {
			ids[i] = (user*131 + int64(i)) % items
		}
		return ids
	}
}

// TestLookupAndItemReaderAgree: both sides of the benchmark read the same values.
func TestLookupAndItemReaderAgree(t *testing.T) {
	server := startRedis(t)
	fillItems(t, server.Addr)
	ids := window(300)
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Sequential} {
		e, r := openLookup(t, server.Addr, model, 300, ids), openItems(t, server.Addr)
		answer, err := e.Rank(t.Context(), rankd.Request{UserID: 5})
		require.NoError(t, err)
		want, err := r.Read(t.Context(), ids(5))
		require.NoError(t, err)
		require.Equal(t, len(want), answer.Len())
		i := 0
		for c := range answer.Candidates() {
			var got Item
			known := func(field int, ok bool) {
				if ok {
					got.Known |= 1 << field
				}
			}
			var ok bool
			for field, number := range []*int64{&got.Likes, &got.Views, &got.At, &got.AuthorID} {
				*number, ok = c.Int("k_" + itemFields[field])
				known(field, ok)
			}
			for field, number := range []*float64{&got.Price, &got.Quality} {
				*number, ok = c.Float("k_" + itemFields[4+field])
				known(4+field, ok)
			}
			got.Title, ok = c.String("k_title")
			known(6, ok)
			got.Premium, ok = c.Bool("k_premium")
			known(7, ok)
			require.Equal(t, want[i], got, "item %d", c.ID())
			i++
		}
	}
}

// side is one of the two sides of BenchmarkLookup.
type side struct {
	ask     func(user int64) error
	traffic func() uint64 // round trips so far

	cpu, wall, allocs []float64 // per row, of each block
	trips             []float64 // per request
}

// measure sends a block of requests, with inFlight at a time.
func (s *side) measure(b *testing.B, rows, requests, inFlight int) {
	before, trips, began := load.ReadUsage(), s.traffic(), time.Now()
	var wait sync.WaitGroup
	for k := range inFlight {
		wait.Go(func() {
			for i := k; i < requests; i += inFlight {
				if err := s.ask(int64(i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wait.Wait()
	took := time.Since(began)
	used := load.ReadUsage().Since(before)
	all := float64(rows * requests)
	s.cpu, s.wall = append(s.cpu, float64(used.CPU)/all), append(s.wall, float64(took)/all)
	s.allocs, s.trips = append(s.allocs, float64(used.Allocs)/all), append(s.trips, float64(s.traffic()-trips)/float64(requests))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// BenchmarkLookup compares a lookup of eight fields with the same HMGETs through rueidis, which
// are decoded into structs. Both sides run in one process, and blocks of requests of each side
// alternate. -benchtime 20x means twenty blocks of each. The benchmark reports medians: CPU
// time (of the process, including garbage collection), time and allocations per row, and round
// trips per request.
func BenchmarkLookup(b *testing.B) {
	server := startRedis(b)
	fillItems(b, server.Addr)
	for _, c := range []struct{ rows, requests, inFlight int }{{100, 400, 1}, {100, 1600, 16}, {10_000, 8, 1}, {10_000, 16, 4}} {
		b.Run(fmt.Sprintf("rows=%d/inflight=%d", c.rows, c.inFlight), func(b *testing.B) {
			ids := window(c.rows)
			e, r := openLookup(b, server.Addr, rankd.Reactor, 1, ids), openItems(b, server.Addr)
			engine := &side{
				ask: func(user int64) error {
					_, err := e.Rank(context.Background(), rankd.Request{UserID: user + 1})
					return err
				},
				traffic: func() uint64 { return e.Metrics().Redis[0].RoundTrips },
			}
			peer := &side{
				ask: func(user int64) error {
					_, err := r.Read(context.Background(), ids(user+1))
					return err
				},
				traffic: func() uint64 { return r.Traffic().RoundTrips },
			}
			warm := min(c.requests, 2*c.inFlight)
			engine.measure(b, c.rows, warm, c.inFlight)
			peer.measure(b, c.rows, warm, c.inFlight)
			*engine, *peer = side{ask: engine.ask, traffic: engine.traffic}, side{ask: peer.ask, traffic: peer.traffic}
			for i := range b.N {
				first, second := engine, peer
				if i%2 == 1 {
					first, second = peer, engine
				}
				first.measure(b, c.rows, c.requests, c.inFlight)
				second.measure(b, c.rows, c.requests, c.inFlight)
			}
			for name, s := range map[string]*side{"rankd": engine, "rueidis": peer} {
				b.ReportMetric(median(s.cpu), name+"-cpu-ns/row")
				b.ReportMetric(median(s.wall), name+"-ns/row")
				b.ReportMetric(median(s.allocs), name+"-allocs/row")
				b.ReportMetric(median(s.trips), name+"-trips/req")
			}
			b.ReportMetric(median(engine.cpu)/median(peer.cpu), "cpu-ratio")
		})
	}
}
