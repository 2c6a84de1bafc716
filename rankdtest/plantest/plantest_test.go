package plantest

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

func TestMain(m *testing.M) {
	compiler.Main()
	looptest.Main(m)
}

// tables have a Redis with a cache and a password, and two services. None can be reached.
var tables = map[string]string{
	"keys.toml":   "[page]\nscore = \"float\"\ncountry = \"string\"\nsold = \"int\"\nadded = \"float\"\ntags = \"string_set\"",
	"params.toml": "[context]\nseen = \"int_list\"\n[overrides]\nweight = \"float\"",
	"endpoints.prod.toml": `
[[endpoint]]
id = "ep_shop"
name = "shop"
kind = "redis"
url = "redis+cluster://shop.example:7000"
policy.username = "shop"
policy.password_env = "RANKD_TEST_NO_SUCH_PASSWORD"
policy.cache = "ttl"
policy.request_timeout_ms = 9000
[[endpoint]]
id = "ep_scores"
name = "scores"
kind = "http"
url = "https://scores.example/v1?key=c4n4ry"
policy.bearer_token_file = "/no/such/file"
policy.request_timeout_ms = 9000
`,
}

// plans are the plans that the tests of this package test.
var plans = map[string]string{
	"shelf.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "shelf", build: (ctx) => ctx
  .candidates({ endpoint: EP.redis.shop, key: "shelf:{user}", trace: "shelf" })
  .lookup({ endpoint: EP.redis.shop, key: "product:{id}", fields: [Key.country, Key.sold, Key.added, Key.tags], onError: "null" })
  .filter({ pred: Key.country == "US", trace: "home" })
  .vm({ outKey: Key.score, expr: coalesce(Key.sold, 0) * decay(age(Key.added), 3600) * coalesce(P.weight, 1) })
  .sort({ key: Key.score, order: "desc", trace: "best" })
  .take({ count: 3 }) });`,
	"remote.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "remote", build: (ctx) => {
  const rows = ctx.candidates({ endpoint: EP.redis.shop, key: "shelf:{user}" })
    .remote({ endpoint: EP.http.scores, send: [], columns: [Key.score], onError: "null", timeout: "50%", trace: "scores" });
  return { best: rows.sort({ key: Key.score, order: "desc" }).take({ count: 1 }), all: rows };
} });`,
	"mild.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "mild", lenient: { onError: "auto" }, build: (ctx) => ctx.candidates({ endpoint: EP.redis.shop, key: "shelf:{user}" }) });`,
	"least.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "least", lenient: { onError: "auto" }, minRows: 2,
  build: (ctx) => ctx.candidates({ endpoint: EP.redis.shop, key: "shelf:{user}" }).concat({ rhs: ctx.fixedSource({ rowCount: 1 }) }) });`,
	"patient.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "patient", lenient: { onError: "auto" }, build: (ctx) => ctx.candidates({ endpoint: EP.redis.shop, key: "shelf:{user}" }).concat({ rhs: ctx.fixedSource({ rowCount: 1 }) }) });`,
	"brisk.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "brisk", lenient: { onError: "auto", answerBy: "50%" }, build: (ctx) => ctx.candidates({ endpoint: EP.redis.shop, key: "shelf:{user}" }).concat({ rhs: ctx.fixedSource({ rowCount: 1 }) }) });`,
	"poor.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "poor", lenient: { answerBy: "50%" }, minRows: 2, below: "brisk", build: (ctx) => ctx.fixedSource({ rowCount: 1 }) });`,
	"items.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "items", build: (ctx) => ctx.candidates({ endpoint: EP.redis.shop, key: "items" })
  .lookup({ endpoint: EP.redis.shop, key: "product:{id}", fields: [Key.sold, Key.added] }).vm({ outKey: Key.score, expr: age(Key.added) }) });`,
	"kept.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "kept", build: (ctx) => ctx.resident({ plan: "items", fields: [Key.score], refresh: 60 }) });`,
	"aliases.toml": `either = { a = "remote", b = "shelf", b_share = 100 }`,
	"bad.plan.ts": `import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "bad", build: (ctx) => ctx.nothing({}) });`,
}

// writeAll writes files into a folder.
func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// newConfig returns a folder with plans and the tests.
func newConfig(t *testing.T, tests map[string]string) Config {
	t.Helper()
	dir := t.TempDir()
	writeAll(t, filepath.Join(dir, "registry"), tables)
	writeAll(t, filepath.Join(dir, "plans"), plans)
	writeAll(t, filepath.Join(dir, "plans"), tests)
	lockRegistry(t, filepath.Join(dir, "registry"))
	return Config{Folder: filepath.Join(dir, "plans"), Engine: rankd.Options{Env: "prod", Registry: os.DirFS(filepath.Join(dir, "registry"))}}
}

