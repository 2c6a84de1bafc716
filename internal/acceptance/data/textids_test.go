package data_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// textTables are ownTables with products, whose ids are strings, and shelves, whose ids are integers.
func textTables() fstest.MapFS {
	tables := enginetest.OwnTables()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"product\"\nid = \"string\"\n[[entity]]\nname = \"shelf\"\n")}
	return tables
}

// textID renames an integer of three digits, and keeps the order. Some names are too long to be
// integers.
func textID(id int64) string {
	return fmt.Sprintf("sku %03d", id) + strings.Repeat("é", int(id%5)*int(id%7))
}

// textWorld returns random data. name renames the ids. Some entries are not ids of any entity.
func textWorld(seed uint64, name func(int64) string) map[string]any {
	rng := rand.New(rand.NewPCG(seed, 1))
	data := map[string]any{"item:sku 2": map[string]any{"quality": 0.5}, "item:sku 4": map[string]any{"quality": "x"}}
	some := func() (list []string) {
		for range rng.IntN(9) {
			if list = append(list, name(100+rng.Int64N(30))); rng.IntN(9) == 0 {
				list = append(list, "")
			}
		}
		return list
	}
	for n := range int64(9) { // shelves, whose ids are integers in both worlds
		data[fmt.Sprintf("of:%d", n)] = append(some(), name(100+n))
	}
	for user := range 30 {
		data[fmt.Sprintf("shelves:%d", user)] = []string{strconv.Itoa(rng.IntN(9)), strconv.Itoa(rng.IntN(9)), "12x"}
	}
	for n := range int64(30) {
		for _, prefix := range []string{"list:", "u:"} {
			key := prefix + name(100+n)
			if prefix == "u:" {
				key = prefix + strconv.FormatInt(n, 10)
			}
			if list := some(); len(list) > 0 {
				data[key] = list
			}
			if set := some(); len(set) > 0 {
				data["set:"+key] = rankdtest.Set(set)
			}
			sorted := rankdtest.SortedSet{}
			for _, member := range some() {
				sorted[member] = float64(rng.IntN(5))
			}
			if len(sorted) > 0 {
				data["sorted:"+key] = sorted
			}
		}
		if rng.IntN(5) > 0 {
			data["item:"+name(100+n)] = map[string]any{"ti": "title " + strconv.Itoa(rng.IntN(4)), "likes": rng.IntN(6), "quality": rng.Float64(), "author_id": rng.IntN(9)}
		}
		for pair := range 9 * 3 {
			if rng.IntN(3) > 0 {
				data[fmt.Sprintf("rel:%d/%s:%d", pair%9, name(100+n), pair/9)] = rng.IntN(100)
			}
		}
		data[fmt.Sprintf("author:%d:n", n)] = rng.IntN(5)
		data["pop:"+name(100+n)] = rng.IntN(100)
	}
	return data
}

