package data_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// typedTables returns the built-in tables with a key of each type, and context parameters.
func typedTables(t testing.TB) fs.FS {
	t.Helper()
	tables := fstest.MapFS{}
	for _, file := range []string{"keys.toml", "params.toml", "endpoints.dev.toml"} {
		text, err := fs.ReadFile(registry.DefaultTables(), file)
		require.NoError(t, err)
		tables[file] = &fstest.MapFile{Data: text}
	}
	for i, key := range []string{"int", "bool", "string_set"} {
		tables["keys.toml"].Data = fmt.Appendf(tables["keys.toml"].Data, "\n[[key]]\nid = %d\nname = \"my_%s\"\ntype = %q\nnullable = true\n", 5001+i, key, key)
	}
	for i, param := range []string{"int", "bool", "int_list", "string_list", "string", "float"} {
		tables["params.toml"].Data = fmt.Appendf(tables["params.toml"].Data, "\n[[param]]\nid = %d\nname = \"my_%s\"\ntype = %q\ncontext = true\n", 101+i, param, param)
	}
	return tables
}

// typedSource makes rows with a column of each type, from the context of the request and the node's parameters.
var typedSource = task.Spec{
	Op: "test::typed", Doc: "Rows with columns of all types.", Output: task.Source,
	Params: []plan.ParamSchema{{Name: "rows", Type: plan.Int, Required: true}, {Name: "seed", Type: plan.Int}},
	Writes: task.Columns(2002, 3001, 5001, 5002, 5003),
	Run: func(c *task.Ctx) (rowset.RowSet, error) {
		n, seed := int(c.Node.Params.Int("rows")), c.Node.Params.Int("seed")
		base, _ := c.Params.Int(101)
		hot, _ := c.Params.Bool(102)
		ids, _ := c.Params.IntList(103)
		tags, _ := c.Params.StringList(104)
		country, _ := c.Params.String(105)
		step, _ := c.Params.Float(106)
		rng := rand.New(rand.NewPCG(uint64(seed), uint64(len(c.RequestID))))
		out := make([]int64, n)
		floats, strings := rowset.NewFloatBuilder(2002, n), rowset.NewStringBuilder(3001, n)
		ints, bools, sets := rowset.NewIntBuilder(5001, n), rowset.NewBoolBuilder(5002, n), rowset.NewSetBuilder(5003, n)
		for i := range n {
			out[i] = ids[i%len(ids)] + int64(i)
			if rng.IntN(4) == 0 {
				floats.AppendNull()
				strings.AppendNull()
				ints.AppendNull()
				bools.AppendNull()
				sets.AppendNull()
				continue
			}
			floats.Append(step * float64(rng.IntN(5)))
			strings.Append(fmt.Append(nil, country, rng.IntN(3)))
			ints.Append(base - int64(rng.IntN(3)))
			bools.Append(hot != (rng.IntN(2) == 0))
			for _, tag := range tags[:rng.IntN(len(tags)+1)] {
				sets.Add([]byte(tag))
			}
			sets.Append()
		}
		return rowset.Dense(rowset.NewBatch(out,
			floats.Column(),
			strings.Column(),
			ints.Column(),
			bools.Column(),
			sets.Column(),
		)), nil
	},
	Forgets: true,
}

