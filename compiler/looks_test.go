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
		`(() => { const a: any = [1]; a.constructor = Key.id; return a.map((x: any) => x)[0] == 1; })()`, `(() => { const a: any = new Uint8Array(2); a.constructor = Key.id; return a.slice().length == 2; })()`,
		`(() => { const b: any = new ArrayBuffer(2); b.constructor = Key.id; return b.slice(1).byteLength == 1; })()`, `(() => { const r: any = /a/; r.constructor = Key.id; return "bab".split(r).length == 2; })()`,
		`(() => { const f: any = () => 1; Object.defineProperty(f, "name", { value: Key.country }); return f.bind(null).name == "bound "; })()`,
		`(() => { class A { static get length() { return Key.id as any; } } return A.bind(null).length == 0; })()`,
		`(() => { const r: any = /a/; r.exec = () => Key.id; return r.test("a"); })()`, `(() => { const r: any = /a/; r.exec = () => Key.id; return "abc".match(r) == null; })()`,
		`(() => { class R extends RegExp { exec(): any { return Key.id } } return "abc".split(new R("b")).length == 1; })()`, `(() => { class R extends RegExp { exec(): any { return Key.id } } return [..."abc".matchAll(new R("b", "g"))].length == 1; })()`,
		`(() => { const r: any = new Proxy(/a/, { get: (of: any, name) => (name == "exec" ? () => Key.id : of[name]) }); return RegExp.prototype.test.call(r, "a"); })()`,
		`(() => { const r: any = /a/; r.exec = () => ({ index: 0, 0: "a", groups: Key.id, length: 1 }); return "abc".replace(r, "x") == "xbc"; })()`,
		`(() => { class S { constructor(k: any) { return k * 2; } } return (new S(Key.id) as any) > 4; })()`, `(() => { function F() { return Key.id } return new (F as any)() > 4; })()`, `(() => { class A { constructor() { return Key.id as any } } class B extends A {} return (new B() as any) > 4; })()`,
		`(() => { class S { constructor() { return Key.id as any } } return (Reflect.construct(S, []) as any) > 4; })()`, `(() => { const o: any = { __proto__: Key.id }; return o.toString === Object.prototype.toString; })()`, `(() => { const o: any = { "__proto__": (1, Key.id) }; return o.a === undefined; })()`,
		`(() => { function F() {} F.prototype = Key.id; class B extends (F as any) {} return !!B; })()`, `(() => { function F() {} F.prototype = Key.id; return typeof new (F as any)() == "object"; })()`,
		`"abc".startsWith({ [Symbol.match]: Key.id, toString: () => "a" } as any)`, `(Error as any).isError(Key.id)`, `(JSON as any).isRawJSON(Key.id)`,
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
		`(() => { Object.getOwnPropertyDescriptor(Object.prototype, "__proto__")!.set!.call(Key.tags, []); return [...Key.tags as any].length == 0; })()`, `(() => { const o: any = {}; o.__proto__ = Key.id; return o == 5; })()`,
		`(() => { const r: any = /a/y; Object.defineProperty(r, "global", { value: Key.id > 5 }); return "aa".replace(r, "b") == "ba"; })()`,
		`1 instanceof ({ [Symbol.hasInstance]: () => Key.id > 5 } as any)`,
		`[1, 2].concat({ length: 1, [Symbol.isConcatSpreadable]: Key.score > 1, 0: 5 } as any).length == 3`, `[1].concat({ get [Symbol.isConcatSpreadable]() { return Key.id > 5 } } as any).length == 2`,
		`(() => { const a: any = [1]; a[Symbol.isConcatSpreadable] = Key.id; return a.concat(2).length == 2; })()`, `new RegExp({ [Symbol.match]: Key.id > 5, source: "a", flags: "" } as any).test("a")`,
		`JSON.stringify({ a: 1 }, ["a", Key.country] as any) == "1"`, `(new Proxy({}, { getPrototypeOf: () => Key.id as any }) as any) instanceof Map`, `Object.prototype.toString.call({ [Symbol.toStringTag]: Key.country }) == "[object Object]"`,
		`new Set([1, 2]).intersection({ size: 3, has: () => Key.id > 5, keys: () => [1].values() } as any).size == 1`, `Array.from({ length: Key.id } as any).length == 2`,
		`(() => { const o = Object.create(null); o.valueOf = () => Key.id; o.toString = () => "5"; return o == 5; })()`, `+{ __proto__: null, valueOf: () => Key.id, toString: () => "5" } == 5`,
		`Math.max({ __proto__: null, valueOf: () => Key.id, toString: () => "5" } as any, 1) == 5`, "`${{ __proto__: null, toString: () => Key.country, valueOf: () => 5 }}` == `5`",
		// A default, in and a list of members ask whether a request or a row has it.
		`(({ weight = 2 }: any) => weight)(P) > 1`, `(() => { const { weight = 2 } = P as any; return weight > 1; })()`, `(() => { const { weight: w = 2 } = P as any; return w > 1; })()`,
		`(() => { let w: any; ({ weight: w = [2][0] } = P as any); return w > 1; })()`, `((w: any = 2) => w > 1)(P.weight)`, `(function (w: any = -2) { return w > 1 })(P.weight)`,
		`(() => { class A { w: any; constructor(w: any = 2) { this.w = w } } return new A(P.weight).w > 1; })()`, `(() => { const { country = "US" } = Key as any; return country == "US"; })()`,
		`(() => { const D = 2; return ((w: any = D) => w > 1)(P.weight); })()`, `(() => { const D = { w: 2 }; return (function ({ weight = D.w }: any) { return weight > 1 })(P); })()`,
		`(() => { const d = () => P.weight; return ((v: any = d(), w: any = d()) => v > w)(1, P.weight); })()`, `((w: any = P.weight) => w > 1)(P.weight)`,
		`(() => { const [w = 2] = [P.weight] as any; return w > 1; })()`, `(() => { const { a: { weight = 2 } } = { a: P } as any; return weight > 1; })()`, `(() => { const { w = 2 } = { w: P.weight } as any; return w > 1; })()`,
		`(({ a: { w = 2 } }: any) => w > 1)({ a: { w: P.weight } })`, `(function ([, [w = 2]]: any) { return w > 1 })([1, [P.weight]])`, `(() => { let w: any; [w = 2] = [P.weight] as any; return w > 1; })()`,
		`(() => { const [w = 2] = new Set([P.weight]) as any; return w > 1; })()`, `(() => { const { w = 2 } = Object.create({ w: P.weight }); return w > 1; })()`,
		`(() => { const o: any = { in: {} }; ({ w: o.in.x = 2 } = { w: P.weight } as any); return o.in.x > 1; })()`, `(() => { const { ["wei" + "ght"]: w = 2 } = P as any; return w > 1; })()`,
		`(() => { const o: any[] = [], i = 0; [o[i] = 2] = [P.weight] as any; return o[0] > 1; })()`, `(() => { class A { #w: any; constructor() { [this.#w = 2] = [P.weight] as any; } get w() { return this.#w; } } return new A().w > 1; })()`,
		`(() => { const [w = 2] = (function* () { yield P.weight; })() as any; return w > 1; })()`, `(() => { class A { w: any; constructor() { ({ weight: this.w = 2 } = P as any); } } return new A().w > 1; })()`,
		`(() => { for (const [w = 2] of [[P.weight]] as any) return w > 1; })()`, `(() => { for (const { weight = 2 } of [P] as any) return weight > 1; })()`,
		`(({ country = "US" }: any) => country == "US")(Key)`, `"weight" in P`, `Object.hasOwn(P, "weight")`, `Reflect.has(P, "weight")`, `Object.getOwnPropertyDescriptor(P, "weight") != null`,
		`Object.getOwnPropertyNames(P).length == 1`, `Reflect.ownKeys(Key).length == 1`, `Object.entries(P).length == 1`, `Object.values(Key).length == 1`,
		`"country" in Key`, `({ weight: 1, ...P } as any).weight > 1`, `(Object.assign({ weight: 1 }, P) as any).weight > 1`,
		`Object.keys(P).length == 1`, `(() => { const { weight, ...rest } = P as any; return rest.a == 1; })()`, `(() => { let n = 0; for (const k in Key) n++; return n > 1; })()`,
		// A list of a set shows which members are equal.
		`[...new Set([Key.id, Key.id * Key.id])].length == 2`, `Array.from(new Set([Key.id, Key.score * 1])).length == 2`, `[...new Set([Key.id * 2, 1])].length == 2`, `[...new Set([P.weight, P.weight * 1])].length == 2`,
		`(() => { let n = 0; for (const k of new Set([Key.id, Key.id + 1])) n++; return n == 2; })()`, `(() => { let n = 0; new Set([Key.id, Key.id + 1]).forEach(() => n++); return n == 2; })()`,
		`new Set([Key.id, Key.id + 1]).entries().next().value![0] == 1`, `new Map(new Set([Key.id, Key.id + 1]) as any).size == 2`, `new Set([Key.id, Key.id + 1]).keys().next().value == 1`,
		// JavaScript would see the elements of a set of texts, and no bool is a number.
		`([] as any[]).concat(Key.tags).length == 1`, `[Key.tags].flat().length == 1`, `[[Key.tags]].flat(2).length == 1`, `[1].flatMap(() => Key.tags as any).length == 1`, `Key.pinned === 1 as any`, `Key.pinned !== Key.id as any`,
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
		{`((k: any = Key.id, n: any = 2, w: any = P.weight) => k * n * w)() > 1`, `Key.id * 2 * P.weight > 1`}, {`((k: any = 1) => k)(Key.score) > 1`, `Key.score > 1`}, {`(({ w = P.weight, v: { a = P.weight } = {} }: any = {}) => w * a)() > 1`, `P.weight * P.weight > 1`},
		{`(() => { const f = (n: number, w: any = n > 0 ? f(n - 1) : P.weight): any => w * 2; return f(1) > 1; })()`, `P.weight * 2 * 2 > 1`}, {`(() => { const { a: { b = 2 } = {}, c: d = 3 } = { a: { b: Key.id } } as any; return b * d > 1; })()`, `Key.id * 3 > 1`},
		{`(() => { let n: any = 1; for (const { k = Key.id, w = P.weight } of [{}, {}] as any) n = n * k * w; return n > 1; })()`, `1 * Key.id * P.weight * Key.id * P.weight > 1`},
		{`(() => { let a: any, b: any, n = 0; const o = ([a = Key.id, b = P.weight] = [undefined, undefined] as any); return o.length == 2 ? a * b > 1 : false; })()`, `Key.id * P.weight > 1`},
		{`(() => { const { a = P.weight, ...rest } = { b: Key.id } as any, c = rest.b; return a * c > 1; })()`, `P.weight * Key.id > 1`},
		{`(() => { const D = 2; return ((k: any = D) => k)(Key.score) > 1; })()`, `Key.score > 1`}, {`(({ k = 1, id = 2 }: any) => k * id)({ k: Key.score }) > 1`, `Key.score * 2 > 1`},
		{`[...new Set([Key.id, Key.score, Key.id])].length == 2 && Key.id > 1`, `true && Key.id > 1`}, {`[...new Set([Key.id * 2])][0]! > 1`, `Key.id * 2 > 1`}, {`("nothing" in P || "id" in Key) && Key.id > 1`, `true && Key.id > 1`},
		{`[[Key.tags]].flat()[0]!.includes("a")`, `Key.tags.includes("a")`}, {`Key.pinned == 1 as any`, `Key.pinned == (1 as any)`}, {`Key.pinned === true`, `Key.pinned == true`}, {`(({ id = 3 } = Key as any) => id)() > 1`, `Key.id > 1`},
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