func run(t *testing.T, c Config) *Report {
	t.Helper()
	report, err := Run(t.Context(), c)
	require.NoError(t, err)
	return report
}

// prelude stores five products. One comes from elsewhere and one is sold out.
const prelude = `import { expect, failure, forUsers, json, log, now, rank, redis, service, set, sortedSet, test } from "@ranking-dsl/test";
now(7200);
redis({ "shelf:1": [1, 2, 3, 4], "product:1": { country: "US", sold: 8, added: 3600 }, "product:2": { country: "US", sold: 5, added: 7200 },
  "product:3": { country: "FR", sold: 9, added: 7200 }, "product:4": { country: "US", sold: 1, added: 7200, tags: "a,b" } });
`

// TestExpectations: each body alone passes, or fails with these words.
func TestExpectations(t *testing.T) {
	bodies := []struct {
		name, body string
		want       []string // nil: it passes; "!" before what is not said
	}{
		{"ids", `expect(rank({ user_id: 1 })).ids(2, 1, 4)`, nil},
		{"ids as a list", `expect(rank({ user_id: 1 })).ids([2, 1, 4]).count(3)`, nil},
		{"a missing id", `expect(rank({ user_id: 1 })).ids(2, 1, 3, 4)`, []string{"the rows differ", "expected  2, 1, 3, 4", "got       2, 1, 4", "missing   3",
			`id 3 is not in the answer: filtered out by home (n2, core::filter), where it had rank 3 of 4`, `country = "FR"`}},
		{"an id too many", `expect(rank({ user_id: 1 })).ids(2, 1)`, []string{"too many  4", "3. id 4, of the 3 rows of", "shelf (n0, core::candidates), rank 4 of 4"}},
		{"two ids the other way round", `expect(rank({ user_id: 1 })).ids(1, 2, 4)`, []string{
			"first apart at best (core::sort): there 2 has rank 1 and 1 rank 2 of 3", "1. id 2", "2. id 1"}},
		{"rows from before", `redis({ "shelf:1": null }); expect(rank({ user_id: 1 })).ids()`, nil},
		{"no rows", `redis({ "shelf:1": [] }); expect(rank({ user_id: 1 })).ids(1)`, []string{"got       no rows", "id 1 is not in the answer: it never was a candidate"}},
		{"contains", `expect(rank({ user_id: 1 })).contains(4, 1)`, nil},
		{"contains not", `expect(rank({ user_id: 1 })).contains(4, 3)`, []string{"3 should be among the rows", "filtered out by home"}},
		{"lacks", `expect(rank({ user_id: 1 })).lacks(3)`, nil},
		{"lacks not", `expect(rank({ user_id: 1 })).lacks(3, 4)`, []string{"4 should not be among the rows"}},
		{"before", `expect(rank({ user_id: 1 })).before(2, 4)`, nil},
		{"before not", `expect(rank({ user_id: 1 })).before(4, 2)`, []string{"4 should come before 2", "first apart at best (core::sort)"}},
		{"before of no row", `expect(rank({ user_id: 1 })).before(3, 2)`, []string{"3 should be among the rows"}},
		{"count", `expect(rank({ user_id: 1 })).count(4)`, []string{"there should be 4 rows, not 3", "rows of the nodes\n  · shelf (core::candidates): 4\n", "· home (core::filter): 3\n"}},
		{"a column", `expect(rank({ user_id: 1 })).column("score", [5, 4.0000000001, 1])`, nil},
		{"a column that differs", `expect(rank({ user_id: 1 })).column("score", [5, 4.1, 1])`, []string{"the column score differs", "expected  [5,4.1,1]", "got       [5,4,1]",
			"column  score = 4, written by n3 (core::vm)"}},
		{"nulls of a column", `redis({ "product:4": { country: "US" } }); expect(rank({ user_id: 1 })).column("sold", [5, 8, null])`, nil},
		{"a row", `expect(rank({ user_id: 1 })).row(4, { country: "US", sold: 1, tags: ["a", "b"] })`, nil},
		{"a row that differs", `expect(rank({ user_id: 1 })).row(4, { sold: 2 })`, []string{"sold of row 4 should be 2, not 1", "column  sold = 1, written by n1 (core::lookup)"}},
		{"a row that is not there", `expect(rank({ user_id: 1 })).row(3, {})`, []string{"3 should be among the rows"}},
		{"every row", `expect(rank({ user_id: 1 })).every((row) => row.country === "US")`, nil},
		{"not every row", `expect(rank({ user_id: 1 })).every((row) => row.sold > 4, "sold")`, []string{"sold should hold for every row", `not for  {"id":4`}},
		{"sorted", `expect(rank({ user_id: 1 })).sorted("score", "desc")`, nil},
		{"not sorted", `expect(rank({ user_id: 1 })).sorted("score")`, []string{"the rows should be sorted by score, asc", "2 has 5, and 1 after it has 4"}},
		{"the request's now", `expect(rank({ user_id: 1, now: "1970-01-01T03:00:00Z" })).row(2, { score: 2.5 })`, nil},
		{"now of a test", `now(3600 * 3); expect(rank({ user_id: 1 })).row(2, { score: 2.5 })`, nil},
		{"resident rows of other data, and a parameter", `redis({ items: [1] }); expect(rank({ user_id: 1, plan: "kept", param_overrides: { weight: 1 } })).count(1);
			redis({ items: [1, 2] }); expect(rank({ user_id: 1, plan: "kept", param_overrides: { weight: 1 } })).count(2)`, nil},
		{"a parameter", `expect(rank({ user_id: 1, param_overrides: { weight: 2 } })).row(2, { score: 10 })`, nil},
		{"users", `forUsers(1, 3, (user) => { redis({ ["shelf:" + user]: [2] }); expect(rank({ user_id: user })).ids(2); })`, nil},
		{"a user", `forUsers(1, 3, (user) => { expect(rank({ user_id: user })).count(user === 1 ? 3 : 0); expect(user).equals(1); })`, []string{"user 2: the values differ"}},
		{"equal values", `expect([1, { a: [2n, "x", null] }]).equals([1, { a: [2, "x", null] }])`, nil},
		{"equal types", `expect("1").equals(1)`, []string{"the values differ", `expected  1`, `got       "1"`}},
		{"large ids", `redis({ "shelf:1": [9007199254740993n], "product:9007199254740993": { country: "US" } }); expect(rank({ user_id: 1 })).ids(9007199254740993n)`, nil},
		{"large ids that differ", `redis({ "shelf:1": [9007199254740993n], "product:9007199254740993": { country: "US" } }); expect(rank({ user_id: 1 })).ids(9007199254740992n)`,
			[]string{"missing   9007199254740992", "too many  9007199254740993"}},
		{"a failed node", `redis({ "product:1": "text" }); expect(rank({ user_id: 1 })).lacking("n1", { status: "failed", op: "core::lookup" })`, nil},
		{"not complete", `redis({ "product:1": "text" }); expect(rank({ user_id: 1 })).complete()`, []string{"the answer should be complete, and node n1 is failed", "WRONGTYPE"}},
		{"complete", `expect(rank({ user_id: 1 })).complete()`, nil},
		{"not lacking", `expect(rank({ user_id: 1 })).lacking("n1")`, []string{"node n1 should lack something"}},
		{"a failure", `redis({ "shelf:1": { a: 1 } }); expect(failure({ user_id: 1 }).error).equals("Redis error")`, nil},
		{"no failure", `failure({ user_id: 1 })`, []string{"the request succeeds, and should fail"}},
		{"a request that fails", `rank({ user_id: 0 })`, []string{"the request fails: Invalid request: user_id must be an integer from 1 to 4294967295, got 0"}},
		{"a slip of the pen", `rank({ user_id: 1, param_override: {} })`, []string{"unknown field \"param_override\"; did you mean param_overrides?"}},
		{"an unknown plan", `rank({ user_id: 1, plan: "shelv" })`, []string{"shelf"}},
		{"a plan that does not compile", `rank({ user_id: 1, plan: "bad" })`, []string{"bad.plan.ts:2:"}},
		{"values that Redis does not have", `redis({ a: { b: [1] } })`, []string{"TypeError: a: a hash of Redis holds texts, numbers and booleans, not [1]; json(value) makes a text of it"}},
		{"a number that Redis does not have", `redis({ a: [NaN] })`, []string{"a: a list of Redis"}},
		{"an exception", `undefined.x`, []string{"TypeError: Cannot read property 'x' of undefined"}},
		{"another exception", `throw "a text"`, []string{"a text"}},
		{"services", `service("scores", { columns: { score: [1, 4, 3, 2] } }); expect(rank({ user_id: 1, plan: "remote" })).shelves("best", "all").shelf("best").ids(2)`, nil},
		{"a function for a service", `service("scores", (request) => ({ columns: { score: request.ids.map((id) => (id === 3 ? 9 : id)) } }));
			const answer = rank({ user_id: 1, plan: "remote" }); expect(answer).shelf("best").ids(3); expect(answer.outputs.all).ids(1, 2, 3, 4).row(3, { score: 9 })`, nil},
		{"a row of another shelf", `service("scores", { columns: { score: [1, 4, 3, 2] } }); expect(rank({ user_id: 1, plan: "remote" })).shelf("best").ids(2, 4)`,
			[]string{"missing   4", "id 4, of the 4 rows of all"}},
		{"a row of two shelves", `service("scores", { columns: { score: [1, 4, 3, 2] } }); expect(rank({ user_id: 1, plan: "remote" }).outputs.best).row(2, { score: 5 })`,
			[]string{"score of row 2 should be 5, not 4", "1. id 2, of the 1 rows of best", "!rows of all"}},
		{"a service that fails", `service("scores", () => { throw new Error("down") }); expect(rank({ user_id: 1, plan: "remote" })).lacking("scores", { status: "failed" })`, nil},
		{"what a service says", `service("scores", () => { throw new Error("down") }); expect(rank({ user_id: 1, plan: "remote" })).complete()`, []string{"down"}},
		{"a service without an answer", `expect(rank({ user_id: 1, plan: "remote" })).complete()`, []string{"node n1 is failed", "the test gives no answer of the service scores"}},
		{"survives a service", `service("scores", () => [{ score: 1 }]); expect(rank({ user_id: 1, plan: "remote" })).survives("scores")`, nil},
		{"does not survive Redis", `service("scores", () => [{ score: 1 }]); expect(rank({ user_id: 1, plan: "remote" })).survives()`,
			[]string{"should survive without the endpoint shop, and the request fails: Redis connection failed (node n0, core::candidates)"}},
		{"survives what is not there", `expect(rank({ user_id: 1 })).survives("shops")`, []string{`no endpoint is named "shops"`}},
		{"is empty without Redis", `expect(rank({ user_id: 1, plan: "mild" })).survives("shop")`, []string{"should survive without the endpoint shop, and is empty"}},
		{"is below minimum without Redis", `expect(rank({ user_id: 1, plan: "least" })).survives("shop")`, []string{"should survive without the endpoint shop, and is below minimum", `"min_rows":2`}},
		{"hangs at a slow Redis", `expect(rank({ user_id: 1, plan: "patient", deadline_ms: 200 })).survives("shop")`,
			[]string{"should survive a slow endpoint shop, and the request fails: "}},
		{"survives a slow Redis", `expect(rank({ user_id: 1, plan: "brisk" })).survives("shop")`, nil},
		{"another plan answers", `expect(rank({ user_id: 1, plan: "poor" })).complete()`, []string{"the answer should be complete, and it is of the fallback brisk"}},
		{"a service that asks", `service("scores", () => rank({ user_id: 1 })); expect(rank({ user_id: 1, plan: "remote" })).complete()`, []string{"asks the engine nothing"}},
		{"an unknown service", `service("score", {}); rank({ user_id: 1 })`, []string{`no endpoint of kind http is named "score"`}},
		{"a Redis in place of a service", `service("shop", {}); rank({ user_id: 1 })`, []string{`no endpoint of kind http is named "shop"`}},
		{"another shelf", `service("scores", { columns: { score: [1, 4, 3, 2] } }); expect(rank({ user_id: 1, plan: "remote" })).shelf("bets")`, []string{`the answer has no shelf "bets"`, `"best", "all"`}},
		{"no answer", `expect(5).ids(5)`, []string{"this expectation is for an answer of rank"}},
		{"makers", `redis({ s: set([1, "a"]), z: sortedSet({ a: 1.5 }), j: json({ a: 1 }) }); rank({ user_id: 1 })`, nil},
		{"a sorted set as the source", `redis({ "shelf:1": sortedSet({ 2: 1 }) }); rank({ user_id: 1 })`, []string{"WRONGTYPE"}},
		{"rows that the engine keeps", `redis({ items: [1, 2] }); expect(rank({ user_id: 1, plan: "kept" })).ids(1, 2).column("score", [3600, 0])`, nil},
		{"other rows that the engine keeps", `redis({ items: [2] }); expect(rank({ user_id: 1, plan: "kept" })).ids(2); now(7300); expect(rank({ user_id: 1, plan: "kept" })).ids(2).column("score", [100])`, nil},
		{"an alias", `const side = (user) => rank({ user_id: user, plan: "either", plan_version: true }).plan_version;
			expect(side(1).plan).equals("shelf"); expect(side(1).side).equals("b");`, nil},
		{"no clock", `Date.now()`, []string{"Date is not defined", "hint: now("}},
		{"no console", `console.log(1)`, []string{"console is not defined", "hint: log(value) prints"}},
		{"a forgotten import", `delete1()`, []string{"delete1 is not defined"}},
		{"columns of plans", `expect(rank({ user_id: 1 })).every(() => Key.score > 100)`, []string{"every takes a function that answers with true or false"}},
		{"a condition that is undefined", `expect(rank({ user_id: 1 })).every((row) => row.tags?.includes("a"))`, []string{"the condition should hold for every row", `not for  {"id":2`}},
	}
	var file strings.Builder
	file.WriteString(prelude)
	for _, b := range bodies {
		file.WriteString("test(" + string(quoted(b.name)) + ", () => { " + b.body + " });\n")
	}
	c := newConfig(t, map[string]string{"shelf.plan.test.ts": file.String()})
	c.Engine.Cache = registry.CacheTTL // It keeps nothing from one test to the next.
	report := run(t, c)
	require.Len(t, report.Files, 1)
	require.Empty(t, report.Files[0].Errors)
	require.Len(t, report.Files[0].Tests, len(bodies))
	for i, b := range bodies {
		got := report.Files[0].Tests[i]
		assert.Equal(t, b.name, got.Name)
		switch {
		case b.want == nil && got.Failure != nil:
			assert.Fail(t, b.name, got.Failure.String())
		case b.want != nil && got.Failure == nil:
			assert.Fail(t, b.name, "it passes")
		case b.want != nil:
			assert.Equal(t, filepath.Join("plans", "shelf.plan.test.ts"), lastTwo(got.Failure.File))
			assert.GreaterOrEqual(t, got.Failure.Line, got.Line, b.name)
			for _, want := range b.want {
				if unsaid, ok := strings.CutPrefix(want, "!"); ok {
					assert.NotContains(t, got.Failure.String(), unsaid, b.name)
				} else {
					assert.Contains(t, got.Failure.String(), want, b.name)
				}
			}
		}
	}
	assert.Less(t, report.Elapsed, time.Minute)
}