// columnsPlan returns a random plan of the tasks that pass on columns of all types.
func columnsPlan(rng *rand.Rand, name string) string {
	nodes := []string{fmt.Sprintf(`{"node_id": "n0", "op": "test::typed", "inputs": [], "params": {"rows": %d, "seed": %d}}`, rng.IntN(40), rng.IntN(100)),
		fmt.Sprintf(`{"node_id": "n1", "op": "test::typed", "inputs": [], "params": {"rows": %d}}`, rng.IntN(3000)),
		`{"node_id": "n2", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 5}}`}
	typed := []bool{true, true, false}
	for len(nodes) < 12 {
		at, input := len(nodes), rng.IntN(len(nodes))
		op, params := "core::take", fmt.Sprintf(`{"count": %d}`, 1+rng.IntN(30))
		has := typed[input]
		switch rng.IntN(6) {
		case 0, 1:
			by := registry.IDKey
			if has {
				by = []registry.KeyID{registry.IDKey, 2002, 3001, 5001, 5002}[rng.IntN(5)]
			}
			op, params = "core::sort", fmt.Sprintf(`{"by": %d, "order": %q}`, by, []string{"asc", "desc"}[rng.IntN(2)])
		case 2:
			op, params = "core::filter", `{"pred_id": "some"}`
		case 3:
			op, params = "core::vm", `{"out_key": 1001, "expr_id": "double"}`
		case 4:
			rhs := rng.IntN(len(nodes))
			op, params = "core::concat", fmt.Sprintf(`{"rhs": "n%d"}`, rhs)
			has = has || typed[rhs]
		}
		nodes = append(nodes, fmt.Sprintf(`{"node_id": "n%d", "op": %q, "inputs": ["n%d"], "params": %s}`, at, op, input, params))
		typed = append(typed, has)
	}
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "nodes": [%s], "outputs": ["n%d", "n%d"],
		"expr_table": {"double": {"op": "mul", "a": {"op": "coalesce", "a": {"op": "key_ref", "key_id": 2002}, "b": {"op": "key_ref", "key_id": 1}}, "b": {"op": "const_number", "value": 2}}},
		"pred_table": {"some": {"op": "cmp", "cmp": ">", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 20}}}}`,
		name, strings.Join(nodes, ","), len(nodes)-1, len(nodes)-2)
}

var engineID = regexp.MustCompile(`"engine_request_id":"[^"]*"`)

// Columns of all types pass through every task to the answer, the same on each engine in each
// mode.
func TestColumnsOfAllTypesOnEveryModel(t *testing.T) {
	const plans = 25
	folder := fstest.MapFS{}
	for i := range plans {
		name := fmt.Sprintf("p%d", i)
		folder[name+".plan.json"] = &fstest.MapFile{Data: []byte(columnsPlan(rand.New(rand.NewPCG(uint64(i), 5)), name))}
	}
	answers := map[string]string{}
	o := rankd.Options{Plans: folder, Registry: typedTables(t), Tasks: []task.Spec{typedSource}, AllowRequestScheduling: true}
	enginetest.ForModels(t, o, func(t *testing.T, e *rankd.Engine) {
		modes := []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll}
		for i := range plans {
			for _, mode := range modes {
				name := fmt.Sprintf("p%d", i)
				r, err := e.ParseRequest(fmt.Appendf(nil, `{"user_id": 1, "request_id": "r%d", "plan": %q, "scheduling": %q, "context": {"my_int": 9007199254740993,
					"my_bool": true, "my_int_list": [9007199254740993, -5, 17], "my_string_list": ["b", "a", "ä"], "my_string": "D", "my_float": 0.25}}`, i, name, mode))
				require.NoError(t, err)
				a, err := e.Rank(t.Context(), r)
				require.NoError(t, err, "%s: %s", name, folder[name+".plan.json"].Data)
				got := engineID.ReplaceAllString(string(a.AppendJSON(nil, rankd.FormatFlat)), "")
				want, seen := answers[name]
				if !seen {
					answers[name] = got
					continue
				}
				require.Equal(t, want, got, "%s in mode %s", name, mode)
			}
		}
	})
	all := fmt.Sprint(answers)
	for _, part := range []string{`"id":9007199254740993,`, `"my_int":9007199254740993,`, `"my_int":9007199254740992,`, `"my_int":9007199254740991,`,
		`"my_bool":true`, `"my_bool":false`, `"my_string_set":["a","b"]`, `"my_string_set":[]`} {
		assert.Contains(t, all, part)
	}
}