// textPlan returns a random plan with ids renamed by name. Its sources have the given entity,
// if it is not empty.
func textPlan(seed uint64, entity string, name func(int64) any) string {
	rng := rand.New(rand.NewPCG(seed, 2))
	var nodes []map[string]any
	preds, exprs := map[string]any{}, map[string]any{}
	some := func() (ids []any) {
		for range rng.IntN(4) * rng.IntN(8) {
			ids = append(ids, name(100+rng.Int64N(30)))
		}
		return append(ids, name(100))
	}
	id := map[string]any{"op": "key_ref", "key_id": 1}
	constant := func() map[string]any {
		switch v := name(100 + rng.Int64N(30)).(type) {
		case string:
			return map[string]any{"op": "const_string", "value": v}
		default:
			return map[string]any{"op": "const_number", "value": v}
		}
	}
	test := func() map[string]any {
		is := map[string]any{"op": "cmp", "cmp": []string{"==", "!="}[rng.IntN(2)], "a": id, "b": constant()}
		if rng.IntN(2) == 0 {
			is["a"], is["b"] = is["b"], is["a"]
		}
		of := map[string]any{"op": "in", "lhs": id, "list": some()}
		if rng.IntN(2) == 0 {
			of = map[string]any{"op": "not", "x": of}
		}
		return map[string]any{"op": []string{"and", "or"}[rng.IntN(2)], "a": is, "b": of}
	}
	last := func() string { return nodes[len(nodes)-1]["node_id"].(string) }
	add := func(op string, inputs []string, params map[string]any) string {
		nodes = append(nodes, map[string]any{"node_id": fmt.Sprint("n", len(nodes)), "op": op, "inputs": inputs, "params": params})
		return last()
	}
	candidates := func(mark string, inputs ...string) string {
		kind := []string{"list", "set", "sorted_set"}[rng.IntN(3)]
		params := map[string]any{"endpoint": "ep_0001", "kind": kind, "limit": 1 + rng.IntN(8),
			"key": map[string]string{"list": "", "set": "set:", "sorted_set": "sorted:"}[kind] + mark}
		if kind != "set" {
			params["reverse"] = rng.IntN(2) == 0
		}
		if entity != "" {
			params["entity"] = entity
		}
		if kind == "sorted_set" {
			params["score"] = "inbox_score"
		}
		return add("candidates", append([]string{}, inputs...), params)
	}
	source := func() string {
		if rng.IntN(4) == 0 {
			shelves := add("candidates", []string{}, map[string]any{"endpoint": "ep_0001", "key": "shelves:{user}"})
			if entity != "" {
				nodes[len(nodes)-1]["params"].(map[string]any)["entity"] = "shelf"
			}
			last := map[string]any{"endpoint": "ep_0001", "key": "of:{id}", "limit": 5}
			if entity != "" {
				last["entity"] = entity
			}
			return add("candidates", []string{shelves}, last)
		}
		in := candidates("u:{user}")
		if rng.IntN(2) == 0 {
			in = candidates("list:{id}", in)
		}
		return in
	}
	in := source()
	for range 2 + rng.IntN(5) {
		switch rng.IntN(11) {
		case 9:
			name := fmt.Sprint("p", len(nodes))
			preds[name] = test()
			in = add("filter", []string{in}, map[string]any{"pred_id": name})
		case 10:
			name := fmt.Sprint("e", len(nodes))
			number := func(n int) map[string]any { return map[string]any{"op": "const_number", "value": n} }
			exprs[name] = map[string]any{"op": "if", "cond": test(), "then": number(1), "else": number(2)}
			in = add("vm", []string{in}, map[string]any{"out_key": 18, "expr_id": name})
			in = add("sort", []string{in}, map[string]any{"by": 18, "order": "desc"})
		case 0:
			in = add("union", []string{in, source()}, map[string]any{})
		case 1:
			in = add("concat", []string{in}, map[string]any{"rhs": source()})
		case 2:
			in = add("join", []string{in}, map[string]any{"right": source(), "how": []string{"inner", "anti"}[rng.IntN(2)]})
		case 3:
			in = add("dedupe", []string{in}, map[string]any{})
		case 4:
			in = add("exclude", []string{in}, map[string]any{"endpoint": "ep_0001", "key": "set:u:{user}"})
		case 5:
			in = add("blend", []string{in, source()}, map[string]any{"names": []string{"a", "b"}, "pattern": []string{"a", "b"}, "unique": rng.IntN(2) == 0})
		case 6:
			in = add("take", []string{in}, map[string]any{"count": 1 + rng.IntN(12)})
		case 7:
			in = add("lookup", []string{in}, map[string]any{"endpoint": "ep_0001", "key": "pop:{id}", "value": "likes"})
			in = add("sort", []string{in}, map[string]any{"by": []int{12, 1}[rng.IntN(2)], "order": []string{"asc", "desc"}[rng.IntN(2)]}) // 1: the id
		default:
			in = add("lookup", []string{in}, map[string]any{"endpoint": "ep_0001", "key": "item:{id}", "fields": []string{"title", "quality", "author_id"}})
			in = add("lookup", []string{in}, map[string]any{"endpoint": "ep_0001", "key": "author:{id}:n", "value": "followers", "by": "author_id", "missing": "default"})
			in = add("lookup", []string{in}, map[string]any{"endpoint": "ep_0001", "key": "rel:{author_id}/{id}:{user}", "value": "likes"})
			in = add("lookup", []string{in}, map[string]any{"endpoint": "ep_0001", "key": "item:sku {user}", "fields": []string{"quality"}, "missing": "null"})
			in = add("cap", []string{in}, map[string]any{"by": "author_id", "max": 1 + rng.IntN(3)})
			in = add("frequency_cap", []string{in}, map[string]any{"endpoint": "ep_0001", "key": []string{"pop:{id}", "rel:{author_id}/{id}:{user}"}[rng.IntN(2)], "max": 20 + rng.IntN(80)})
			in = add("aggregate", []string{in}, map[string]any{"by": []string{"author_id", "title"}[:1+rng.IntN(2)], "keep": []string{"all", "first"}[rng.IntN(2)],
				"values": []any{map[string]any{"method": "count", "out_key": "likes"}, map[string]any{"method": "mean", "column": "quality", "out_key": "final"}}})
			in = add("diversify", []string{in}, map[string]any{"by": "author_id", "max": 1, "window": 2})
		}
	}
	text, _ := json.Marshal(map[string]any{"schema_version": 1, "plan_name": "p", "nodes": nodes, "outputs": []string{nodes[0]["node_id"].(string), in},
		"pred_table": preds, "expr_table": exprs, "capabilities_required": []string{"cap.rankd.expressions.v1"}})
	return string(text)
}

