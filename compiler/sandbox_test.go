package compiler_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
)

// bodied returns a plan whose build function runs the statements first. They are on line 5.
func bodied(name, statements string) string {
	return fmt.Sprintf(`import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({
  name: %q,
  build: (ctx: any): any => {
    %s
    return ctx.fixed_source();
  },
});
`, name, statements)
}

// compileAll compiles plans with these bodies with one compiler and returns the results by name.
func compileAll(t *testing.T, config compiler.Config, bodies map[string]string) map[string]compiler.Result {
	t.Helper()
	folder := t.TempDir()
	for name, body := range bodies {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+compiler.Extension), []byte(bodied(name, body)), 0o600))
	}
	sources, err := compiler.Folder(folder)
	require.NoError(t, err)
	results, err := newCompilerOf(t, config).Compile(context.Background(), sources...)
	require.NoError(t, err)
	byName := make(map[string]compiler.Result)
	for _, r := range results {
		byName[strings.TrimSuffix(r.File, compiler.Extension)] = r
	}
	return byName
}

// forbidden are bodies that try to use what plans must not have. Each has the text of its
// error.
var forbidden = map[string]struct{ body, message string }{
	"eval":                     {`eval("1")`, "plans have no eval"},
	"indirect_eval":            {`(0, eval)("1")`, "plans have no eval"},
	"global_eval":              {`(globalThis as any).eval("1")`, "plans have no eval"},
	"function":                 {`new Function("return 1")()`, "plans have no Function"},
	"constructor":              {`(() => {}).constructor("return 1")()`, "cannot make code from text"},
	"constructor_of_array":     {`([] as any).constructor.constructor("return 1")()`, "cannot make code from text"},
	"constructor_of_method":    {`ctx.fixed_source.constructor("return 1")()`, "cannot make code from text"},
	"constructor_of_generator": {`(function* () {}).constructor("yield 1")()`, "cannot make code from text"},
	"constructor_of_async":     {`(async () => {}).constructor("return 1")()`, "cannot make code from text"},
	"constructor_of_class":     {`(class {}).constructor("return 1")()`, "cannot make code from text"},
	"constructor_of_bound":     {`(() => {}).bind(null).constructor("return 1")()`, "cannot make code from text"},
	"descriptor": {`Object.getOwnPropertyDescriptor(Object.getPrototypeOf(() => {}), "constructor")!.value("return 1")()`,
		"cannot make code from text"},
	"reflect_construct":        {`Reflect.construct((() => {}).constructor as any, ["return 1"])`, "cannot make code from text"},
	"extends_function":         {`class F extends ((() => {}).constructor as any) {} new F("return 1")`, "cannot make code from text"},
	"restore":                  {`Object.defineProperty(Object.getPrototypeOf(() => {}), "constructor", { value: 1 })`, "Cannot redefine property"},
	"caught_clock":             {`(() => { try { return Date.now(); } catch { return 1; } })()`, "plans have no Date"},
	"asked_clock":              {`typeof Date === "function" ? 1 : 2`, "plans have no Date"},
	"caught_randomness":        {`(() => { try { return Math.random(); } catch { return 1; } })()`, "plans have no randomness"},
	"caught_code":              {`(() => { try { return (() => 1).constructor("return 1")(); } catch { return 1; } })()`, "plan code cannot make code from text"},
	"caught_locale":            {`(() => { try { return (1).toLocaleString().length; } catch { return 9; } })()`, "plans have no locales"},
	"caught_properties":        {`(() => { try { return /\p{L}/u.test("a") ? 1 : 2; } catch { return 9; } })()`, "plan code has no patterns with"},
	"caught_group":             {`(() => { try { return /(?:(a)|b)*/.exec("ab")?.[1] ? 1 : 2; } catch { return 9; } })()`, "plan code has no capturing group"},
	"caught_case":              {`(() => { try { return /\u212a/i.test("k") ? 1 : 2; } catch { return 9; } })()`, "plan code ignores the case"},
	"asked_intl":               {`globalThis.Intl ? 1 : 2`, "plans have no Intl"},
	"clock":                    {`Date.now()`, "plans have no Date"},
	"clock_of_object":          {`new (globalThis as any).Date()`, "plans have no Date"},
	"performance":              {`performance.now()`, "plans have no performance"},
	"randomness":               {`Math.random()`, "plans have no randomness"},
	"crypto":                   {`crypto.randomUUID()`, "plans have no crypto"},
	"timers":                   {`setTimeout(() => {}, 1)`, "plans have no setTimeout"},
	"interval":                 {`setInterval(() => {}, 1)`, "plans have no setInterval"},
	"promise":                  {`Promise.resolve(1)`, "plans have no Promise"},
	"process":                  {`process.exit(1)`, "plans have no process"},
	"module":                   {`module.exports = 1`, "plans have no module"},
	"network":                  {`fetch("http://127.0.0.1/")`, "plans have no fetch"},
	"socket":                   {`new WebSocket("ws://127.0.0.1/")`, "plans have no WebSocket"},
	"file":                     {`Deno.readTextFileSync("/etc/passwd")`, "plans have no Deno"},
	"file_by_require":          {`require("fs").readFileSync("/etc/passwd")`, "cannot load \"fs\""},
	"file_by_import":           {`import("/etc/passwd")`, "cannot load \"/etc/passwd\""},
	"file_by_computed_import":  {`const name = "/etc/" + "passwd"; import(name)`, "plan code cannot use this syntax"},
	"file_by_computed_require": {`const f: any = require; f("f" + "s")`, "plans have no require"},
	"console":                  {`console.log(1)`, "plans have no console"},
	"recursion":                {`const f = (n: number): number => f(n + 1) + 1; f(0)`, "functions call each other more than 2000 levels deep"},
	"recursion_caught":         {`const f = (): any => { try { return f() } catch { return f() } }; f()`, "functions call each other more than 2000 levels deep"},
	"recursion_by_getter":      {`const o: any = { get x() { return o.x } }; o.x`, "functions call each other more than 2000 levels deep"},
}

