package compiler

import (
	_ "embed"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//go:embed testdata/looks/sweep.js
var sweepSource string

// TestEveryFunctionOfJavaScriptAndTokens calls each function of the sandbox with a token as the receiver and at each place of
// the arguments. The file lists those that take it without an error: they may only carry it. After a deliberate change:
// go test ./compiler -update.
func TestEveryFunctionOfJavaScriptAndTokens(t *testing.T) {
	u := newUnit(testLanguage(t), "plans", Source{Folder: t.TempDir(), File: "a.plan.ts", Text: []byte(`export default 1`)})
	require.True(t, u.read())
	main := u.load()
	require.NotNil(t, main)
	_, err := main(goja.Undefined(), u.host.object)
	require.NoError(t, err)
	sweep, err := u.vm.RunScript("sweep", sweepSource)
	require.NoError(t, err)
	function, _ := goja.AssertFunction(sweep)
	token := u.vm.GlobalObject().Get("Key").ToObject(u.vm).Get("country")
	faults := func(goja.FunctionCall) goja.Value {
		n := len(u.answer.Errors) + u.faults
		u.answer.Errors, u.faults, u.seen = nil, 0, make(map[string]bool)
		return u.vm.ToValue(n)
	}
	watch := time.AfterFunc(time.Minute, func() { u.vm.Interrupt("a function does not end") })
	defer watch.Stop()
	v, err := function(goja.Undefined(), token, u.vm.ToValue(faults))
	require.NoError(t, err)
	got := v.String()
	const path = "testdata/looks/carriers.txt"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
	assert.Greater(t, strings.Count(got, "\n"), 50)
}

// TestLooks: each text looks at a token, and is an error that says so.
func TestLooks(t *testing.T) {
	for _, text := range []string{
		`["a", "b"].indexOf(Key.country) >= 0`, `["a"].lastIndexOf(Key.country) > 0`, `[Key.country, Key.title].includes("US")`, `[Key.country].indexOf("US") == 0`,
		`[..."ab"].concat(Key.country as any).includes("US")`, `[0, Key.id].lastIndexOf(0) == 0`, `["US", Key.title].includes(Key.country)`,
		`new Set([Key.country, Key.title]).has("US")`, `new Set([Key.country]).has(Key.country)`, `new Set([Key.country, Key.title]).size == 2`,
		`new Set([Key.country]).delete("US")`, `new Set(["US"]).delete(Key.country as any)`, `new Set(["US", {}]).has(Key.country as any)`,
		`new Map([["a", 2]]).get(Key.country as any) == 2`, `new Map([["a", 2]]).has(Key.country as any)`, `new Map([[Key.country, 1]]).get("US" as any) == 1`,
		`new Map<any, any>().set(Key.country, 1).size == 1`, `new WeakMap<any, any>([[Key.country, 1]]).has({})`, `new WeakSet<any>([Key.country]).has({})`,
		`Number.isFinite(Key.score)`, `Number.isNaN(Key.score)`, `Number.isInteger(Key.score)`, `Number.isSafeInteger(Key.score)`, `Object.is(Key.country, "a")`,
		`Array.isArray(Key.tags)`, `typeof Key.score == "number"`, `typeof (Key.score + 1) == "number"`, `(Key.score as any) instanceof Object`, `(Key.score as any) instanceof Number`,
		`Boolean(Key.id)`, `!!new Boolean(Key.id)`, `Boolean(Key.id > 5)`, `JSON.stringify(Key.country) == "x"`, `JSON.stringify({ a: [Key.country] }) == "x"`,
		`JSON.stringify({ a: 1 }, () => Key.country) == "x"`, `JSON.stringify([1], null, Key.id as any) == "x"`, `Object.keys({ ...(Key.country as any) }).length == 0`,
		`Object.keys(Key.country as any).length == 0`, `Object.assign({}, Key.country).length == 0`, `Object.entries(Key.id as any).length == 0`, `"in" in (Key.country as any)`,
		`Object.isFrozen(Key.id)`, `Object.getPrototypeOf(Key.id) == null`, `Object.prototype.isPrototypeOf(Key.id)`, `Object.prototype.toString.call(Key.id) == "x"`,
		`Reflect.has(Key.id as any, "in")`, `Reflect.ownKeys(Key.id as any).length == 0`, `(Key.id as any).constructor == Number`, `[][Symbol.iterator].call(Key.id).next().done`,
		`(() => { const f: any = Number; return f["is" + "Finite"](Key.score); })()`, `Number.isFinite.call(null, Key.score)`, `Number.isFinite.apply(null, [Key.score])`,
		`Number.isFinite.bind(null, Key.score)()`, `Reflect.apply(Number.isFinite, null, [Key.score])`, `[Key.score].map(Number.isFinite as any)[0]`, `[Key.score].map(Boolean as any)[0]`,
		`[Key.id].filter(Boolean as any).length == 1`, `[Key.country, Key.title].sort()[0] == "a"`, `[Key.id, Key.score].sort((a: any, b: any) => a - b)[0] == 5`, `[Key.country].join() == "a"`,
		`String(Key.country) == "a"`, `Number(Key.id) == 5`, `isNaN(Key.score as any)`, `parseInt(Key.country as any) == 5`, `({ a: true } as any)[Key.country as any]`, `({ [Key.country as any]: true } as any).a`,
		`({ a: true, get [Key.country as any]() { return true; } }).a`, `/US/.test(Key.country as any)`, `"US".includes(Key.country as any)`, `Int8Array.of(1).includes(Key.id as any)`, `ArrayBuffer.isView(Key.id)`,
		`Object.getOwnPropertyDescriptor(Object.defineProperty({}, "a", { value: 1, enumerable: (Key.id > 5) as any }), "a")!.enumerable`, `Object.keys(Object.create({}, { a: { value: 1, enumerable: (Key.id > 5) as any } })).length == 1`,
		`"a" in new Proxy({}, { has: () => (Key.id > 5) as any })`, `Object.is(new Proxy(Key.id as any, {}), 5)`, `Array(Key.id as any).length == 5`, `new Array(Key.id as any).length == 5`, `Object(Key.id) == 5`,
		`(() => { try { return Number.prototype.toFixed.call(Key.id, 2) == "x"; } catch { return true; } })()`, `(() => { switch (Key.id as any) { case 5: return true; default: return false; } })()`,
		`(() => { let n = 0; for (const x of [1, 2]) { if (Key.id as any) n++; } return n == 2; })()`, `["US", "CA"].some((c) => Key.country == c)`, `[Key.id].find((x: any) => x > 5) == 5`,
		`[...{ [Symbol.iterator]: () => ({ next: () => ({ done: Key.id > 5, value: 1 }) }) } as any].length == 0`, `Math.max({ valueOf: () => Key.id } as any, 1) == 1`,
		`({ a: true } as any)[{ toString: () => Key.country } as any]`, `(+{ [Symbol.toPrimitive]: () => Key.id } as any) == 1`,
		`Object.keys(new Proxy({ a: 1 }, { getOwnPropertyDescriptor: () => ({ value: 1, configurable: true, enumerable: Key.id > 5 }) as any })).length == 1`,
		`(() => { let n = 0; Key.id > 5 ? n++ : 0; return n == 0; })()`, `(() => { const a = []; Key.id > 5 && a.push(1); return a.length == 0; })()`,
	} {
		a := compileText(t, planOf("filter", "pred", []string{text}))
		require.NotEmpty(t, a.Errors, text)
		assert.Contains(t, []string{"look", "conversion", "condition", "type", "loop", "no-counterpart", "unknown-method"}, a.Errors[0].Code, "%s: %v", text, a.Errors[0])
		assert.NotEmpty(t, a.Errors[0].Hint, text)
	}
}

// TestCarries: what carries tokens means what it says, and so does what has a meaning per row.
func TestCarries(t *testing.T) {
	pairs := [][2]string{
		{`[Key.id, Key.score].map((k) => k * 0.5).reduce((a, b) => a + b) > 1`, `Key.id * 0.5 + Key.score * 0.5 > 1`},
		{`new Map([["x", Key.id]]).get("x")! > 1`, `Key.id > 1`}, {`Object.entries({ a: Key.id })[0][1] > 1`, `Key.id > 1`},
		{`((...keys: any[]) => Math.max(...[...keys]))(Key.id, Key.score) > 1`, `Math.max(Key.id, Key.score) > 1`},
		{`[...new Set([Key.id, Key.score])].reduce((a: any, b: any) => a + b) > 1`, `Key.id + Key.score > 1`},
		{`Object.values({ ...{ a: Key.id }, b: Key.score })[1] > 1`, `Key.score > 1`}, {`Object.fromEntries([["a", Key.id]]).a > 1`, `Key.id > 1`},
		{`(({ a, ...rest }: any) => rest.b)({ a: 1, b: Key.id }) > 1`, `Key.id > 1`}, {`[[Key.id], [Key.score]].flat().at(-1)! > 1`, `Key.score > 1`},
		{`Object.freeze([Key.id]).slice().reverse().concat([Key.score])[1] > 1`, `Key.score > 1`}, {`Array.from({ length: 2 }, (_, i) => [Key.id, Key.score][i])[1] > 1`, `Key.score > 1`},
		{`(() => { class A { #k: any; constructor(k: any) { this.#k = k; } get twice() { return this.#k * 2; } } return new A(Key.id).twice > 4; })()`, `Key.id * 2 > 4`},
		{`(() => { const g = (function* (): any { const k: any = yield 1; return k; })(); g.next(); return g.next(Key.id).value > 1; })()`, `Key.id > 1`},
		{`((f: any) => f.call(null, Key.id) > 1)((x: any) => x)`, `Key.id > 1`}, {`Reflect.apply((x: any) => x, null, [Key.id]) > 1`, `Key.id > 1`},
		{`Reflect.get({ a: Key.id }, "a") > 1`, `Key.id > 1`}, {`new Proxy({ a: Key.id }, {}).a > 1`, `Key.id > 1`}, {`new Proxy({}, { get: () => Key.id } as any).a > 1`, `Key.id > 1`},
		{`(Object.defineProperty({}, "a", { value: Key.id }) as any).a > 1`, `Key.id > 1`}, {`[1, 2].fill(Key.id as any)[1] > 1`, `Key.id > 1`},
		{`[Key.country as any, "US"].includes("US")`, `true`}, {`["US", Key.country].indexOf("US") == 0`, `true`},
		{`["US", "CA"].includes(Key.country)`, `Key.country.in(["US", "CA"])`}, {`["US", "CA"].includes(Key.country, 1)`, `Key.country.in(["CA"])`},
		{`new Set(["US", "CA"]).has(Key.country as any)`, `Key.country.in(["US", "CA"])`}, {`new Set([1, 2]).has(Key.id as any)`, `Key.id.in([1, 2])`},
		{`[].concat.call([Key.id] as any, Key.score as any)[1] > 1`, `Key.score > 1`}, {`[Key.id].every(() => true) && Key.id > 1`, `Key.id > 1`},
		{`[{ k: Key.id, w: 2 }].filter((x) => x.w > 1).map((x) => x.k)[0] > 1`, `Key.id > 1`}, {`(typeof 5 === "number" && typeof nobody === "undefined") ? Key.id > 1 : false`, `Key.id > 1`},
		{`([1] instanceof Array && ({}) instanceof Object && !((() => 1) instanceof Array)) ? Key.id > 1 : false`, `Key.id > 1`},
		{`((k: any) => k?.in([1]))(Key.id)`, `Key.id.in([1])`}, {`(([a = 5]: any) => a)([Key.id]) > 1`, `Key.id > 1`},
	}
	var texts, wanted []string
	for _, pair := range pairs {
		texts, wanted = append(texts, pair[0]), append(wanted, pair[1])
	}
	got, want := predicates(t, texts), predicates(t, wanted)
	for i := range texts {
		assert.Equal(t, compact(t, want[i]), compact(t, got[i]), texts[i])
	}
}

// TestSilentRoundings: what JavaScript or esbuild would compute in another way is an error.
func TestSilentRoundings(t *testing.T) {
	for text, code := range map[string]string{
		`table(Key.id, { 9007199254740993: 2 }) > 1`: "precision", `table(Key.id, { [2 ** 60]: 2 }) > 1`: "precision", `table(Key.id, { "-9007199254740992": 2 }) > 1`: "precision",
		`{ enum E { A = 10 ** -5 } return Key.id > E.A }`: "syntax", `/\p{L}/u.test("a")`: "exception", `new RegExp("\\P{L}", "u").test("a")`: "exception",
	} {
		a := compileText(t, planOf("filter", "pred", []string{text}))
		require.NotEmpty(t, a.Errors, text)
		assert.Equal(t, code, a.Errors[0].Code, "%s: %v", text, a.Errors[0])
	}
	assert.Contains(t, compact(t, predicates(t, []string{`table(Key.id, { "9007199254740993": 2, 7: 1 }) > 1`})[0]), `"9007199254740993":2`)
}
