package rankd_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/explain"
	"github.com/rankd/rankd/internal/testworld"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry/registrytest"
)

// rangeTables have parameters for bounds.
func rangeTables(policy string) fstest.MapFS {
	params := ""
	for i, p := range [][2]string{{"low", "float"}, {"high", "float"}, {"first", "string"}, {"last", "string"}} {
		params += registrytest.Param(1+i, p[0], p[1], registrytest.Nullable, "context = true")
	}
	return registrytest.Tables{Keys: registrytest.ID + registrytest.Key(10, "points", "float", registrytest.Nullable, registrytest.Writable), Params: params,
		Endpoints: registrytest.Redis + policy}.FS()
}

// rangeExprs are bounds of scores.
const rangeExprs = `"expr_table": {"low": {"op": "param_ref", "param_id": 1}, "high": {"op": "param_ref", "param_id": 2}, "two": {"op": "const_number", "value": 2},
	"ago": {"op": "sub", "a": {"op": "now"}, "b": {"op": "param_ref", "param_id": 1}}, 
	"square": {"op": "mul", "a": {"op": "param_ref", "param_id": 1}, "b": {"op": "param_ref", "param_id": 1}},
	"nan": {"op": "sub", "a": {"op": "mul", "a": {"op": "param_ref", "param_id": 1}, "b": {"op": "param_ref", "param_id": 1}},
		"b": {"op": "mul", "a": {"op": "param_ref", "param_id": 1}, "b": {"op": "param_ref", "param_id": 1}}}},
	"capabilities_required": ["cap.rankd.expressions.v1"]`

// rangePlan returns a plan of one node that reads a part of a sorted set.
func rangePlan(key, params string) []byte {
	return []byte(fmt.Sprintf(`{"schema_version": 1, "plan_name": "r", "outputs": ["r"], %s, "nodes": [{"node_id": "r", "op": "candidates", "inputs": [],
		"params": {"endpoint": "ep_0001", "key": %q, "kind": "sorted_set", %s}}]}`, rangeExprs, key, params))
}

// onServers runs a test on the embedded Redis and on a real one.
func onServers(t *testing.T, test func(t *testing.T, addr string)) {
	t.Run("embedded", func(t *testing.T) {
		redis, err := rankdtest.StartRedisWith(nil)
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		test(t, redis.Addr())
	})
	t.Run("redis-server", func(t *testing.T) { test(t, testworld.StartRedis(t).Addr) })
}

// Ranges of sorted sets have the members that one finds by looking at each.
func TestRangesAreWhatOneFindsByLooking(t *testing.T) {
	onServers(t, func(t *testing.T, addr string) {
		type member struct {
			id    int64
			score float64
		}
		rng := rand.New(rand.NewPCG(25, 1))
		scores := []float64{math.Inf(-1), -2, -0.5, 0, 0.1, 2, 2.5, 1e300, math.Inf(1)}
		var members []member
		write, flat := []string{"ZADD", "z"}, []string{"ZADD", "flat"}
		for id := range int64(60) {
			m := member{id, scores[rng.IntN(len(scores))]}
			text := strconv.FormatInt(id, 10)
			members = append(members, m)
			write, flat = append(write, strconv.FormatFloat(m.score, 'g', -1, 64), text), append(flat, "0", text)
		}
		store(t, addr, write, flat)
		engines := make(map[string]*rankd.Engine)
		for range 300 {
			byMember, reverse, limit := rng.IntN(3) == 0, rng.IntN(2) == 0, 1+rng.IntN(30)
			given := []bool{rng.IntN(4) > 0, rng.IntN(4) > 0}
			if !given[0] && !given[1] {
				continue
			}
			exclusive := []bool{given[0] && rng.IntN(3) == 0, given[1] && rng.IntN(3) == 0}
			params := fmt.Sprintf(`"limit": %d, "reverse": %v, "exclusive": %q`, limit, reverse,
				map[[2]bool]string{{}: "none", {true, false}: "min", {false, true}: "max", {true, true}: "both"}[[2]bool(exclusive)])
			compare := func(a, b member) int {
				return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(strconv.FormatInt(a.id, 10), strconv.FormatInt(b.id, 10)))
			}
			context := map[string]any{}
			var in [2]func(m member) int // how a member compares with a bound
			for end, names := range [][3]string{{"min", "low", "first"}, {"max", "high", "last"}} {
				switch {
				case !given[end]:
				case byMember:
					text := strconv.Itoa(rng.IntN(99))
					params += fmt.Sprintf(`, "%s_member": "{%s}"`, names[0], names[2])
					context[names[2]] = text
					in[end] = func(m member) int { return cmp.Compare(strconv.FormatInt(m.id, 10), text) }
				default:
					bound := scores[1+rng.IntN(len(scores)-2)] // a request has no infinities
					params += fmt.Sprintf(`, %q: %q`, names[0], names[1])
					context[names[1]] = bound
					if end == 0 && rng.IntN(6) == 0 {
						params = strings.TrimSuffix(params, `"low"`) + `"square"`
						bound, context["low"] = math.Inf(1), 1e200
					}
					in[end] = func(m member) int { return cmp.Compare(m.score, bound) }
				}
			}
			key := "z"
			if byMember {
				key = "flat"
				compare = func(a, b member) int { return cmp.Compare(strconv.FormatInt(a.id, 10), strconv.FormatInt(b.id, 10)) }
			} else if rng.IntN(2) == 0 {
				params += `, "score": "points"`
			}
			var want []int64
			all := slices.SortedFunc(slices.Values(members), compare)
			if !reverse {
				slices.Reverse(all)
			}
			for _, m := range all {
				if in[0] != nil && (in[0](m) < 0 || exclusive[0] && in[0](m) == 0) || in[1] != nil && (in[1](m) > 0 || exclusive[1] && in[1](m) == 0) {
					continue
				}
				if limit--; limit < 0 {
					break
				}
				if !strings.Contains(params, "points") || !math.IsInf(m.score, 0) {
					want = append(want, m.id)
				}
			}
			plan := rangePlan(key, params)
			e := engines[string(plan)]
			if e == nil {
				e = open(t, rankd.Options{Redis: addr, Registry: rangeTables(""), PlanText: plan})
				engines[string(plan)] = e
			}
			a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Context: context})
			require.NoError(t, err, params)
			require.Equal(t, append([]int64{}, want...), idsOf(a.Output(0)), "%s %v", params, context)
		}
	})
}

