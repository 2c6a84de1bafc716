package rankd_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/registry/registrytest"
	"github.com/rankd/rankd/task/builtin"
)

// TestEveryTypeIsComputed computes columns of each type from what Redis has, by a plan in TypeScript, on all models, from memory, too.
func TestEveryTypeIsComputed(t *testing.T) {
	tables := registrytest.Tables{Endpoints: registrytest.Redis + "[endpoint.policy]\n" + cacheForAnHour, Keys: registrytest.ID}
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
	onServers(t, func(t *testing.T, addr string) {
		store(t, addr, []string{"RPUSH", "rows", "1", "2", "3"}, []string{"HSET", "item:1", "title", "ÄRGER", "likes", "25"},
			[]string{"HSET", "item:2", "title", "Go", "likes", "9007199254740993"}, []string{"HSET", "item:3", "likes", "-1"})
		for _, model := range models {
			e := open(t, rankd.Options{Redis: addr, Model: model, Registry: tables.FS(), PlanText: plan.Artifact})
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