func lastTwo(path string) string {
	return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}

// TestFilesThatCannotRun: a faulty file is an error only of that file, with the place.
func TestFilesThatCannotRun(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		want  string
		tests int // that still have an outcome
	}{
		"syntax":         {"test(", "a.plan.test.ts:1:6: error: ", 0},
		"a plan":         {`import plan from "./shelf.plan"; plan;`, "./shelf.plan\" is a plan", 0},
		"another name":   {`import { tset } from "@ranking-dsl/test"; tset();`, "it exports expect, failure, forUsers", 0},
		"twice":          {prelude + `test("a", () => {}); test("a", () => {});`, `another test of this file has the name "a"`, 0},
		"no function":    {prelude + `test("a");`, "a test has a name and a function", 0},
		"async":          {prelude + `test("a", async () => { throw new Error("unseen"); });`, "a test must not be async", 1},
		"at the top":     {prelude + `expect(1).equals(2);`, "the values differ", 0},
		"without an end": {prelude + `test("a", () => { for (;;) {} }); test("b", () => {});`, "the test computes longer than 4s without a request", 1},
		"a service without an end": {prelude + `test("a", () => { service("scores", () => { for (;;) {} }); rank({ user_id: 1, plan: "remote" }); });`,
			"", 1}, // The request or the function may end first.
		"out of reach": {`import "../registry/keys";`, "is outside the plan's folder", 0},
	} {
		t.Run(name, func(t *testing.T) {
			config := newConfig(t, map[string]string{"a.plan.test.ts": c.text, "b.plan.test.ts": prelude + `test("fine", () => { rank({ user_id: 1, plan: "shelf" }); });`})
			if strings.Contains(name, "without an end") {
				config.Timeout = 4 * time.Second // The request of the other file has it, too.
			}
			report := run(t, config)
			require.Len(t, report.Files, 2)
			assert.Len(t, report.Files[0].Tests, c.tests)
			assert.Contains(t, report.Text(), c.want)
			assert.Equal(t, c.tests == 0, len(report.Files[0].Errors) > 0)
			passed, failed := report.Counts()
			assert.Equal(t, [2]int{1, 1}, [2]int{passed, failed}, report.Text())
		})
	}
}