// TestForbidden refuses each attempt to reach more than the source. All attempts run in one
// child, and a good plan after them compiles.
func TestForbidden(t *testing.T) {
	bodies := map[string]string{"zz_good": ""}
	for name, f := range forbidden {
		bodies[name] = f.body
	}
	results := compileAll(t, compiler.Config{}, bodies)
	for name, f := range forbidden {
		r := results[name]
		if assert.NotEmpty(t, r.Errors, name) {
			d := r.Errors[0]
			assert.Contains(t, d.Message+" "+d.Hint, f.message, name)
			assert.Equal(t, 5, d.Line, "%s: %s", name, d.String())
			assert.NotEmpty(t, d.Hint, name)
		}
		assert.Nil(t, r.Artifact, name)
	}
	assert.Empty(t, results["zz_good"].Errors)
}

// slow are bodies that take time. The last three cannot be interrupted.
var slow = map[string]string{
	"endless_loop":      `for (;;) {}`,
	"endless_catch":     `for (;;) { try { for (;;) {} } finally { continue } }`,
	"endless_generator": `function* all() { for (;;) yield 1 } for (const x of all()) {}`,
	"endless_getter":    `const o = { get x() { for (;;) {} } }; const y = o.x`,
	"endless_compare":   `[3, 2, 1].sort(() => { for (;;) {} })`,
	"backtracking":      `/^(a+)+\1$/.test("a".repeat(60) + "b")`,
	"bigint_power":      `const x = 3n ** 1000000000n`,
	"bigint_product":    `let x = 3n; for (;;) x *= x`,
	"bigint_text":       `const x = (2n ** 20000000n).toString()`,
}

// large are bodies that take memory.
var large = map[string]string{
	"array":         `new Array(2 ** 24).fill(0)`,
	"growing_array": `const a: number[][] = []; for (;;) a.push(new Array(1000).fill(1))`,
	"growing_text":  `let s = "x"; for (;;) s += s + "y"`,
	"typed_array":   `const all: any[] = []; for (;;) all.push(new Float64Array(1 << 22).fill(1))`,
	"padding":       `const all: string[] = []; for (let i = 0; ; i++) all.push(String(i).padStart(1 << 20))`,
}

// TestSlow and TestLarge stop plans that take too much. Each plan costs only its own child, and
// the error names the line that ran.
func TestSlow(t *testing.T) {
	t.Parallel()
	testHungry(t, slow, "timeout", compiler.Config{Timeout: 150 * time.Millisecond, MemoryBytes: 4 << 30})
}

func TestLarge(t *testing.T) {
	t.Parallel()
	testHungry(t, large, "memory", compiler.Config{Timeout: 5 * time.Minute, MemoryBytes: 32 << 20})
}

// stoppedEarly reports whether the time of some plan was over before its body ran. It also
// reports a good plan that ran out of time.
func stoppedEarly(results map[string]compiler.Result) bool {
	for name, r := range results {
		for _, d := range r.Errors {
			if d.Code == "timeout" && (d.Line != 5 || strings.HasSuffix(name, "_good")) {
				return true
			}
		}
	}
	return false
}

func testHungry(t *testing.T, hungry map[string]string, code string, config compiler.Config) {
	bodies := map[string]string{"aa_good": "", "zz_good": ""}
	for name, body := range hungry {
		bodies[name] = body
	}
	results := compileAll(t, config, bodies)
	for stoppedEarly(results) && config.Timeout < time.Minute { // a busy machine used up the time before the bodies could
		config.Timeout *= 4
		results = compileAll(t, config, bodies)
	}
	for name := range hungry {
		r := results[name]
		if assert.Len(t, r.Errors, 1, name) {
			d := r.Errors[0]
			assert.Equal(t, code, d.Code, "%s: %s", name, d.String())
			assert.Equal(t, 5, d.Line, "%s: %s", name, d.String())
			assert.NotEmpty(t, d.Hint)
		}
		assert.Nil(t, r.Artifact, name)
	}
	assert.Empty(t, results["aa_good"].Errors)
	assert.Empty(t, results["zz_good"].Errors)
}