// TestTextIDsAreOnlyNames: random plans have the same answers with renamed ids as with
// integers, on all models and in all modes, with a cache and without. Other tests check the
// plans with integers.
func TestTextIDsAreOnlyNames(t *testing.T) {
	names, old := make(map[string]string), rankd.Options{}
	for id := range int64(30) {
		names[textID(100+id)] = strconv.FormatInt(100+id, 10)
	}
	start := func(data map[string]any) string {
		redis, err := rankdtest.StartRedisWith(data)
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		return redis.Addr()
	}
	const plans = 60
	integers, texts := fstest.MapFS{}, fstest.MapFS{}
	for seed := range uint64(plans) {
		name := fmt.Sprintf("p%d.plan.json", seed)
		integers[name] = &fstest.MapFile{Data: []byte(strings.Replace(textPlan(seed, "", func(id int64) any { return id }), `"plan_name":"p"`, fmt.Sprintf(`"plan_name":"p%d"`, seed), 1))}
		texts[name] = &fstest.MapFile{Data: []byte(strings.Replace(textPlan(seed, "product", func(id int64) any { return textID(id) }), `"plan_name":"p"`, fmt.Sprintf(`"plan_name":"p%d"`, seed), 1))}
	}
	old.Logger = slog.New(slog.DiscardHandler)
	old.Redis, old.Registry, old.Plans = start(textWorld(7, func(id int64) string { return strconv.FormatInt(id, 10) })), enginetest.OwnTables(), integers
	reference := enginetest.Open(t, old)
	addr := start(textWorld(7, textID))
	rows, all := 0, 0
	for _, model := range enginetest.Models {
		modes := []rankd.SchedulingMode{""}
		if model == rankd.Reactor {
			modes = []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll, "cached"}
		}
		for _, mode := range modes {
			o := rankd.Options{Model: model, Redis: addr, Registry: textTables(), Plans: texts, Logger: old.Logger, Scheduling: rankd.Scheduling{Mode: mode}}
			if mode == "cached" {
				o.Scheduling.Mode, o.Cache = "", "ttl"
			}
			e := enginetest.Open(t, o)
			for seed := range plans {
				for user := range int64(6) {
					r := rankd.Request{Plan: fmt.Sprint("p", seed), UserID: user + 1}
					want, wantErr := reference.Rank(t.Context(), r)
					got, gotErr := e.Rank(t.Context(), r)
					require.NoError(t, wantErr)
					require.NoError(t, gotErr)
					shown := string(got.AppendJSON(nil, rankd.FormatFlat))
					require.Equal(t, candidatesOf(t, want, nil), candidatesOf(t, got, names), "%s %s %s", model, mode, texts[r.Plan+".plan.json"].Data)
					rows += got.Len()
					if out := got.Output(1); out.Len() > 0 {
						assert.Contains(t, shown, `"id":"sku `)
						assert.True(t, out.TextIDs())
					}
					all++
				}
			}
		}
	}
	assert.Greater(t, rows, 5*all, "the plans answer with rows")
}