// TestSnapshots goes through the states of a snapshot: none, recorded, compared, different,
// gone.
func TestSnapshots(t *testing.T) {
	const body = `test("page", () => { const answer = rank({ user_id: 1 }); expect(answer).snapshot(); service("scores", { columns: { score: [4, 3, 2, 1] } });
		expect(rank({ user_id: 1, plan: "remote" })).snapshot(); redis({ "product:1": "text" }); expect(rank({ user_id: 1 })).lacking("n1").snapshot(); });`
	c := newConfig(t, map[string]string{"shelf.plan.test.ts": prelude + body})
	only := func() *Result { return &run(t, c).Files[0].Tests[0] }
	assert.Contains(t, only().Failure.String(), `there is no snapshot "page" yet`)

	c.Update = true
	assert.Nil(t, only().Failure)
	path := filepath.Join(c.Folder, "shelf.plan.test.snap.json")
	recorded, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(recorded), `"page (2)": {`)
	assert.NotContains(t, string(recorded), "request_id")
	assert.Nil(t, only().Failure)
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(recorded), string(again))

	c.Update = false
	assert.Nil(t, only().Failure)
	for change, want := range map[string][]string{
		`redis({ "shelf:1": [1, 2, 4, 5], "product:5": { country: "US", sold: 7, added: 7200 } });`: {"the answer differs from its snapshot", "first apart at home (core::filter): it gives 4 rows, and gave 3", "too many  5", "missing   4", "cut by"},
		`redis({ "product:2": { country: "US", sold: 6, added: 7200 } });`:                          {"score of row 2 should be 5, not 6", "written by n3 (core::vm)"},
		`redis({ "product:2": { country: "US", sold: 5, added: 7200, tags: "x" } });`:               {"tags of row 2 should be null, not [\"x\"]"},
		`redis({ "product:1": { country: "US", sold: 18, added: 3600 } });`:                         {"first apart at best (core::sort): there 1 has rank 1 and 2 rank 2 of 3"},
		`redis({ "shelf:1": [1, 2, 4] });`:                                                          {"the rows differ in all", "missing   3"},
	} {
		writeAll(t, c.Folder, map[string]string{"shelf.plan.test.ts": prelude + change + body})
		failure := only().Failure
		require.NotNil(t, failure, change)
		for _, w := range want {
			assert.Contains(t, failure.String(), w)
		}
	}

	for edit, want := range map[string][]string{
		`.filter({ pred: Key.country == "US" && Key.sold > 1, trace: "home" })`:       {"first apart at home (core::filter): it gives 2 rows, and gave 3", "missing   4", "filtered out by home", "sold = 1"},
		`.take({ count: 3 }).filter({ pred: Key.country == "US" && Key.sold > 5 })`:   {"first apart at n2 (core::take): it gives 3 rows, and in its place core::filter gave 3"},
		`.filter({ pred: Key.country == "US", trace: "home" }).sort({ key: Key.id })`: nil,
	} {
		text := strings.Replace(plans["shelf.plan.ts"], `.filter({ pred: Key.country == "US", trace: "home" })`, edit, 1)
		writeAll(t, c.Folder, map[string]string{"shelf.plan.ts": text, "shelf.plan.test.ts": prelude + body})
		failure := only().Failure
		assert.Equal(t, want != nil, failure != nil, "only answers are compared: %s", edit)
		for _, w := range want {
			assert.Contains(t, failure.String(), w)
		}
	}
	writeAll(t, c.Folder, plans)

	writeAll(t, c.Folder, map[string]string{"shelf.plan.test.ts": prelude + `test("other", () => {});`})
	c.Update, c.Run = true, regexp.MustCompile("other")
	run(t, c)
	assert.FileExists(t, path, "a part of the tests says nothing of the others")
	c.Run, c.Timeout = nil, time.Second
	writeAll(t, c.Folder, map[string]string{"shelf.plan.test.ts": prelude + `test("a loop", () => { for (;;) {} });` + body})
	run(t, c)
	assert.FileExists(t, path, "the test did not run")
	writeAll(t, c.Folder, map[string]string{"shelf.plan.test.ts": prelude + `test("other", () => {});`})
	c.Timeout = 0
	run(t, c)
	assert.NoFileExists(t, path)

	require.NoError(t, os.WriteFile(path, []byte("oops"), 0o644))
	_, err = Run(t.Context(), c)
	assert.ErrorContains(t, err, "shelf.plan.test.snap.json: invalid character")
}

