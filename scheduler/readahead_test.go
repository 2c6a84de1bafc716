package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/internal/testing/schedulertest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task"
)

// aheadKey is a key that a lookup of these tests may read.
type aheadKey struct{ name, kind string }

var aheadKeys = []aheadKey{
	{"author", "int"}, {"owner", "int"}, {"likes", "int"}, {"price", "float"}, {"title", "string"}, {"hot", "bool"}, {"tags", "string_set"}, {"at", "int"},
	{"f1", "float"},
}

// aheadTables have aheadKeys, a parameter for Redis keys, and two endpoints that are one
// server, with this policy.
func aheadTables(addr, policy string) fstest.MapFS {
	keys := "[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n"
	for i, k := range aheadKeys {
		keys += fmt.Sprintf("[[key]]\nid = %d\nname = %q\ntype = %q\nnullable = true\nwritable = true\n", 100+i, k.name, k.kind)
		if k.kind == "int" {
			keys += "default = 2\n"
		}
	}
	endpoints := ""
	for i := range 2 {
		endpoints += fmt.Sprintf("[[endpoint]]\nid = \"ep_000%d\"\nname = \"redis_%d\"\nkind = \"redis\"\nurl = \"redis://%s/0\"\n%s", i+1, i+1, addr, policy)
	}
	return fstest.MapFS{
		"keys.toml":           {Data: []byte(keys)},
		"params.toml":         {Data: []byte("[[param]]\nid = 1\nname = \"tab\"\ntype = \"string\"\nnullable = true\ncontext = true\n")},
		"endpoints.test.toml": {Data: []byte(endpoints)},
	}
}

// aheadData holds hashes. Some values are there, some are missing, and some have the wrong
// type. Some keys are not hashes.
func aheadData(rng *rand.Rand) map[string]any {
	data := map[string]any{"members": rankdtest.Set{"1", "4", "7"}}
	texts := map[string][]string{
		"int": {"1", "2", "3", "7", "x"}, "float": {"0.5", "2", "nan"}, "string": {"a", "b", ""}, "bool": {"1", "0", "?"},
		"string_set": {"a,b", "[1]", ""},
	}
	for user := range 4 {
		var ids []int64
		for range rng.IntN(12) {
			ids = append(ids, rng.Int64N(9))
		}
		if len(ids) > 0 {
			data[fmt.Sprintf("ids:%d", user)] = ids
		}
	}
	for id := range 9 {
		for _, key := range []string{"item:%d", "item:%d:news", "stats:%d"} {
			hash := map[string]string{}
			for _, k := range aheadKeys {
				if rng.IntN(8) > 0 {
					all := texts[k.kind]
					hash[k.name] = all[rng.IntN(len(all)-rng.IntN(2))]
				}
			}
			hash["at"] = strconv.Itoa(900 + rng.IntN(110))
			switch rng.IntN(20) {
			case 0: // The key does not exist.
			case 1:
				data[fmt.Sprintf(key, id)] = []string{"a list"}
			default:
				data[fmt.Sprintf(key, id)] = hash
			}
		}
		data[fmt.Sprintf("count:%d", id)] = strconv.Itoa(id)
		data[fmt.Sprintf("doc:%d", id)] = []string{`{"author": 2, "likes": "7", "title": "a", "at": 940}`, `{"hot": true, "tags": ["a"], "price": null}`, "{"}[id%3]
		for _, text := range []string{"a", "b", "1", "2", "7"} {
			data[fmt.Sprintf("stats:%d:%s", id, text)] = map[string]string{"likes": strconv.Itoa(id), "title": text}
		}
	}
	data["item:a"], data["item:b"] = map[string]string{"likes": "3", "title": "b"}, map[string]string{"owner": "4", "title": "a"}
	return data
}