// candidatesOf returns the candidates as answers show them. names gives the ids their names.
func candidatesOf(t *testing.T, a *rankd.Answer, names map[string]string) []map[string]any {
	t.Helper()
	var shown []map[string]any
	require.NoError(t, json.Unmarshal(enginetest.AnswerJSON(t, a)["candidates"], &shown))
	for i, c := range slices.Collect(a.Candidates()) {
		id := fmt.Sprint(shown[i]["id"])
		require.Equal(t, id, c.IDText())
		if names != nil && len(id) > 1 { // not a shelf
			id = names[id]
			require.NotEmpty(t, id)
		}
		shown[i]["id"] = id
	}
	return shown
}

// TestEntitiesThatDoNotMix: a plan does not load if rows of two entities meet in it, or if it
// needs a string as a number.
func TestEntitiesThatDoNotMix(t *testing.T) {
	node := func(id, op, inputs, params string) string {
		return fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": [%s], "params": {%s}}`, id, op, inputs, params)
	}
	from := func(id, more string) string {
		return node(id, "candidates", "", `"endpoint": "ep_0001", "key": "new"`+more)
	}
	tables := textTables()
	tables["entities.toml"].Data = append(tables["entities.toml"].Data, "[[entity]]\nname = \"user\"\n"...)
	products, shelves, plain := from("p", `, "entity": "product"`), from("s", `, "entity": "shelf"`), from("n", "")
	for name, c := range map[string]struct {
		nodes []string
		want  string // "": the plan loads
	}{
		"union":                   {[]string{products, shelves, node("out", "union", `"p", "s"`, ``)}, `mixes rows of different entities: "product" of node "p" and "shelf" of node "s"`},
		"union of strings, plain": {[]string{plain, products, node("out", "union", `"n", "p"`, ``)}, `mixes rows of different entities: integers without an entity of node "n" and "product" of node "p"`},
		"union of integers":       {[]string{plain, shelves, node("out", "union", `"n", "s"`, ``)}, ""},
		"concat":                  {[]string{products, plain, node("out", "concat", `"p"`, `"rhs": "n"`)}, "mixes rows"},
		"blend":                   {[]string{products, shelves, node("out", "blend", `"p", "s"`, `"names": ["a", "b"], "pattern": ["a", "b"]`)}, "mixes rows"},
		"join by id":              {[]string{products, shelves, node("out", "join", `"p"`, `"right": "s", "how": "anti"`)}, "mixes rows"},
		"join by id to a column": {[]string{products, node("l", "lookup", `"s"`, `"endpoint": "ep_0001", "key": "item:{id}", "fields": ["author_id"]`), shelves,
			node("out", "join", `"l"`, `"right": "p", "how": "anti", "on": "author_id", "right_on": "id"`)}, "compares the id of one side, which is a text"},
		"join by a column": {[]string{products, shelves, node("a", "lookup", `"p"`, `"endpoint": "ep_0001", "key": "item:{id}", "fields": ["author_id"]`),
			node("b", "lookup", `"s"`, `"endpoint": "ep_0001", "key": "item:{id}", "fields": ["author_id"]`),
			node("out", "join", `"a"`, `"right": "b", "how": "anti", "on": "author_id"`)}, ""},
		"candidates of another entity": {[]string{shelves, node("out", "candidates", `"s"`, `"endpoint": "ep_0001", "key": "of:{id}", "entity": "product"`)}, ""},
		"sort by id":                   {[]string{products, node("out", "sort", `"p"`, `"by": 1, "order": "asc"`)}, ""},
		"arithmetic over the id": {[]string{products, node("out", "vm", `"p"`, `"out_key": 18, "expr_id": "twice"`)},
			`reads the id, which is a string of entity "product"; compare it with strings by ==, != or in`},
		"the id as both":                {[]string{products, node("out", "filter", `"p"`, `"pred_id": "both"`)}, "compare it with strings"},
		"the id compared":               {[]string{products, node("out", "filter", `"p"`, `"pred_id": "is"`)}, ""},
		"an integer compared":           {[]string{shelves, node("out", "filter", `"s"`, `"pred_id": "is"`)}, `compares the id with strings, and its rows are of "shelf", whose ids are integers`},
		"integers without an entity":    {[]string{plain, node("out", "filter", `"n"`, `"pred_id": "is"`)}, `compares the id with strings, and its rows are of integers without an entity`},
		"a string compared with number": {[]string{products, node("out", "filter", `"p"`, `"pred_id": "seven"`)}, "reads the id, which is a string"},
		"in a rule": {[]string{products, node("l", "lookup", `"p"`, `"endpoint": "ep_0001", "key": "item:{id}", "fields": ["quality"]`),
			node("out", "boost", `"l"`, `"score": "quality", "out_key": "final", "rules": [{"pred_id": "is", "expr_id": "one"}]`)}, ""},
		"in a rule, of integers": {[]string{shelves, node("l", "lookup", `"s"`, `"endpoint": "ep_0001", "key": "item:{id}", "fields": ["quality"]`),
			node("out", "boost", `"l"`, `"score": "quality", "out_key": "final", "rules": [{"pred_id": "is", "expr_id": "one"}]`)}, "compares the id with strings"},
		"a task of integers": {[]string{products, node("out", "media", `"p"`, `"endpoint": "ep_0001", "fanout": 3`)}, `does not take rows of entity "product", whose ids are strings`},
		"media":              {[]string{products, node("out", "media", `"s"`, `"endpoint": "ep_0001", "fanout": 3, "entity": "product"`), shelves}, `makes rows of entity "product" from integers, and the ids of that entity are strings`},
		"media of integers":  {[]string{shelves, node("m", "media", `"s"`, `"endpoint": "ep_0001", "fanout": 3, "entity": "shelf"`), node("out", "union", `"m", "s"`, ``)}, ""},
		"users and shelves":  {[]string{node("v", "viewer", ``, `"endpoint": "ep_0001"`), shelves, node("out", "union", `"v", "s"`, ``)}, `mixes rows of different entities: "user" of node "v" and "shelf" of node "s"`},
		"no such entity":     {[]string{from("out", `, "entity": "prodct"`)}, `the registry has no entity "prodct"; did you mean "product"?`},
		"skip": {[]string{shelves, `{"node_id": "out", "op": "candidates", "inputs": ["s"], "on_error": "skip", "params": {"endpoint": "ep_0001", "key": "of:{id}", "entity": "product"}}`},
			`rows of "shelf" cannot stand in for those of "product"`},
		"fallback": {[]string{shelves, `{"node_id": "out", "op": "candidates", "inputs": [], "on_error": {"fallback": "s"}, "params": {"endpoint": "ep_0001", "key": "new", "entity": "product"}}`},
			`rows of "shelf" cannot stand in for those of "product", of node "out"`},
	} {
		t.Run(name, func(t *testing.T) {
			e := enginetest.Open(t, rankd.Options{Registry: tables, Plans: fstest.MapFS{"p.plan.json": {Data: []byte(fmt.Sprintf(
				`{"schema_version": 1, "plan_name": "p", "capabilities_required": ["cap.rankd.expressions.v1", "cap.rankd.on_error.v1"], "nodes": [%s], "outputs": ["out"],
				"expr_table": {"one": {"op": "const_number", "value": 1}, "twice": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 2}}},
				"pred_table": {"is": {"op": "cmp", "cmp": "==", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_string", "value": "sku-1"}},
					"seven": {"op": "in", "lhs": {"op": "key_ref", "key_id": 1}, "list": [7]},
					"both": {"op": "and", "a": {"op": "in", "lhs": {"op": "key_ref", "key_id": 1}, "list": ["a"]}, "b": {"op": "cmp", "cmp": ">", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 1}}}}}`,
				strings.Join(c.nodes, ",")))}}})
			_, err := e.PlanInfo("p")
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, rankd.ErrInvalidPlan)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// TestExplainTellsEntitiesApart: user 7, product 7 and the string "7" are three things. Ids
// that are strings are shown as strings.
func TestExplainTellsEntitiesApart(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(map[string]any{"shelves": []string{"7", "8"}, "of:7": []string{"a", "b", "a"}, "of:8": []string{"7"}})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	plan := `{"schema_version": 1, "plan_name": "p", "outputs": ["two"], "nodes": [
		{"node_id": "shelves", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "shelves", "entity": "shelf"}},
		{"node_id": "products", "op": "candidates", "inputs": ["shelves"], "params": {"endpoint": "ep_0001", "key": "of:{id}", "entity": "product"}},
		{"node_id": "once", "op": "dedupe", "inputs": ["products"], "params": {}},
		{"node_id": "two", "op": "take", "inputs": ["once"], "params": {"count": 2}}]}`
	enginetest.ForModels(t, rankd.Options{Redis: redis.Addr(), Registry: textTables(), AllowRequestExplain: true, Plans: fstest.MapFS{"p.plan.json": {Data: []byte(plan)}}}, func(t *testing.T, e *rankd.Engine) {
		ask := func(what string) (rows, missing []map[string]any) {
			r, err := e.ParseRequest([]byte(`{"user_id": 1, "plan": "p", "explain": ` + what + `}`))
			require.NoError(t, err)
			a, err := e.Rank(t.Context(), r)
			require.NoError(t, err)
			var x struct{ Rows, Missing []map[string]any }
			require.NoError(t, json.Unmarshal(enginetest.AnswerJSON(t, a)["explain"], &x))
			return x.Rows, x.Missing
		}
		rows, missing := ask("true")
		require.Len(t, rows, 2)
		assert.Equal(t, []any{"a", "b"}, []any{rows[0]["id"], rows[1]["id"]})
		assert.Empty(t, missing)
		for asked, want := range map[string]struct{ kind, node any }{
			`7`:           {"expanded", "products"}, // the shelf
			`"shelf:7"`:   {"expanded", "products"},
			`"product:7"`: {"cut", "two"},
			`"7"`:         {"cut", "two"},
			`"shelf:9"`:   {"never_a_candidate", nil},
			`"shelf:x"`:   {"never_a_candidate", nil},
			`0`:           {"never_a_candidate", nil}, // the number that stands for some product within the request
			`"c"`:         {"never_a_candidate", nil},
		} {
			rows, missing := ask("[" + asked + "]")
			require.Empty(t, rows, asked)
			require.Len(t, missing, 1, asked)
			assert.Equal(t, want.kind, missing[0]["kind"], asked)
			shown, err := json.Marshal(missing[0]["id"])
			require.NoError(t, err)
			assert.Equal(t, asked, string(shown))
			if at, ok := missing[0]["at"].(map[string]any); ok {
				assert.Equal(t, want.node, at["node"], asked)
			}
		}
		rows, missing = ask(`["product:b", "a", "a"]`)
		require.Len(t, rows, 2)
		assert.Empty(t, missing)
	})
}

// TestUsersThatAreStrings: a string names the user in keys and to tasks, in all models.
func TestUsersThatAreStrings(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(map[string]any{
		"new:u-1": []string{"7", "8", "sku"}, "new:1": []string{"9"}, "seen:u-1": rankdtest.Set([]string{"8"}), "of:7:u-1": []string{"70"},
	})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	tables := enginetest.OwnTables()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"user\"\nid = \"string\"\n")}
	plan := `{"schema_version": 1, "plan_name": "p", "outputs": ["of", "told"], "nodes": [
		{"node_id": "new", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "new:{user}"}},
		{"node_id": "unseen", "op": "exclude", "inputs": ["new"], "params": {"endpoint": "ep_0001", "key": "seen:{user}"}},
		{"node_id": "of", "op": "candidates", "inputs": ["unseen"], "params": {"endpoint": "ep_0001", "key": "of:{id}:{user}"}},
		{"node_id": "told", "op": "test::user", "inputs": [], "params": {}}]}`
	user := task.Spec{Op: "test::user", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		if c.UserID != 0 {
			return rowset.RowSet{}, fmt.Errorf("a number names the user: %d", c.UserID)
		}
		return rankdtest.Rows(int64(len(c.UserIDText()))), nil
	}}
	o := rankd.Options{Redis: redis.Addr(), Registry: tables, Tasks: []task.Spec{user}, Plans: fstest.MapFS{"p.plan.json": {Data: []byte(plan)}}}
	enginetest.ForModels(t, o, func(t *testing.T, e *rankd.Engine) {
		for user, want := range map[string][]string{"u-1": {"70", "3"}, "1": {"1"}, "": nil, strings.Repeat("x", 257): nil} {
			a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserIDText: user})
			if want == nil {
				require.ErrorIs(t, err, rankd.ErrInvalidRequest)
				assert.ErrorContains(t, err, "user_id must be a string of 1 to 256 bytes of UTF-8")
				continue
			}
			require.NoError(t, err)
			var got []string
			for c := range a.Candidates() {
				got = append(got, c.IDText())
			}
			assert.Equal(t, want, got, user)
			if user == "u-1" {
				require.NotEmpty(t, a.Completeness())
				assert.Equal(t, "new:u-1", a.Completeness()[0].Malformed.Key)
			}
		}
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
		require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	})
	_, err = enginetest.Open(t, rankd.Options{Redis: redis.Addr()}).Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserIDText: "u-1"})
	require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	assert.ErrorContains(t, err, `user_id must be an integer from 1 to 4294967295, got "u-1"`)
}