// TestLimits: the time that a caller gives an endpoint, or each request, counts in tests. The service takes longer.
func TestLimits(t *testing.T) {
	const slow = `service("scores", (request) => { let n = 0; for (let i = 0; i < 100000; i++) { n += i } return { columns: { score: request.ids } } });`
	for name, c := range map[string]struct {
		body   string
		change func(c *Config)
	}{
		"of an endpoint": {`expect(rank({ user_id: 1, plan: "remote" })).lacking("scores", { status: "failed" });`, func(c *Config) {
			short := strings.Replace(tables["endpoints.prod.toml"], `bearer_token_file = "/no/such/file"
policy.request_timeout_ms = 9000`, `bearer_token_file = "/no/such/file"
policy.request_timeout_ms = 20`, 1)
			writeAll(t, filepath.Dir(c.Folder), map[string]string{"registry/endpoints.prod.toml": short})
		}},
		"of a request": {`expect(failure({ user_id: 1, plan: "remote" }).error).equals("Request deadline exceeded");`, func(c *Config) { c.Engine.Timeout = 20 * time.Millisecond }},
	} {
		t.Run(name, func(t *testing.T) {
			config := newConfig(t, map[string]string{"a.plan.test.ts": prelude + `test("a", () => { ` + slow + c.body + ` });`})
			c.change(&config)
			config.Timeout = time.Minute // A busy machine needs seconds for the loop.
			report := run(t, config)
			passed, _ := report.Counts()
			assert.Equal(t, 1, passed, report.Text())
			assert.GreaterOrEqual(t, report.Files[0].Tests[0].Elapsed, 20*time.Millisecond)
		})
	}
}