// aheadPlan writes a random chain of lookups, with other nodes between them. It returns nil if
// Load would refuse the plan, which is rare.
func aheadPlan(t *testing.T, rng *rand.Rand, tasks *task.Catalog, reg *registry.Registry) (load func(*registry.Registry) *plan.Graph) {
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	nodes := []string{`{"node_id": "n0", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "ids:{user}"}}`}
	outputs, written := []string{}, []string{}
	templates := []string{"item:{id}", "item:{id}", "item:{id}", "item:{id}:{tab}", "stats:{id}", "item:{user}"}
	if rng.IntN(2) == 0 { // The first node has columns for keys.
		nodes = append(nodes, `{"node_id": "n1", "op": "lookup", "inputs": ["n0"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["author", "title"]}}`)
		templates = []string{"item:{user}", "item:{title}", "stats:{author}", "stats:{user}:{title}", "stats:{id}:{Key.author}"}
	}
	habit := []string{pick("null", "null", "drop", "default", "fail"), pick("", "", "", "skip", "partial", "partial", "empty"), pick(templates...)}
	lookup := func() (params, more string) {
		missing, onError := habit[0], habit[1]
		if rng.IntN(4) == 0 {
			missing, onError = pick("null", "drop", "default", "fail"), pick("", "skip", "partial", "empty")
		}
		endpoint := pick("ep_0001", "ep_0001", "ep_0001", "ep_0001", "ep_0002")
		var keys []string
		for _, i := range rng.Perm(len(aheadKeys))[:1+rng.IntN(3)] {
			if aheadKeys[i].kind == "int" || missing != "default" {
				keys = append(keys, strconv.Quote(aheadKeys[i].name))
			}
		}
		what := fmt.Sprintf(`"key": %q, "fields": [%s]`, pick("item:{id}", "item:{id}", "item:{id}", habit[2], habit[2], habit[2], pick(templates...)), strings.Join(keys, ","))
		if len(keys) == 0 || rng.IntN(6) == 0 {
			what = fmt.Sprintf(`"key": "count:{id}", "value": %q%s`, pick("likes", "owner"), pick("", `, "kind": "counter"`, `, "kind": "string_length"`))
		} else if rng.IntN(12) == 0 {
			what = fmt.Sprintf(`"key": "doc:{id}", "kind": "json", "fields": [%s]`, strings.Join(keys, ","))
		} else if missing != "default" && rng.IntN(24) == 0 {
			what = pick(`"key": "members", "kind": "member", "value": "hot"`, `"key": "item:{id}", "kind": "hash_length", "value": "likes"`)
		} else if slices.Contains(keys, `"at"`) && rng.IntN(2) == 0 {
			what += `, "timestamp": "at", "max_age": 50`
		}
		if len(written) > 0 && strings.Contains(what, "{id}") && rng.IntN(3) == 0 {
			what += `, "by": ` + pick(written...)
		}
		for _, key := range keys {
			if key == `"author"` || key == `"owner"` {
				written = append(written, key)
			}
		}
		if onError != "" {
			more = fmt.Sprintf(`, "on_error": %q`, onError)
		}
		if rng.IntN(8) == 0 {
			more += `, "timeout_ms": 60000`
		}
		return fmt.Sprintf(`"endpoint": %q, "missing": %q, %s`, endpoint, missing, what), more
	}
	for i, last := len(nodes)-1, len(nodes)+1+rng.IntN(7); i < last; i++ {
		op, params, more := "lookup", "", ""
		switch rng.IntN(10) {
		case 0:
			op, params = "vm", `"out_key": 108, "expr_id": "score"`
		case 1:
			op, params = pick("take", "filter", "sort", "join"), ""
			params = map[string]string{
				"take": `"count": 4`, "filter": `"pred_id": "odd"`, "sort": `"by": 1, "order": "desc"`, "join": `"right": "n0", "how": "inner"`,
			}[op]
		case 3:
			if params, more = lookup(); rng.IntN(3) == 0 {
				op, more = "frequency_cap", ""
				params = fmt.Sprintf(`"endpoint": "ep_0001", "key": %q, "max": %d, "fresh": %t, "fail_open": true`,
					pick("count:{id}", "count:{id}", "item:{id}"), 3+rng.IntN(6), rng.IntN(2) == 0)
			}
		case 2:
			op, params = "join", fmt.Sprintf(`"right": "n%d", "columns": [%s]`, rng.IntN(i+1), pick(append(written, `"likes"`)...))
		default:
			params, more = lookup()
		}
		nodes = append(nodes, fmt.Sprintf(`{"node_id": "n%d", "op": %q, "inputs": ["n%d"], "params": {%s}%s}`, i+1, op, i, params, more))
		if rng.IntN(4) == 0 {
			outputs = append(outputs, fmt.Sprintf("%q", fmt.Sprintf("n%d", i+1)))
		}
	}
	outputs = append(outputs, fmt.Sprintf("%q", fmt.Sprintf("n%d", len(nodes)-1)))
	artifact := fmt.Sprintf(`{"schema_version": 1, "plan_name": "random", "capabilities_required": ["cap.rankd.on_error.v1"], "nodes": [%s], "outputs": [%s],
"expr_table": {"score": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 2}}},
"pred_table": {"odd": {"op": "cmp", "cmp": ">=", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 3}}}}`,
		strings.Join(nodes, ",\n"), strings.Join(outputs, ","))
	if _, err := plan.Load("random", []byte(artifact), tasks, reg); err != nil {
		require.ErrorContains(t, err, "reads column", artifact) // that is missing, or may be
		return nil
	}
	return func(reg *registry.Registry) *plan.Graph {
		g, err := plan.Load("random", []byte(artifact), tasks, reg)
		require.NoError(t, err)
		return g
	}
}