// TestSides: both sides of ?: run behind a token, and so does the right side of the others. They may change what they have made, and
// nothing else, themselves or through what they call.
func TestSides(t *testing.T) {
	for i, c := range [][2]string{
		{`let n = 0; const f = () => n++;`, `f()`},
		{`let n = 0; function f() { n = n + 1; return n }`, `f()`},
		{`const o = { n: 0 }; const f = () => { o.n += 1; return 1 };`, `f()`},
		{`const a: any[] = []; const f = () => a.push(1);`, `f()`},
		{`const a: any[] = [];`, `[1].map(a.push.bind(a))[0]`},
		{`class A { n = 0; add() { this.n++; return this } } const a = new A();`, `a.add().n`},
		{`function* g(n: number) { for (let i = 0; i < n; i++) yield i; } const it = g(3);`, `[...it].length`},
		{`const it = [1, 2][Symbol.iterator]();`, `[...it].length`},
		{`const it = [1, 2].values();`, `it.next().value`},
		{`const m = new Map(); const f = () => m.set(5, 6).size;`, `f()`},
		{`const re = /a/g;`, `(re.test("aa") ? 1 : 2)`},
		{`const o: any = { set a(v: any) { n = v } }; let n = 0;`, `(Object.assign(o, { a: 3 }), 1)`},
		{`let n = 0; class A { x = n++; }`, `new A().x`},
		{`class A { static n = 0; static next() { return ++A.n; } }`, `A.next()`},
		{`class A { #n = 0; get next() { return ++this.#n; } } const a = new A();`, `a.next`},
		{`const h: any = { a: [1], run(name: string) { return this.a[name](2); } };`, `h.run("push")`},
		{`const a: any = [];`, `Reflect.apply(a.push, a, [1])`},
		{`const a: any = [1, 2];`, `a.sort()[0]`},
		{`const o: any = { a: 1 }; const f = () => { delete o.a; return 1; };`, `f()`},
		{`const o: any = { a: { b: 1 } }; const f = () => { delete o?.a.b; return 1; };`, `f()`},
		{`let n = 0; const f = async () => { await 0; n++; };`, `(f(), 1)`},
		{`const f = (() => { let n = 0; return () => n += 1; })();`, `f()`},
		{`const f = () => { let n = 0; const g = () => n += 1; return Key.score > 1 ? g() : n; };`, `f()`},
		{`const w = new WeakMap<any, any>(), k = {}; const f = () => (w.set(k, 1), 1);`, `f()`},
		{`const u = new Uint8Array(4); const f = () => (u[0] = 5);`, `f()`},
		{`const u = new Uint8Array(4); const f = () => (new DataView(u.buffer).setInt8(0, 1), 1);`, `f()`},
		{`const o: any = {}; const p = new Proxy(o, {}); const f = () => (p.x = 1);`, `f()`},
		{`const f = () => { let a, rest: any; [a, ...rest] = [3, 1, 2]; rest.reverse(); return rest[0]; };`, `f()`},
		{`class S { static i: any; n = 0; constructor() { if (S.i) return S.i; S.i = this } } new S();`, `(new S().n = 5)`},
		{`const old: any = { n: 0 }; class S { constructor() { return old } }`, `Reflect.construct(S, []).n++`},
		{`const old: any = { n: 0 };`, `((JSON.parse("1", () => old) as any).n = 5)`},
		{`function f(this: any) { this.n = 2 } const o: any = {};`, `(f.call(o), 1)`},
		{`const o: any = {}; const f = (a: any) => { a.k = 1; return a.k; };`, `f(o)`},
		{`let n = 0; const o = { toString() { n++; return "a" } };`, "`${o}`.length"},
		{`let n = 0; const f = (x = n++) => x;`, `f()`},
		{`function f(a: any, b = () => { a = 5; }) { b(); return a }`, `f(1)`},
		{`const o: any = Object.create(null); o.a = 1; const c: any = { count: 0 }; const f = () => { ({ count: c.count } = { count: 5 }); return 1; };`, `f()`},
		{`let n = 0; const o = { f() { n++; return 1 }, g: function () { return this.f() } }`, `o.g()`},
		{`let n = 0; const t = (s: any) => (n++, 1)`, "t`a`"},
		{`let n = 0; const o = { get v() { return ++n } }`, `o.v`},
		{`let n = 0; class A { static { n = 5; } static v = 1 } const f = () => { class B { static { n++; } } return 1 }`, `f()`},
		{`let n = 0; const p = new Proxy({}, { get: () => ++n }) as any`, `p.a`},
		{`let n = 0`, `[3, 1].sort((a, b) => (n++, a - b))[0]`},
		{`let n = 0`, `"ab".replace(/a/, () => String(n++)).length`},
	} {
		texts := []string{
			"{ " + c[0] + "; return Key.id > (Key.score > 5 ? " + c[1] + " : 1) }", "{ " + c[0] + "; return Key.id > (Key.score > 5 ? 1 : " + c[1] + ") }",
			"{ " + c[0] + "; let x: any = Key.score; x ??= " + c[1] + "; return Key.id > x }", "{ " + c[0] + "; return Key.id > 1 && " + c[1] + " }", "{ " + c[0] + "; return Key.id > 1 || Key.id > " + c[1] + " }",
			"{ " + c[0] + "; return Key.id > (Key.score ?? (false ? 2 : " + c[1] + ")) }",
		}
		for _, text := range []string{texts[0], texts[1+i%5]} {
			a := compileText(t, planOf("filter", "pred", []string{text}))
			require.NotEmpty(t, a.Errors, text)
			assert.Equal(t, "condition", a.Errors[0].Code, "%s: %v", text, a.Errors[0])
			assert.Contains(t, a.Errors[0].Message, "changes what was there before", text)
		}
		if strings.Contains(c[0], "Key.") {
			continue
		}
		plain := "{ " + c[0] + "; const x: any = true ? " + c[1] + " : 1; return x == x ? Key.id > 1 : false }"
		assert.Empty(t, compileText(t, planOf("filter", "pred", []string{plain})).Errors, plain)
	}
	for _, c := range [][2]string{
		{`const sum = (l: number[]) => { let s = 0; l.forEach((x) => { s += x; }); return s; };`, `sum([1, 2])`},
		{`const sum = (l: number[]) => { const o: any = {}; for (const x of l) o[x] = (o[x] ?? 0) + 1; const r = []; r.push(...Object.keys(o)); r.sort(); return r.length; };`, `sum([1, 2])`},
		{`class A { n = 0; #p = 1; constructor(k: any) { this.n = k; } add() { this.#p++; this.n += this.#p; return this } } const f = () => new A(3).add().n;`, `f()`},
		{`function* g(n: number) { for (let i = 0; i < n; i++) yield i; } const f = () => { let s = 0; for (const x of g(4)) s += x; return s; };`, `f()`},
		{`const f = () => new Map([[1, 2], [3, 4]]).set(5, 6).size + new Set([1]).add(2).size;`, `f()`},
		{`const f = (...r: number[]) => r.sort().reverse()[0];`, `f(1, 2)`},
		{`const f = function (this: any) { this.x = 1; } as any;`, `new f().x`},
		{`const f = () => { const [a, ...rest] = [3, 1, 2]; rest.reverse(); return rest[0]; };`, `f()`},
		{`const f = (o: any) => { const { a, ...rest } = o, n = 1; rest.b = n; return rest.b; };`, `f({ a: 1 })`},
		{`const f = ([x, { a, ...rest }]: any, ...more: any[]) => { rest.b = x; more.push(2); return rest.b; };`, `f([5, { a: 1 }])`},
		{`class A { n = 0 } class B extends A { m = 1 } const f = () => { const b = new B(); b.n = b.m; return new A().n + b.n; };`, `f()`},
		{`const f = () => { const d = JSON.parse('{"a":{"b":[1]}}'); d.a.b.push(2); return d.a.b.length; };`, `f()`},
		{`const f = () => { const o = new Object() as any; o.a = 1; const p: any = new Map([[1, 2]]); p.set(2, 3); return p.size + o.a; };`, `f()`},
		{`const f = () => { const v = new DataView(new ArrayBuffer(8)), e: any = new TypeError("a"), w = new WeakSet(), s: any = new String("a"), r: any = new RegExp("a"); v.setInt8(0, 1); e.a = 1; w.add(e); s.a = 1; r.a = 1; return v.getInt8(0); };`, `f()`},
		{`const f = () => { const m: any = new Map(), s: any = new Set(), w = new WeakMap(), a: any = new Array(2), p: any = new Proxy({}, {}); m.a = 1; s.add(1); w.set(m, 1); a[0] = 5; p.x = a[0]; return p.x; };`, `f()`},
		{`const fact = (n: number): number => n < 2 ? 1 : n * fact(n - 1);`, `fact(4)`},
		{`const a: any = [1, 2];`, `[...a].sort()[0]`},
		{`const f = () => { let n = 0; const g = () => n += 1; g(); g(); return n; };`, `f()`},
		{`const t = (s: any, v: any) => v + 1;`, "t`a${1}`"},
		{`const o: any = {}; const f = () => { ({ ...o }).x = 1; const c = { ...o, a: 1 }; c.b = 2; const d = JSON.parse("{}"); d.x = 1; return Object.keys(c).length; };`, `f()`},
		{`class B { l: any[] = []; add(x: any) { this.l.push(x); return this; } } class C extends B { constructor() { super(); this.add(1); } } const f = () => new C().add(2).l.length;`, `f()`},
		{`class C extends Map { constructor() { super([[1, 2]]); this.set(3, 4); } } const f = () => new C().set(5, 6).size;`, `f()`},
		{`const f = () => { const it = [1, 2, 3].values(); it.next(); const m = new Map([[1, 2]]); let s = 0; for (const [k, v] of m.entries()) s += k + v; return s + [...it].length; };`, `f()`},
		{`const f = (a: any) => { a = a ?? {}; a.k = 1; return a.k; };`, `f(null)`},
		{`const f = (l: any[]) => l.reduce((acc, x) => { acc[x] = (acc[x] || 0) + 1; return acc; }, {} as any);`, `f(["a", "a"]).a`},
		{`let n = 0; var m = 1; { let n = 5; m = n; } const f = () => { { let n = 1; n++; } return 1; };`, `f()`},
		{`const f = (s: string) => { let m, out = 0; const re = /\d/g; while ((m = re.exec(s)) !== null) out += +m[0]; return out; };`, `f("1a2")`},
		{`const f = () => { try { throw 1 } catch (e) { e = 2; return e } }`, `f()`},
		{`const f = (n: number) => [1, 2].map((x) => (n += x))[1]`, `f(3)`},
		{`const f = ({ n = 1 } = {}) => [1, 2].map((x) => (n += x))[1]`, `f()`},
		{`function Acc(this: any) { this.n = 0; this.add = (x: number) => { this.n += x; return this; }; } const f = () => new (Acc as any)().add(2).add(3).n`, `f()`},
		{`class L { list: number[] = []; *[Symbol.iterator]() { for (const x of this.list) yield x; } push(x: number) { this.list.push(x); return this; } } const f = () => [...new L().push(1).push(2)].length`, `f()`},
		{`const f = () => { const m = new Map<string, number[]>(); for (const w of ["a", "b", "a"]) { if (!m.has(w)) m.set(w, []); m.get(w)!.push(1); } return m.get("a")!.length; }`, `f()`},
		{`const f = () => { const g = Array.from({ length: 2 }, () => Array(2).fill(0)); g[1][1] = 5; return g[1][1]; }`, `f()`},
	} {
		got := predicates(t, []string{"{ " + c[0] + "; return Key.id > (Key.score > 5 ? " + c[1] + " : 1) }", "{ " + c[0] + "; const x: any = " + c[1] + "; return Key.id > (Key.score > 5 ? x : 1) }"})
		assert.Equal(t, compact(t, got[1]), compact(t, got[0]), c[0])
	}
	for _, text := range []string{
		`{ const o: any = {}; const f = () => { const p: any = new Proxy(o, {}); p.x = 1; return 1; }; const x = Key.id > 5 ? f() : 1; return Key.id > x + (o.x ?? 0) }`,
		`{ const u = new Uint8Array(4); const f = () => (new Uint8Array(u.buffer)[0] = 1); const x = Key.id > 5 ? f() : 1; return Key.id > x + u[0] }`,
		`{ const log: any[] = []; const note = (x: any) => { log.push(x); return x; }; return note(Key.id > 5) && note(Key.score > 1) }`,
		`{ let n = 5; const o: any = { x: Key.score }; o.x ??= n++; return o.x > n }`, `{ let last: any; const f = (x: any) => { for (last of [1, 2]); return x; }; return Key.id > (Key.score > 1 ? f(2) : 3) }`,
	} {
		a := compileText(t, planOf("filter", "pred", []string{text}))
		require.NotEmpty(t, a.Errors, text)
		assert.Contains(t, a.Errors[0].Message, "changes what was there before", text)
	}
	assert.Contains(t, compact(t, predicates(t, []string{`{ let n = 5; const o: any = { x: null }; o.x ??= n++; return Key.id > n + o.x }`})), `"value":11`)
	assert.Contains(t, compact(t, predicates(t, []string{`{ const c: any = { aa: 2 }, w = (k: string) => c[k] ??= 7; return Key.id > (Key.score > 1 ? w("aa") : 3) }`})), `"value":2`)
}