// TestServicesOfARequest: outside of a request, no service answers.
func TestServicesOfARequest(t *testing.T) {
	c := newConfig(t, nil)
	tables, err := readTables(&c.Engine)
	require.NoError(t, err)
	plans := &onceEach{}
	defer plans.compiler.Close()
	w, err := openWorld(&c, tables, plans)
	require.NoError(t, err)
	defer w.close()
	status := func() int {
		reply := httptest.NewRecorder()
		w.serve(reply, httptest.NewRequest(http.MethodPost, "/scores", nil))
		return reply.Code
	}
	a := &asked{Request: map[string]json.RawMessage{"plan": []byte(`"remote"`), "user_id": []byte("1")}, Services: map[string][]json.RawMessage{"scores": nil}}
	calls := 0
	_, err = w.rank(t.Context(), a, &dataset{map[string]any{"shelf:1": []any{1}}}, func(string, []byte) ([]byte, error) {
		calls++
		return []byte(`{"columns": {"score": [1]}}`), nil
	})
	require.NoError(t, err)
	assert.Equal(t, 1, calls)
	assert.Equal(t, http.StatusServiceUnavailable, status())
	assert.Equal(t, 1, calls)
}

// TestApart: each step says the ranks of the row that should come first, and of the other one.
func TestApart(t *testing.T) {
	for want, steps := range map[string][][2]int{
		"":   {{1, 2}, {1, 2}, {1, 2}},
		"n0": {{2, 1}},
		"n1": {{1, 2}, {2, 1}},
		"n2": {{2, 1}, {2, 1}, {2, 1}},                 // The last sort decided, since it was wrong from the start.
		"n3": {{1, 2}, {1, 2}, {1, 2}, {2, 1}, {2, 1}}, // It was right once, so n4 only left it as it was.
		"n5": {{2, 1}, {2, 1}, {1, 2}, {1, 2}, {1, 2}, {2, 1}, {2, 1}},
	} {
		early, late := &explain.Row{ID: 1}, &explain.Row{ID: 2}
		for i, ranks := range steps {
			step := explain.Step{Node: "n" + strconv.Itoa(i), Op: "sort", Kind: task.Sorted, After: ranks[0]}
			early.Steps = append(early.Steps, step)
			step.After = ranks[1]
			late.Steps = append(late.Steps, step)
		}
		said := apart(early, late)
		if want == "" {
			assert.Empty(t, said)
		} else {
			assert.Contains(t, said, "first apart at "+want+" (sort)")
		}
	}
}