// everythingOf returns all that an answer says.
func everythingOf(r *scheduler.Result) string {
	if r.Err != nil {
		return r.Err.Error()
	}
	var b strings.Builder
	for _, out := range r.Outputs {
		fmt.Fprintln(&b, rowsettest.PlainRows(out), out.Batch.AppendKeys(nil))
	}
	for _, c := range r.Completeness() {
		fmt.Fprintln(&b, c.Node.ID, c.Status, c.Dropped, c.Err)
	}
	for _, d := range r.Deltas() {
		fmt.Fprintf(&b, "%+v\n", d)
	}
	for i, n := range r.Rows() {
		fmt.Fprintln(&b, i, n.Ran, n.StoodIn, rowsettest.PlainRows(n.Out))
	}
	return b.String()
}

// withCache is the policy of an endpoint whose values are kept for the whole test.
const withCache = "[endpoint.policy]\ncache = \"ttl\"\ncache_max_bytes = 1048576\ncache_max_age_ms = 3600000\n"

// TestReadingAheadChangesNoAnswer runs random plans on all engines, in all modes, and on one that keeps what it has
// read. Each plan runs as it is, and once with each lookup reading for itself.
func TestReadingAheadChangesNoAnswer(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(aheadData(rand.New(rand.NewPCG(1, 23))))
	require.NoError(t, err)
	defer redis.Close()
	reg, err := registry.Load(aheadTables(redis.Addr(), ""), "test")
	require.NoError(t, err)
	cached, err := registry.Load(aheadTables(redis.Addr(), withCache), "test")
	require.NoError(t, err)
	tasks := builtins(t)
	type world struct {
		name          string
		alone, cached bool
		scheduler.Engine
	}
	var worlds []world
	for _, alone := range []bool{true, false} {
		add := func(name string, e scheduler.Engine) {
			worlds = append(worlds, world{name, alone, strings.HasPrefix(name, "cached"), e})
			t.Cleanup(func() { e.Close(0) })
		}
		add("sequential", blocking.OpenSequential(scheduler.Config{Registry: reg}))
		add("pool", blocking.OpenTwoPools(scheduler.Config{Registry: reg}))
		for _, mode := range []plan.Mode{plan.Adaptive, plan.OffloadAll, plan.InlineAll} {
			add(string(mode), openAsync(t, scheduler.Config{Registry: reg, NoCoalesceReads: true, Placement: scheduler.Placement{Mode: mode}}))
		}
		add("cached", openAsync(t, scheduler.Config{Registry: cached, NoCoalesceReads: true}))
	}
	commands := func(e scheduler.Engine) (sum uint64) {
		for _, s := range e.Metrics().Redis {
			sum += s.Commands
		}
		return sum
	}
	seen := map[string]int{}
	seeds := uint64(150)
	if scheduler.RaceDetector {
		seeds = 8
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 23))
		var load func(*registry.Registry) *plan.Graph
		for load == nil {
			load = aheadPlan(t, rng, tasks, reg)
		}
		merged, separate, keptMerged, keptSeparate := load(reg), load(reg), load(cached), load(cached)
		for i, n := range merged.Nodes {
			for _, later := range n.Ahead {
				seen["read ahead"]++
				if fmt.Sprint(n.Params.Template("key")) == fmt.Sprint(later.Params.Template("key")) {
					seen["of the same key"]++
				}
				if t := later.Params.Template("key"); !t.PerRow() || len(t.Columns()) > 0 {
					seen["of a column's key, or of one for all rows"]++
				}
			}
			separate.Nodes[i].Ahead, keptSeparate.Nodes[i].Ahead = nil, nil
		}
		var requests []scheduler.Execution
		for user := range int64(2) {
			x := scheduler.Execution{UserID: user, Deltas: true, KeepRows: rng.IntN(2) == 0}
			if rng.IntN(4) > 0 {
				x.Params.SetNow(1000)
			}
			if rng.IntN(4) > 0 {
				x.Params.SetString(1, "news")
			}
			if rng.IntN(4) == 0 {
				x.Required = []int{rng.IntN(len(merged.Nodes))}
			}
			requests = append(requests, x)
		}
		whole := true
		var want []string
		var sent []uint64
		for _, w := range worlds {
			before := commands(w)
			var got []string
			for _, x := range requests {
				switch x.Graph = merged; {
				case w.alone && w.cached:
					x.Graph = keptSeparate
				case w.cached:
					x.Graph = keptMerged
				case w.alone:
					x.Graph = separate
				}
				r := runOn(w, &x)
				got = append(got, everythingOf(r))
				if r.Err != nil {
					seen["failed"]++
				}
				whole = whole && r.Err == nil && !r.Degraded()
				for _, c := range r.Completeness() {
					seen[string(c.Status)]++
				}
			}
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, "seed %d, %s, alone: %v", seed, w.name, w.alone)
			sent = append(sent, commands(w)-before)
		}
		half := len(sent) / 2
		for i := range half {
			if whole { // Values for a node that never runs were read in vain.
				assert.LessOrEqual(t, sent[half+i], sent[i], "seed %d, %s", seed, worlds[i].name)
			}
			if sent[half+i] < sent[i] {
				seen["fewer commands"]++
			}
		}
	}
	t.Log(seen)
	for _, what := range []string{"read ahead", "of the same key", "fewer commands", "failed", "partial", "ok", "of a column's key, or of one for all rows"} {
		if !scheduler.RaceDetector { // which has time for a few plans only
			assert.Greater(t, seen[what]*100/int(seeds), 10, what)
		}
	}
	for _, w := range worlds {
		assert.Equal(t, worlds[0].Metrics().Values, w.Metrics().Values, "%s, alone: %v", w.name, w.alone)
	}
}