func TestAnswerOfAllTypes(t *testing.T) {
	o := rankd.Options{Registry: typedTables(t), Tasks: []task.Spec{typedSource}, Plans: enginetest.Plans(map[string]string{
		"p": `{"node_id": "out", "op": "test::typed", "inputs": [], "params": {"rows": 40, "seed": 3}}`})}
	e := enginetest.Open(t, o)
	a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, Context: map[string]any{
		"my_int": int64(1<<53 + 1), "my_bool": false, "my_int_list": []int64{1}, "my_string_list": []string{"y", "x"}, "my_string": "D", "my_float": 1}})
	require.NoError(t, err)
	out := a.Output(0)
	assert.Equal(t, []rankd.Column{
		{Name: "score", Type: rankd.FloatColumn}, {Name: "country", Type: rankd.StringColumn}, {Name: "my_int", Type: rankd.IntColumn},
		{Name: "my_bool", Type: rankd.BoolColumn}, {Name: "my_string_set", Type: rankd.SetColumn},
	}, out.Columns())
	ints, nullInts, ok := out.Ints("my_int")
	require.True(t, ok)
	bools, nullBools, ok := out.Bools("my_bool")
	require.True(t, ok)
	sets, nullSets, ok := out.Sets("my_string_set")
	require.True(t, ok)
	require.Equal(t, nullInts, nullBools)
	require.Equal(t, nullInts, nullSets)
	exact := false
	for i := range out.Len() {
		c := out.Candidate(i)
		v, ok := c.Int("my_int")
		assert.Equal(t, !nullInts[i], ok)
		assert.Equal(t, ints[i], v)
		exact = exact || v == 1<<53+1
		b, ok := c.Bool("my_bool")
		assert.Equal(t, !nullBools[i], ok)
		assert.Equal(t, bools[i], b)
		s, ok := c.Set("my_string_set")
		assert.Equal(t, !nullSets[i], ok)
		assert.Equal(t, sets[i], s)
		assert.Subset(t, []string{"x", "y"}, s)
	}
	assert.True(t, exact)
	for _, name := range []string{"score", "nothing"} {
		_, _, ok = out.Ints(name)
		assert.False(t, ok)
		_, ok = out.Candidate(0).Set(name)
		assert.False(t, ok)
	}

	_, err = e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, ID: "r", Context: map[string]any{"my_int": "x"}})
	require.ErrorIs(t, err, rankd.ErrInvalidRequest)
	var failed *rankd.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "Invalid request", failed.Text)
	assert.Equal(t, `context member "my_int" must be an integer of 64 bits, got "x"`, failed.Detail)
}

// A plan says which columns its answer has, on every model and in every format. Nodes can read
// the other columns all the same, and an explanation shows them.
func TestReturns(t *testing.T) {
	nodes := `{"node_id": "me", "op": "viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
		{"node_id": "f", "op": "follow", "inputs": ["me"], "params": {"endpoint": "ep_0001", "fanout": 5}},
		{"node_id": "s", "op": "vm", "inputs": ["f"], "params": {"out_key": 2002, "expr_id": "e"}},
		{"node_id": "good", "op": "filter", "inputs": ["s"], "params": {"pred_id": "p"}}`
	folder := fstest.MapFS{}
	for name, returns := range map[string]string{"all": "", "one": `"returns": [2002],`, "none": `"returns": [],`, "absent": `"returns": [2001],`} {
		folder[name+".plan.json"] = &fstest.MapFile{Data: fmt.Appendf(nil, `{"schema_version": 1, "plan_name": %q, "capabilities_required": ["cap.rankd.returns.v1"],
			%s "nodes": [%s], "outputs": ["good", "f"], "expr_table": {"e": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 2}}},
			"pred_table": {"p": {"op": "in", "lhs": {"op": "key_ref", "key_id": 3001}, "list": ["US", "DE", "FR", "PL", "CA"]}}}`, name, returns, nodes)}
	}
	enginetest.OnReactor(t, rankd.Options{Plans: folder, AllowRequestExplain: true}, func(t *testing.T, e *rankd.Engine) {
		rank := func(plan string, explained bool) *rankd.Answer {
			a, err := e.Rank(t.Context(), rankd.Request{Plan: plan, UserID: 1, Explain: rankd.Explain{All: explained}})
			require.NoError(t, err)
			return a
		}
		columns := func(a *rankd.Answer, output int) (names []string) {
			for _, c := range a.Output(output).Columns() {
				names = append(names, c.Name)
			}
			return names
		}
		all := rank("all", true)
		require.Positive(t, all.Output(0).Len())
		for _, c := range []struct {
			plan         string
			first, other []string
		}{
			{"all", []string{"score", "country"}, []string{"country"}}, {"one", []string{"score"}, nil}, {"none", nil, nil}, {"absent", nil, nil},
		} {
			a := rank(c.plan, true)
			assert.ElementsMatch(t, c.first, columns(a, 0), c.plan)
			assert.ElementsMatch(t, c.other, columns(a, 1), c.plan)
			for output := range 2 {
				assert.Equal(t, slices.Collect(enginetest.IDs(all.Output(output))), slices.Collect(enginetest.IDs(a.Output(output))), c.plan)
			}
			text := string(rank(c.plan, false).AppendJSON(nil, rankd.FormatFlat))
			assert.Equal(t, c.plan == "all", strings.Contains(text, `"country"`), c.plan)
			assert.Equal(t, c.first != nil, strings.Contains(text, `"score"`), c.plan)
			assert.Equal(t, all.Explanation().Rows[0].Columns, a.Explanation().Rows[0].Columns, c.plan)
		}
	})
}