// TestManyTests: a hundred tests in ten files take two seconds at most on an idle machine.
// Tests share nothing.
func TestManyTests(t *testing.T) {
	files := map[string]string{}
	for i := range 10 {
		var text strings.Builder
		text.WriteString(prelude)
		for k := range 10 {
			text.WriteString(`test("number ` + string(rune('0'+k)) + `", () => { expect(rank({ user_id: 2, plan: "shelf" })).ids(); redis({ "shelf:2": [2, 1] });
				log("ranked"); expect(rank({ user_id: 2, plan: "shelf" })).ids(2, 1); });` + "\n")
		}
		files["file"+string(rune('0'+i))+".plan.test.ts"] = text.String()
	}
	c := newConfig(t, files)
	report := run(t, c)
	passed, failed := report.Counts()
	assert.Equal(t, [2]int{100, 0}, [2]int{passed, failed}, report.Text())
	t.Logf("%d tests in %s", passed, report.Elapsed)
	assert.Less(t, report.Elapsed, 20*time.Second)

	c.Run = regexp.MustCompile("[12]$")
	passed, _ = run(t, c).Counts()
	assert.Equal(t, 20, passed)
	c.Files = []string{"file3.plan.test.ts"}
	report = run(t, c)
	passed, _ = report.Counts()
	assert.Equal(t, 2, passed)
	assert.Contains(t, report.Text(), "file3.plan.test.ts: number 1: ranked\n")
}