// TestWhatIsReadAhead counts the commands and the calls of chains, with lookups that read ahead
// and without. The rows are 1, 2 and 3, and the item of 3 does not have a title.
func TestWhatIsReadAhead(t *testing.T) {
	item := func(id, likes, title string) map[string]string {
		hash := map[string]string{"likes": likes, "author": "7", "at": "5"}
		if title != "" {
			hash["title"] = strings.Repeat(title, 60)
		}
		return hash
	}
	redis, err := rankdtest.StartRedisWith(map[string]any{
		"ids:1": []int64{1, 2, 3}, "other:1": []int64{4, 5, 6},
		"item:1": item("1", "10", "a"), "item:2": item("2", "20", "b"), "item:3": item("3", "30", ""), "item:4": item("4", "40", "d"),
		"stats:1": item("1", "1", "s"), "stats:2": item("2", "2", "s"), "stats:3": item("3", "3", "s"), "stats:7": item("7", "7", "s"),
		"wrong:1": []string{"a list"},
	})
	require.NoError(t, err)
	defer redis.Close()
	reg, err := registry.Load(aheadTables(redis.Addr(), ""), "test")
	require.NoError(t, err)
	cached, err := registry.Load(aheadTables(redis.Addr(), withCache), "test")
	require.NoError(t, err)
	lookup := func(key, fields, more string) string {
		return fmt.Sprintf(`"op": "lookup", "params": {"endpoint": "ep_0001", "key": %q, "fields": [%s]%s`, key, fields, more)
	}
	value := func(kind, key, column string) string {
		return fmt.Sprintf(`"op": "lookup", "params": {"endpoint": "ep_0001", "key": %q, "kind": %q, "value": %q}`, key, kind, column)
	}
	const title, likes, author = `"title"`, `"likes"`, `"author"`
	for name, c := range map[string]struct {
		chain          []string // after the source
		beside         []string // further nodes, whole
		commands       int      // in addition to the source's
		calls          int
		alone, callsOf int // of lookups that read for themselves; 0: the same
		maxReply       int
		again          int // commands of a second request that are not in memory
		shared         int // commands of lookups that read for themselves, whose values a lookup before them has kept
	}{
		"the same key":   {chain: []string{lookup("item:{id}", title, "}"), lookup("item:{id}", likes, "}")}, commands: 3, calls: 1, alone: 6, callsOf: 2},
		"another key":    {chain: []string{lookup("item:{id}", title, "}"), lookup("stats:{id}", likes, "}")}, commands: 6, calls: 1, alone: 6, callsOf: 2},
		"a key and back": {chain: []string{lookup("item:{id}", title, "}"), lookup("stats:{id}", likes, "}"), lookup("item:{id}", author, "}")}, commands: 6, calls: 1, alone: 9, callsOf: 3},
		"the key of a request": {chain: []string{lookup("item:{id}:{tab}", title, "}"), lookup("item:{id}:{tab}", likes, "}")},
			commands: 3, calls: 1, alone: 6, callsOf: 2},
		"a score between": {chain: []string{lookup("item:{id}", title, "}"), `"op": "vm", "params": {"out_key": 108, "expr_id": "score"}`,
			lookup("item:{id}", likes, "}")}, commands: 3, calls: 1, alone: 6, callsOf: 2},
		"the same command of another kind": {chain: []string{value("hash_length", "item:{id}", "likes"), value("hash_length", "item:{id}", "author"),
			value("counter", "count:{id}", "at"), value("string", "count:{id}", "title")}, commands: 6, calls: 1, alone: 12, callsOf: 4, shared: 3},
		"a collection": {chain: []string{value("score", "scores", "price"), lookup("item:{id}", likes, "}"), value("score", "scores", "price")}, commands: 5, calls: 3, again: 2},
		"a cap": {chain: []string{lookup("item:{id}", title, "}"), `"op": "frequency_cap", "params": {"endpoint": "ep_0001", "key": "count:{id}", "max": 2, "fresh": false}`,
			lookup("stats:{id}", likes, "}")}, commands: 9, calls: 2, alone: 9, callsOf: 3},
		"a take between": {chain: []string{lookup("item:{id}", title, "}"), `"op": "take", "params": {"count": 2}`, lookup("item:{id}", likes, "}")},
			commands: 5, calls: 2},
		"another endpoint": {chain: []string{lookup("item:{id}", title, "}"), strings.Replace(lookup("item:{id}", likes, "}"), "0001", "0002", 1)},
			commands: 6, calls: 2},
		"by what the first one reads": {chain: []string{lookup("item:{id}", author, "}"), lookup("stats:{id}", likes, `, "by": "author"}`)},
			commands: 4, calls: 2},
		"by what an earlier one has read": {chain: []string{lookup("item:{id}", author, "}"), `"op": "take", "params": {"count": 3}`,
			lookup("item:{id}", title, "}"), lookup("stats:{id}", likes, `, "by": "author"}`)}, commands: 7, calls: 2, alone: 7, callsOf: 3},
		"the same key, some rows dropped": {chain: []string{lookup("item:{id}", title, `, "missing": "drop"}`), lookup("item:{id}", likes, `}`)},
			commands: 3, calls: 1, alone: 5, callsOf: 2},
		"another key, some rows dropped": {chain: []string{lookup("item:{id}", title, `, "missing": "drop"}`), lookup("stats:{id}", likes, `}`)},
			commands: 5, calls: 2},
		"other errors pass": {chain: []string{lookup("item:{id}", title, `}, "on_error": "empty"`), lookup("item:{id}", likes, `}`)},
			commands: 6, calls: 2},
		"the same errors pass": {chain: []string{lookup("item:{id}", title, `}, "on_error": "skip"`), lookup("item:{id}", likes, `}, "on_error": "skip"`)},
			commands: 3, calls: 1, alone: 6, callsOf: 2},
		"it fails for its values, which passes": {chain: []string{lookup("item:{id}", title, `, "missing": "fail"}, "on_error": "skip"`),
			lookup("item:{id}", likes, `}, "on_error": "skip"`)}, commands: 6, calls: 2, again: 3},
		"it may fail for its values, which passes": {chain: []string{lookup("item:{id}", author, `, "missing": "fail"}, "on_error": "skip"`),
			lookup("item:{id}", likes, `}, "on_error": "skip"`)}, commands: 6, calls: 2},
		"another timeout": {chain: []string{lookup("item:{id}", title, `}, "timeout_ms": 9000`), lookup("item:{id}", likes, `}`)},
			commands: 6, calls: 2},
		"the same timeout": {chain: []string{lookup("item:{id}", title, `}, "timeout_ms": 9000`), lookup("item:{id}", likes, `}, "timeout_ms": 9000`)},
			commands: 3, calls: 1, alone: 6, callsOf: 2},
		"the same timeout, another key": {chain: []string{lookup("item:{id}", title, `}, "timeout_ms": 9000`), lookup("stats:{id}", likes, `}, "timeout_ms": 9000`)},
			commands: 6, calls: 2},
		"optional": {chain: []string{lookup("item:{id}", title, `}, "optional": true`), lookup("item:{id}", likes, `}, "optional": true`)},
			beside: []string{`{"node_id": "b", "op": "sleep", "inputs": ["n0"], "params": {"duration_ms": 50}}`}, commands: 6, calls: 2},
		"a fallback with other rows between": {chain: []string{lookup("item:{id}", author, "}"),
			strings.Replace(lookup("item:{id}", title, `, "missing": "fail"}, "on_error": {"fallback": "f"}`), "0001", "0002", 1), lookup("item:{id}", likes, `}`)},
			beside:   []string{`{"node_id": "f", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "other:{user}"}}`},
			commands: 3 + 3 + 1 + 3, calls: 4, again: 3},
		"both are too long for one call": {chain: []string{lookup("item:{id}", title, "}"), lookup("item:{id}", `"title", "likes"`, "}")}, maxReply: 200,
			commands: 9, calls: 3, alone: 6, callsOf: 2},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := []string{`{"node_id": "n0", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "ids:{user}"}}`}
			for i, node := range c.chain {
				nodes = append(nodes, fmt.Sprintf(`{"node_id": "n%d", "inputs": ["n%d"], %s}`, i+1, i, node))
			}
			last := fmt.Sprintf("n%d", len(c.chain))
			nodes = append(nodes, c.beside...)
			artifact := strings.Replace(schedulertest.PlanJSON(last, nodes...), `"schema_version"`, `"capabilities_required": ["cap.rankd.on_error.v1"], "schema_version"`, 1)
			artifact = strings.ReplaceAll(artifact, `2001`, `108`)
			artifact = strings.ReplaceAll(artifact, `"param_id": 4`, `"param_id": 2`)
			for engine, open := range map[string]func(scheduler.Config) scheduler.Engine{
				"reactor":    func(cfg scheduler.Config) scheduler.Engine { return openAsync(t, cfg) },
				"cached":     func(cfg scheduler.Config) scheduler.Engine { return openAsync(t, cfg) },
				"sequential": func(cfg scheduler.Config) scheduler.Engine { return closing(t, blocking.OpenSequential(cfg)) },
				"pool":       func(cfg scheduler.Config) scheduler.Engine { return closing(t, blocking.OpenTwoPools(cfg)) },
			} {
				var answers []string
				reg := reg
				if engine == "cached" {
					reg = cached
				}
				for _, alone := range []bool{false, true} {
					g, err := plan.Load("test", []byte(artifact), builtins(t), reg)
					require.NoError(t, err)
					commands, calls := c.commands, c.calls
					if alone {
						for _, n := range g.Nodes {
							n.Ahead = nil
						}
						if c.alone > 0 {
							commands, calls = c.alone, c.callsOf
						}
						if engine == "cached" && c.shared > 0 {
							commands, calls = commands-c.shared, calls-1
						}
					}
					e := open(scheduler.Config{Registry: reg, MaxReplyBytes: c.maxReply, NoCoalesceReads: true})
					x := scheduler.Execution{Graph: g, UserID: 1, Deltas: true, KeepRows: true}
					x.Params.SetString(1, "news")
					r := runOn(e, &x)
					require.NoError(t, r.Err, engine)
					answers = append(answers, everythingOf(r))
					var sent, batches uint64
					for _, s := range e.Metrics().Redis {
						sent, batches = sent+s.Commands, batches+s.Batches
					}
					if name == "optional" && engine != "sequential" {
						continue // What is given up depends on the time.
					}
					assert.Equal(t, []int{commands + 1, calls + 1}, []int{int(sent), int(batches)}, "commands and calls on %s, alone: %v", engine, alone)
					if engine != "cached" {
						continue
					}
					again := runOn(e, &x) // All is in memory.
					require.NoError(t, again.Err)
					assert.Equal(t, everythingOf(r), everythingOf(again))
					sent = 0
					for _, s := range e.Metrics().Redis {
						sent += s.Commands
					}
					assert.Equal(t, commands+1+c.again, int(sent), "commands of two requests, alone: %v", alone)
				}
				if name != "optional" {
					assert.Equal(t, answers[1], answers[0], engine)
				}
			}
		})
	}
}