// TestSilentRoundings: what JavaScript or esbuild would compute in another way is an error.
func TestSilentRoundings(t *testing.T) {
	for text, code := range map[string]string{
		`table(Key.id, { 9007199254740993: 2 }) > 1`: "precision", `table(Key.id, { [2 ** 60]: 2 }) > 1`: "precision", `table(Key.id, { "-9007199254740992": 2 }) > 1`: "precision",
		`{ enum E { A = 10 ** -5 } return Key.id > E.A }`: "syntax", "{ /* one */ enum E { A = 10 ** -5 } return Key.id > E.A }": "syntax", "{ enum E { A, // {\n B = (/* } */ A + 2)**2 } return Key.id > E.B }": "syntax",
		"{ enum E { A = `${1 + 2 ** 3}` as any } return Key.country == E.A }": "syntax", "{ const enum E { A = 5, B = A * 10 ** -5 } return Key.id > E.B }": "syntax", `{ const s = "/* enum"; enum E { "a }" = 2 **2 } return Key.id > E["a }"] }`: "syntax", `/\p{L}/u.test("a")`: "exception", `/\u212a/i.test("k")`: "exception", "\"\u212a\".replace(/K/i, \"\") == \"\"": "exception", "/stra\u00dfe/i.test(\"STRA\u1e9eE\")": "exception",
		`/(?:(a)|(b))*/.exec("ab")![1] == "a"`: "exception", `"a".match(/^a(.*)?$/)![1] === ""`: "exception", `(1234.5).toLocaleString() == "1234.5"`: "exception", `"a10".localeCompare("a9", "en", { numeric: true }) < 0`: "exception",
		`"I".toLocaleLowerCase("tr") == "i"`:  "exception",
		`new RegExp("\\P{L}", "u").test("a")`: "exception",
	} {
		a := compileText(t, planOf("filter", "pred", []string{text}))
		require.NotEmpty(t, a.Errors, text)
		assert.Equal(t, code, a.Errors[0].Code, "%s: %v", text, a.Errors[0])
	}
	for _, text := range []string{ // powers beside enums
		`{ /** enum **/ enum E { A = 1 } return Key.id > E.A ** 2 }`, `{ enum E { A = "2 ** 3" as any } return Key.country == E.A }`, "{ enum E { A = 1, /* 2 ** 3 */ B = 2 } let x = 3; x **= 2; return Key.id > x + 2 ** E.B }",
		`{ enum E { A = 1 } const f = (o: any) => { o["a"] = 2; return o; }; return Key.id > f({}).a ** 3 }`, `{ const c = 2 ** 3; enum E { A = c } return Key.id > E.A }`,
	} {
		assert.Empty(t, compileText(t, planOf("filter", "pred", []string{text})).Errors, text)
	}
	assert.Contains(t, compact(t, predicates(t, []string{`table(Key.id, { "9007199254740993": 2, 7: 1 }) > 1`})[0]), `"9007199254740993":2`)
}