// A bound may reckon with the time of the request.
func TestARangeOfTheLastSeconds(t *testing.T) {
	onServers(t, func(t *testing.T, addr string) {
		store(t, addr, []string{"ZADD", "z", "1000", "1", "1990", "2", "1999", "3", "2000", "4"})
		e := open(t, rankd.Options{Redis: addr, Registry: rangeTables(""), PlanText: rangePlan("z", `"min": "ago"`), AllowRequestExplain: true,
			Now: func() time.Time { return time.Unix(2000, 0) }})
		a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Context: map[string]any{"low": 10.0}, Explain: rankd.Explain{All: true}})
		require.NoError(t, err)
		assert.Equal(t, []int64{4, 3, 2}, idsOf(a.Output(0)))
		var text strings.Builder
		require.NoError(t, explain.Text(&text, a.Explanation()))
		assert.Contains(t, text.String(), `min = "1990"`)
		assert.Contains(t, text.String(), `max = "+inf"`)
	})
}

// A bound without a value is an error that names it, and the caller's where a member of the context is missing.
func TestABoundWithoutAValue(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(nil)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	for _, c := range []struct {
		params  string
		context map[string]any
		want    string
		caller  bool
	}{
		{`"min": "low"`, nil, `context member "low": min is null`, true},
		{`"max": "high", "min": "low"`, map[string]any{"low": 1.0, "high": nil}, `context member "high": max is null`, true},
		{`"min_member": "a{first}"`, nil, `context member "first": min_member is null`, true},
		{`"min": "nan"`, map[string]any{"low": 1e300}, "min is not a number", false},
	} {
		e := open(t, rankd.Options{Redis: redis.Addr(), Registry: rangeTables(""), PlanText: rangePlan("z", c.params)})
		_, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Context: c.context})
		require.Error(t, err, c.params)
		assert.ErrorContains(t, err, c.want, c.params)
		assert.Equal(t, c.caller, errors.Is(err, rankd.ErrInvalidRequest), c.params)
	}
}

// What depends on the request is read each time; a range between constants comes from memory.
func TestRangesInMemory(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(map[string]any{"z": rankdtest.SortedSet{"1": 1, "2": 2, "3": 3}})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	for params, kept := range map[string]bool{
		`"min": "two"`: true, `"min_member": "2"`: true, `"min": "low"`: false, `"max": "ago"`: false, `"min_member": "2", "max_member": "{last}"`: false,
	} {
		e := open(t, rankd.Options{Redis: redis.Addr(), Registry: rangeTables("[endpoint.policy]\n" + cacheForAnHour), PlanText: rangePlan("z", params)})
		for i := range 3 {
			before := e.Metrics().Redis[0].Asked
			a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Context: map[string]any{"low": 2.0, "last": "3"}})
			require.NoError(t, err)
			if params != `"max": "ago"` {
				assert.Equal(t, []int64{3, 2}, idsOf(a.Output(0)), params)
			}
			assert.Equal(t, kept && i > 0, e.Metrics().Redis[0].Asked == before, params)
		}
	}
}