// TestReports: text for people, XML for machines.
func TestReports(t *testing.T) {
	c := newConfig(t, map[string]string{"shelf.plan.test.ts": prelude + `test("good <&>", () => { log("said", { a: 1 }); });
test("bad", () => { expect(rank({ user_id: 1 })).ids(9); });`, "syntax.plan.test.ts": "test("})
	report := run(t, c)
	text := report.Text()
	assert.Regexp(t, `(?m)^FAIL  .*shelf\.plan\.test\.ts: 2 tests, [0-9.]+m?s$`, text)
	assert.Contains(t, text, `: good <&>: said {"a":1}`)
	assert.Contains(t, text, "\n--- bad\n")
	passed, failed := report.Counts()
	assert.Equal(t, [2]int{1, 2}, [2]int{passed, failed})

	var doc junitReport
	require.NoError(t, xml.Unmarshal(report.JUnit(), &doc))
	require.Len(t, doc.Suites, 2)
	assert.Equal(t, [3]int{2, 1, 0}, [3]int{doc.Suites[0].Tests, doc.Suites[0].Failures, doc.Suites[0].Errors})
	assert.Equal(t, "good <&>", doc.Suites[0].Cases[0].Name)
	assert.Nil(t, doc.Suites[0].Cases[0].Failure)
	assert.Equal(t, "the rows differ", doc.Suites[0].Cases[1].Failure.Message)
	assert.Contains(t, doc.Suites[0].Cases[1].Failure.Text, "it never was a candidate")
	assert.Equal(t, [3]int{1, 0, 1}, [3]int{doc.Suites[1].Tests, doc.Suites[1].Failures, doc.Suites[1].Errors})
	assert.Contains(t, doc.Suites[1].Cases[0].Error.Text, "syntax.plan.test.ts:1:6: error")
}

// TestWhatCannotRunAtAll: the folder or the tables are wrong.
func TestWhatCannotRunAtAll(t *testing.T) {
	c := newConfig(t, nil)
	_, err := Run(t.Context(), c)
	assert.ErrorIs(t, err, ErrNoTests)
	c.Folder += "x"
	_, err = Run(t.Context(), c)
	assert.ErrorIs(t, err, os.ErrNotExist)

	c = newConfig(t, map[string]string{"a.plan.test.ts": prelude})
	writeAll(t, filepath.Dir(c.Folder), map[string]string{"registry/params.toml": "[[param]]\nid = 1"})
	_, err = Run(t.Context(), c)
	assert.ErrorContains(t, err, "params.toml")
}

// The tests of the folder run as subtests, too.
func TestInGoTests(t *testing.T) {
	Test(t, newConfig(t, map[string]string{"shelf.plan.test.ts": prelude + `test("one", () => { expect(rank({ user_id: 1 })).ids(2, 1, 4); });`}))
}

func quoted(text string) []byte { return strconv.AppendQuote(nil, text) }

// lockRegistry gives the columns their ids, as "rankd registry lock" does.
func lockRegistry(t *testing.T, dir string) {
	t.Helper()
	_, _, err := cmdline.LockRegistry(dir, true)
	require.NoError(t, err)
}