// TestCaughtRefusals: what the engine cannot do is an error, also where plan code catches it or asks whether it is there.
func TestCaughtRefusals(t *testing.T) {
	caught := func(code string) string {
		return "(() => { try { " + code + " return Key.id > 1; } catch { return Key.id > 2; } })()"
	}
	for text, message := range map[string]string{
		caught(`new RegExp("a", "v");`): "not v", caught(`RegExp("a", "dg");`): "not dg", caught(`"a".match("(?i:A)");`): "have no such group", caught(`"a".search("(?i:A)");`): "have no such group",
		caught(`[..."a".matchAll("(?-i:A)" as any)];`): "have no such group", caught(`/a/.compile("(?i:A)");`): "have no such group", caught(`new RegExp("(?<a>x)\\k<b>");`): "patterns of plan code lack this",
		caught(`JSON.parse("1e400");`): "range of doubles", caught(`JSON.parse('["\\ud83c"]');`): "half of a pair", caught(`JSON.parse('"\ud83c"');`): "half of a pair", caught(`JSON.parse('{"\\udf89\\ud83c":1}');`): "half of a pair",
		caught(`Array(1e9).fill(0);`): "at most 33554432 elements", caught(`Array.from({ length: 1e9 });`): "at most 33554432 elements", caught(`Array.prototype.join.call({ length: 1e12 } as any, "");`): "at most 33554432 elements",
		caught(`String(() => 1);`): "the text of a function", "`${class A {}}` == \"\"": "the text of a function",
		`typeof ([1].values() as any).map == "function"`: "no Iterator.prototype.map", `"isWellFormed" in String.prototype && !("a" as any).isWellFormed()`: "no String.prototype.isWellFormed", `!(Object as any).groupBy`: "no Object.groupBy",
		`(RegExp as any).$1 === undefined`: "no RegExp.$1", `typeof WebAssembly == "undefined"`: "no WebAssembly", `typeof (globalThis as any).URL == "undefined"`: "no URL",
		`(Object.setPrototypeOf(Key, {}), Key.id > 5)`: "Key cannot be changed", `(Reflect.setPrototypeOf(EP.redis, {}), Key.id > 5)`: "EP.redis cannot be changed",
		`(Reflect.apply(Object.getOwnPropertyDescriptor(Object.prototype, "__proto__")!.set!, Key, [{}]), Key.id > 5)`: "Key cannot be changed",
	} {
		a := compileText(t, planOf("filter", "pred", []string{text}))
		require.NotEmpty(t, a.Errors, text)
		assert.Contains(t, a.Errors[0].Message, message, text)
		assert.NotEmpty(t, a.Errors[0].Hint, text)
	}
	for _, text := range []string{ // which throw everywhere
		`new RegExp("(");`, `new RegExp("*");`, `new RegExp("a", "gg");`, `new RegExp("a", "uu");`, `new RegExp("a", "uv");`, `new RegExp("a", "x");`, `new RegExp("[b-a]");`, `new RegExp("a**");`, `"a".match("[");`, `JSON.parse("{");`,
		`"x".padStart(1e10);`, `"x".padEnd(2 ** 29);`, `"xy".repeat(2 ** 28);`, `"x".repeat(-1);`, `"x".repeat(Infinity);`, `Array(3).join("x".repeat(2 ** 28));`, `2n ** 10000000000n;`, `1n << 10000000000n;`, `1n >> -10000000000n;`,
	} {
		assert.Contains(t, compact(t, predicates(t, []string{caught(text)})[0]), `"value":2`, text)
	}
	for _, text := range []string{
		`"x".padStart(1e10, "").length == 1`, `"".repeat(1e10) == ""`, `"ab".padEnd("4" as any, "-") == "ab--"`, `"ab".repeat({ valueOf: () => 2 } as any) == "abab"`, `1n ** 10000000000n == 1n`, `0n << 10000000000n == 0n`, `(-1n) ** 10000000001n == -1n`,
		`JSON.parse('"\\ud83d\\ude00"').length == 2`, `JSON.parse('"\ud83d\ude00 \\\\ud800"').length == 9`, `JSON.parse("[1,2]", (k, v) => (typeof v == "number" ? v + 1 : v))[1] == 3`,
		`new Uint32Array(new Float64Array([NaN]).buffer)[0] == 0`, `(() => { const b = new ArrayBuffer(16), f = new Float64Array(b, 8), u = new Uint32Array(b); f[0] = NaN; return u[2] == 0 && u[3] == 0x7ff80000; })()`,
		`(() => { const f = new Float64Array(2), u = new Uint32Array(f.buffer); f.fill(NaN); f.set([NaN], 1); f[0] += 1; return u[0] == 0 && u[2] == 0; })()`,
		`(() => { class R extends RegExp { exec(s: any): any { return super.exec(s) } } return "abc".split(new R("b")).length == 2 && "abab".replace(new R("b", "g"), "x") == "axax" && [..."abab".matchAll(new R("b", "g"))].length == 2 && new R("b").test("b"); })()`,
		`(() => { class K { #x = 1; has(o: any) { return 1 + (#x in o ? 1 : 2) * 3; } } return new K().has(new K()) == 4 && new K().has({}) == 7; })()`, `(() => { const g: any = (function* () {})(); g.map = 5; return g.map == 5 && Object.keys(g).length == 1; })()`,
	} {
		assert.Contains(t, compact(t, predicates(t, []string{text})[0]), `"value":true`, text)
	}
}