// namedTwin returns a plan with named outputs, which include further nodes of it. It also
// returns the same plan without names.
func namedTwin(rng *rand.Rand, plan string) (named, plain string) {
	const last = `"outputs": ["n11", "n10"],`
	nodes, names := []string{}, []string{}
	for i := range 1 + rng.IntN(4) {
		nodes, names = append(nodes, fmt.Sprintf(`"n%d"`, rng.IntN(12))), append(names, fmt.Sprintf(`"shelf_%d"`, 9-i))
	}
	outputs := fmt.Sprintf(`"outputs": [%s],`, strings.Join(nodes, ","))
	plain = strings.Replace(plan, last, outputs, 1)
	return strings.Replace(plain, outputs, outputs+fmt.Sprintf(`"output_names": [%s], "capabilities_required": ["cap.rankd.output_names.v1"],`, strings.Join(names, ",")), 1), plain
}

// Named outputs equal those of the plan without names, on each engine in each mode and in both
// formats, by name and by position.
func TestNamedOutputsOnEveryModel(t *testing.T) {
	const plans = 20
	folder := fstest.MapFS{}
	for i := range plans {
		rng := rand.New(rand.NewPCG(uint64(i), 6))
		named, plain := namedTwin(rng, columnsPlan(rng, fmt.Sprintf("named%d", i)))
		plain = strings.Replace(plain, fmt.Sprintf(`"named%d"`, i), fmt.Sprintf(`"plain%d"`, i), 1)
		folder[fmt.Sprintf("named%d.plan.json", i)], folder[fmt.Sprintf("plain%d.plan.json", i)] = &fstest.MapFile{Data: []byte(named)}, &fstest.MapFile{Data: []byte(plain)}
	}
	o := rankd.Options{Plans: folder, Registry: typedTables(t), Tasks: []task.Spec{typedSource}, AllowRequestScheduling: true}
	enginetest.ForModels(t, o, func(t *testing.T, e *rankd.Engine) {
		for i := range plans {
			for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll, rankd.InlineAll} {
				rank := func(name string) *rankd.Answer {
					r, err := e.ParseRequest(fmt.Appendf(nil, `{"user_id": 1, "request_id": "r", "plan": %q, "scheduling": %q, "context": {"my_int": 5,
						"my_bool": true, "my_int_list": [7, -5, 17], "my_string_list": ["b", "a"], "my_string": "D", "my_float": 0.25}}`, fmt.Sprint(name, i), mode))
					require.NoError(t, err)
					a, err := e.Rank(t.Context(), r)
					require.NoError(t, err)
					return a
				}
				named, plain := rank("named"), rank("plain")
				require.Equal(t, plain.Outputs(), named.Outputs())
				for _, format := range []rankd.Format{rankd.FormatFlat, rankd.FormatFields} {
					var members []string
					text := string(named.AppendJSON(nil, format))
					require.NotContains(t, text, `"candidates"`)
					var outputs map[string]json.RawMessage
					require.NoError(t, json.Unmarshal([]byte(enginetest.JSONMember(t, text, "outputs")), &outputs), text)
					for k := range named.Outputs() {
						name := fmt.Sprintf("shelf_%d", 9-k)
						output, ok := named.OutputNamed(name)
						require.True(t, ok)
						require.Equal(t, name, output.Name())
						require.Equal(t, named.Output(k), output)
						require.Equal(t, slices.Collect(enginetest.IDs(plain.Output(k))), slices.Collect(enginetest.IDs(output)))
						require.Empty(t, plain.Output(k).Name())
						members = append(members, strings.TrimSuffix(strings.TrimPrefix(string(outputs[name]), "["), "]"))
					}
					members = slices.DeleteFunc(members, func(rows string) bool { return rows == "" })
					text = string(plain.AppendJSON(nil, format))
					require.Equal(t, enginetest.JSONMember(t, text, "candidates"), "["+strings.Join(members, ",")+"]")
					require.NotContains(t, text, `"outputs"`)
				}
				_, ok := named.OutputNamed("n11")
				require.False(t, ok)
				_, ok = plain.OutputNamed("")
				require.False(t, ok)
			}
		}
	})
}