// TestViewerOfUsersThatAreStrings: the row of the user has a string as its id. It keeps that id
// when a column joins it to rows of integers. Tasks that read users by integers say so when the
// plan loads.
func TestViewerOfUsersThatAreStrings(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(map[string]any{
		"user:u-1": map[string]any{"country": "DE"}, "user:odd": "no hash", "new": []string{"7"}, "item:7": map[string]any{"ti": "DE"},
	})
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	tables := enginetest.OwnTables()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"user\"\nid = \"string\"\n")}
	folder := func(nodes string) fstest.MapFS {
		return fstest.MapFS{"p.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "p", "outputs": ["out"], "capabilities_required": ["cap.rankd.on_error.v1"], "nodes": [` + nodes + `]}`)}}
	}
	plans := folder(`
		{"node_id": "v", "op": "viewer", "inputs": [], "on_error": "partial", "params": {"endpoint": "ep_0001"}},
		{"node_id": "new", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "new"}},
		{"node_id": "items", "op": "lookup", "inputs": ["new"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": ["title"]}},
		{"node_id": "out", "op": "join", "inputs": ["v"], "params": {"right": "items", "how": "left", "on": "country", "right_on": "title", "columns": ["title"]}}`)
	for _, cache := range []registry.CacheMode{"", "ttl"} {
		enginetest.ForModels(t, rankd.Options{Redis: redis.Addr(), Registry: tables, Plans: plans, Cache: cache}, func(t *testing.T, e *rankd.Engine) {
			for range 2 {
				for user, want := range map[string]string{"u-1": `[{"id":"u-1","title":"DE","country":"DE"}]`, "1": `[{"id":"1"}]`, "odd": `[]`} {
					a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserIDText: user})
					require.NoError(t, err)
					assert.Equal(t, want, string(enginetest.AnswerJSON(t, a)["candidates"]))
					if user == "odd" {
						require.NotEmpty(t, a.Completeness())
						assert.ErrorContains(t, a.Completeness()[0].Err, `HGETALL user:odd: WRONGTYPE`)
					}
				}
			}
		})
	}
	for op, params := range map[string]string{"follow": `"fanout": 3`, "recommendation": `"fanout": 3`} {
		e := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Registry: tables, Plans: folder(`
			{"node_id": "new", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "new"}},
			{"node_id": "out", "op": "` + op + `", "inputs": ["new"], "params": {"endpoint": "ep_0001", ` + params + `}}`)})
		_, err := e.PlanInfo("p")
		require.ErrorIs(t, err, rankd.ErrInvalidPlan)
		assert.ErrorContains(t, err, `makes rows of entity "user" from integers, and the ids of that entity are strings`)
	}
}