// TestReadingAheadForManyRows counts the commands of lookups that take several batches. The keys of the last lookup are
// many more than those of the first.
func TestReadingAheadForManyRows(t *testing.T) {
	const rows = 9000
	data := map[string]any{}
	var ids []int64
	for id := range int64(rows) {
		ids = append(ids, id)
		data[fmt.Sprintf("item:%d", id)] = map[string]string{"likes": strconv.Itoa(int(id)), "title": "t" + strconv.Itoa(int(id)), "author": strconv.Itoa(int(id % 3))}
		data[fmt.Sprintf("stats:%d", id)] = map[string]string{"owner": strconv.Itoa(int(2 * id))}
	}
	data["ids:1"] = ids
	redis, err := rankdtest.StartRedisWith(data)
	require.NoError(t, err)
	defer redis.Close()
	for _, policy := range []string{"", strings.Replace(withCache, "1048576", "67108864", 1)} {
		reg, err := registry.Load(aheadTables(redis.Addr(), policy), "test")
		require.NoError(t, err)
		nodes := []string{`{"node_id": "n0", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "ids:{user}", "limit": 10000}}`}
		for i, what := range []string{`"key": "item:{id}", "fields": ["title", "author"]`, `"key": "item:{id}", "fields": ["likes"]`, `"key": "stats:{id}", "fields": ["owner"]`} {
			nodes = append(nodes, fmt.Sprintf(`{"node_id": "n%d", "op": "lookup", "inputs": ["n%d"], "params": {"endpoint": "ep_0001", %s}}`, i+1, i, what))
		}
		nodes = append(nodes, `{"node_id": "all", "op": "take", "inputs": ["n3"], "params": {"count": 10000}}`, // a new chain
			`{"node_id": "n4", "op": "lookup", "inputs": ["all"], "params": {"endpoint": "ep_0001", "key": "stats:{id}", "by": "author", "fields": ["price"]}}`,
			`{"node_id": "n5", "op": "lookup", "inputs": ["n4"], "params": {"endpoint": "ep_0001", "key": "stats:{id}", "fields": ["hot"]}}`)
		g, err := plan.Load("test", []byte(schedulertest.PlanJSON("n5", nodes...)), builtins(t), reg)
		require.NoError(t, err)
		for name, e := range map[string]scheduler.Engine{
			"reactor":    openAsync(t, scheduler.Config{Registry: reg, NoCoalesceReads: true}),
			"sequential": closing(t, blocking.OpenSequential(scheduler.Config{Registry: reg})),
		} {
			r := runOn(e, &scheduler.Execution{Graph: g, UserID: 1})
			require.NoError(t, r.Err, name)
			out := r.Outputs[0]
			require.Equal(t, rows, out.Len())
			likes, owners, titles := out.Batch.Int(102), out.Batch.Int(101), out.Batch.String(104)
			for pos := range rows {
				title, _ := titles.Value(int(out.Row(pos)))
				require.Equal(t, []any{int64(pos), int64(2 * pos), "t" + strconv.Itoa(pos)}, []any{likes.Values[out.Row(pos)], owners.Values[out.Row(pos)], title}, name)
			}
			var sent uint64
			for _, s := range e.Metrics().Redis {
				sent += s.Commands
			}
			assert.Equal(t, 1+rows+rows+3+rows, int(sent), "%s, with a cache: %v", name, policy != "")
		}
	}
}