// Explanations name named outputs. An answer that lacks something says so. If the request
// requires the output's node, it fails.
func TestNamedOutputsPartsAndExplanation(t *testing.T) {
	o := rankd.Options{AllowRequestExplain: true, Tasks: []task.Spec{{Op: "test::fails", Output: task.Source, Run: func(*task.Ctx) (rowset.RowSet, error) {
		return rowset.RowSet{}, errors.New("broken")
	}}}, Plans: fstest.MapFS{"p.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "p",
		"capabilities_required": ["cap.rankd.on_error.v1", "cap.rankd.output_names.v1"], "outputs": ["few", "broken", "all", "few"], "output_names": ["home", "deals", "rest", "again"],
		"nodes": [{"node_id": "all", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
			{"node_id": "few", "op": "take", "inputs": ["all"], "params": {"count": 2}},
			{"node_id": "broken", "op": "test::fails", "inputs": [], "params": {}, "on_error": "empty"}]}`)}}}
	enginetest.OnReactor(t, o, func(t *testing.T, e *rankd.Engine) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, Explain: rankd.Explain{All: true, IDs: []int64{9}}})
		require.NoError(t, err)
		require.True(t, a.Degraded())
		text := string(a.AppendJSON(nil, rankd.FormatFlat))
		require.Equal(t, `{"home":[{"id":1},{"id":2}],"deals":[],"rest":[{"id":1},{"id":2},{"id":3}],"again":[{"id":1},{"id":2}]}`, enginetest.JSONMember(t, text, "outputs"))
		require.Contains(t, enginetest.JSONMember(t, text, "completeness", "broken"), `"status":"failed"`)
		var names []string
		for _, row := range a.Explanation().Rows {
			names = append(names, fmt.Sprint(row.Name, row.Rank))
		}
		require.Equal(t, []string{"home1", "home2", "rest1", "rest2", "rest3", "again1", "again2"}, names)
		require.Equal(t, 3, strings.Count(enginetest.JSONMember(t, text, "explain", "rows"), `"output_name":"rest"`))

		_, err = e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1, Require: []string{"broken"}})
		require.Error(t, err)
	})
}

// TestEveryTypeIsComputed computes columns of each type from values in Redis, by a plan in
// TypeScript, on all models, also from memory.
func TestEveryTypeIsComputed(t *testing.T) {
	tables := registrytest.Tables{Endpoints: registrytest.Redis + "[endpoint.policy]\n" + enginetest.CacheForAnHour, Keys: registrytest.ID}
	for i, k := range [][2]string{{"title", "string"}, {"likes", "int"}, {"label", "string"}, {"bucket", "int"}, {"copy", "int"}, {"popular", "bool"}, {"size", "float"}} {
		tables.Keys += registrytest.Key(10+i, k[0], k[1], registrytest.Nullable, registrytest.Writable)
	}
	tables.Params = registrytest.Param(1, "segment", "string", registrytest.Nullable)
	const source = `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "typed", build: (ctx) => ctx.candidates({ endpoint: EP.redis.redis_default, key: "rows" })
  .lookup({ endpoint: EP.redis.redis_default, key: "item:{id}", fields: [Key.title, Key.likes] })
  .vm({ outKey: Key.label, expr: P.segment == "vip" ? ` + "`${lower(Key.title)} #${Key.id} ${Key.likes / 2}`" + ` : "plain " + Key.title })
  .vm({ outKey: Key.bucket, expr: Math.floor(Key.likes / 10) })
  .vm({ outKey: Key.copy, expr: Key.likes })
  .vm({ expr: Key.likes > 9 && length(Key.title) > 3, outKey: Key.popular })
  .vm({ outKey: Key.size, expr: length(Key.label ?? "") }) });`
	compile := func(source string) compiler.Result {
		c, err := compiler.New(compiler.Config{Tasks: builtin.Catalog(), Registry: tables.Load()})
		require.NoError(t, err)
		defer c.Close()
		results, err := c.Compile(t.Context(), compiler.Source{Folder: t.TempDir(), File: "typed.plan.ts", Text: []byte(source)})
		require.NoError(t, err)
		return results[0]
	}
	plan := compile(source)
	require.Empty(t, plan.Errors)
	enginetest.OnServers(t, func(t *testing.T, addr string) {
		enginetest.Store(t, addr, []string{"RPUSH", "rows", "1", "2", "3"}, []string{"HSET", "item:1", "title", "ÄRGER", "likes", "25"},
			[]string{"HSET", "item:2", "title", "Go", "likes", "9007199254740993"}, []string{"HSET", "item:3", "likes", "-1"})
		for _, model := range enginetest.Models {
			e := enginetest.Open(t, rankd.Options{Redis: addr, Model: model, Registry: tables.FS(), PlanText: plan.Artifact})
			for range 2 { // the second time from memory
				for _, c := range []struct {
					segment any
					labels  []string
				}{
					{"vip", []string{"ärger #1 12.5", "go #2 4503599627370496", ""}},
					{nil, []string{"plain ÄRGER", "plain Go", ""}},
				} {
					a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Params: map[string]any{"segment": c.segment}})
					require.NoError(t, err, model)
					out := a.Output(0)
					labels, none, _ := out.Strings("label")
					assert.Equal(t, c.labels, labels)
					assert.Equal(t, []bool{false, false, true}, none)
					copies, _, _ := out.Ints("copy")
					assert.Equal(t, []int64{25, 9007199254740993, -1}, copies)
					buckets, _, _ := out.Ints("bucket")
					assert.Equal(t, []int64{2, 900719925474099, -1}, buckets)
					popular, _, _ := out.Bools("popular")
					assert.Equal(t, []bool{true, false, false}, popular)
					sizes, _, _ := out.Floats("size")
					assert.Equal(t, float64(len([]rune(c.labels[0]))), sizes[0])
					assert.Zero(t, sizes[2])
				}
			}
		}
	})
	for expr, want := range map[string]string{
		`outKey: Key.bucket, expr: "a"`:              "expr takes a number",
		`outKey: Key.label, expr: Key.likes`:         "expr takes a string",
		`outKey: Key.popular, expr: Key.likes`:       "expr takes a predicate",
		`outKey: Key.size, expr: Key.title`:          "expr takes a number",
		`outKey: Key.label, expr: Key.title ?? 1`:    "operator ?? takes a string",
		`outKey: Key.label, expr: "x" + Key.popular`: "want a number or a string, have key popular of type bool",
	} {
		r := compile(fmt.Sprintf(`import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "typed", build: (ctx) => ctx.fixedSource().vm({ %s }) });`, expr))
		require.NotEmpty(t, r.Errors, expr)
		assert.Contains(t, r.Errors[0].Message, want)
	}
}

// TestVectors ranks products by a user's taste, and keeps similar ones apart. Both vectors come from Redis, as packed floats,
// as lists, or malformed. It runs on all models, also from memory.
func TestVectors(t *testing.T) {
	pack := func(v ...float32) string {
		var b []byte
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return string(b)
	}
	tables := registrytest.Tables{Endpoints: registrytest.Redis + "[endpoint.policy]\n" + enginetest.CacheForAnHour, Keys: registrytest.ID}
	for i, k := range [][2]string{{"taste", "vector(3)"}, {"embedding", "vector(3)"}, {"score", "float"}, {"distance", "float"}} {
		tables.Keys += registrytest.Key(10+i, k[0], k[1], registrytest.Nullable, registrytest.Writable)
	}
	tables.Params = registrytest.Param(1, "wish", "vector(3)", registrytest.Nullable)
	const nodes = `
		{"node_id": "rows", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}},
		{"node_id": "user", "op": "lookup", "inputs": ["rows"], "params": {"endpoint": "ep_0001", "key": "user:{user}", "fields": [10]}},
		{"node_id": "items", "op": "lookup", "inputs": ["user"], "params": {"endpoint": "ep_0001", "key": "item:{id}", "fields": [11]}},
		{"node_id": "score", "op": "vm", "inputs": ["items"], "params": {"out_key": 12, "expr_id": "dot"}},
		{"node_id": "far", "op": "vm", "inputs": ["score"], "params": {"out_key": 13, "expr_id": "l2"}},
		{"node_id": "near", "op": "nearest", "inputs": ["items"], "params": {"to": "user", "vector": 11, "to_vector": 10, "by": "l2", "out_key": 13, "count": 3}},
		{"node_id": "angle", "op": "nearest", "inputs": ["items"], "params": {"to": "user", "vector": 11, "to_vector": 10, "by": "cosine", "out_key": 13, "count": 30}},
		{"node_id": "asked", "op": "nearest", "inputs": ["items"], "params": {"context": "wish", "vector": 11, "out_key": 13, "count": 2}},
		{"node_id": "apart", "op": "diversify", "inputs": ["score"], "params": {"method": "mmr", "vector": 11, "measure": "l2", "score": 12, "lambda": 100, "out_key": 13, "limit": 5}},
		{"node_id": "none", "op": "filter", "inputs": ["user"], "params": {"pred_id": "none"}},
		{"node_id": "cold", "op": "nearest", "inputs": ["items"], "params": {"to": "none", "vector": 11, "to_vector": 10, "out_key": 13, "count": 3}},
		{"node_id": "out", "op": "sort", "inputs": ["far"], "params": {"by": 12, "order": "desc"}}`
	text := fmt.Sprintf(`{"schema_version": 1, "plan_name": "near", "nodes": [%s], "outputs": ["out", "near", "angle", "cold", "asked", "apart"], "pred_table": {"none": {"op": "const_bool", "value": false}}, "capabilities_required": ["cap.rankd.expressions.v1"],
		"expr_table": {"dot": {"op": "dot", "a": {"op": "key_ref", "key_id": 10}, "b": {"op": "key_ref", "key_id": 11}},
			"l2": {"op": "l2", "a": {"op": "key_ref", "key_id": 10}, "b": {"op": "key_ref", "key_id": 11}}}}`, nodes)
	items := map[int64][]float32{1: {0.5, 0.25, -1}, 2: {1, 0, 0}, 3: {-1, 2, 0.125}, 4: nil, 5: nil, 6: {0, 0, 0}}
	taste := []float32{1, 2, 3}
	enginetest.OnServers(t, func(t *testing.T, addr string) {
		enginetest.Store(t, addr, []string{"RPUSH", "rows", "1", "2", "3", "4", "5", "6"}, []string{"HSET", "user:1", "taste", pack(taste...)},
			[]string{"HSET", "item:1", "embedding", pack(items[1]...)}, []string{"HSET", "item:2", "embedding", "1, 0, 0"}, []string{"HSET", "item:3", "embedding", "[-1, 2, 0.125]"},
			[]string{"HSET", "item:4", "embedding", "1, 0"}, []string{"HSET", "item:5", "embedding", pack(1, 2, float32(math.Inf(1)))}, []string{"HSET", "item:6", "embedding", pack(0, 0, 0)})
		for _, model := range enginetest.Models {
			e := enginetest.Open(t, rankd.Options{Redis: addr, Model: model, Registry: tables.FS(), PlanText: []byte(text)})
			for range 2 { // the second time from memory
				a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Params: map[string]any{"wish": []float32{1, 2, 0}}})
				require.NoError(t, err)
				out, ids := a.Output(0), []int64(nil)
				for i := range out.Len() {
					ids = append(ids, out.ID(i))
				}
				require.Equal(t, []int64{3, 2, 6, 1, 4, 5}, ids, model)
				vectors, null, ok := out.Vectors("embedding")
				require.True(t, ok)
				assert.Equal(t, []bool{false, false, false, false, true, true}, null)
				scores, _, _ := out.Floats("score")
				distances, none, _ := out.Floats("distance")
				assert.Equal(t, null, none)
				for i, id := range ids[:4] {
					assert.Equal(t, items[id], vectors[i])
					assert.Equal(t, rowset.Dot(taste, items[id]), scores[i])
					assert.Equal(t, rowset.L2(taste, items[id]), distances[i])
				}
				for output, want := range [][]int64{1: {3, 2, 6}, 2: {3, 2, 1}, 3: nil, 4: {3, 1}, 5: {3, 2, 1, 6, 4}} {
					if output == 0 {
						continue
					}
					var near []int64
					for i := range a.Output(output).Len() {
						near = append(near, a.Output(output).ID(i))
					}
					require.Equal(t, want, near, "%s, output %d", model, output)
				}
				nearest, _, _ := a.Output(1).Floats("distance")
				assert.Equal(t, rowset.L2(taste, items[3]), nearest[0])
				assert.Contains(t, string(a.AppendJSON(nil, rankd.FormatFlat)), `"embedding":[-1,2,0.125]`)
			}
		}
	})
}

// decayPlan computes each row's score by an if, and keeps the rows with a typed comparison.
const decayPlan = `{"schema_version": 1, "plan_name": "p", "outputs": ["out"], "capabilities_required": ["cap.rankd.expressions.v1"],
	"nodes": [
		{"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 5}},
		{"node_id": "kept", "op": "core::filter", "inputs": ["rows"], "params": {"pred_id": "p"}},
		{"node_id": "out", "op": "core::vm", "inputs": ["kept"], "params": {"out_key": 2002, "expr_id": "e"}}],
	"expr_table": {"e": {"op": "if",
		"cond": {"op": "cmp", "cmp": "==", "a": {"op": "mod", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 2}},
			"b": {"op": "const_number", "value": 0}},
		"then": {"op": "now"},
		"else": {"op": "decay", "x": {"op": "key_ref", "key_id": 1}, "half_life": {"op": "const_number", "value": 1}}}},
	"pred_table": {"p": {"op": "cmp", "cmp": "<", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 4}}}}`

// TestTypedExpressions runs a plan with typed expressions on each model, in each scheduling
// mode. now() is the time at which the request arrived.
func TestTypedExpressions(t *testing.T) {
	for _, mode := range []rankd.SchedulingMode{rankd.Adaptive, rankd.OffloadAll} {
		t.Run(string(mode), func(t *testing.T) {
			options := rankd.Options{
				Plans: fstest.MapFS{"p.plan.json": {Data: []byte(decayPlan)}}, Scheduling: rankd.Scheduling{Mode: mode},
			}
			enginetest.OnReactor(t, options, func(t *testing.T, e *rankd.Engine) {
				// The engine dates a request by a calendar time that is at most a second old.
				before := time.Now()
				answer, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
				after := time.Now()
				require.NoError(t, err)
				scores := map[int64]float64{}
				for c := range answer.Output(0).Candidates() {
					score, ok := c.Float("score")
					require.True(t, ok)
					scores[c.ID()] = score
				}
				require.Len(t, scores, 3)
				assert.Equal(t, 0.5, scores[1])
				assert.Equal(t, 0.125, scores[3])
				assert.InDelta(t, float64(before.UnixMicro()+after.UnixMicro())/2e6, scores[2], after.Sub(before).Seconds()/2+0.01)
			})
		})
	}
}
