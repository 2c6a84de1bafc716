package compiler

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/rowset"
)

var (
	codeFirst = flag.Uint64("code_first", 0, "the first seed of TestRandomPlanCode")
	codeSeeds = flag.Uint64("code_seeds", 8, "seeds of TestRandomPlanCode, each of 50 programs")
	codeTime  = flag.Duration("code_time", 0, "how long TestRandomPlanCode takes; 0: as long as its seeds need")
)

const programsOfSeed = 50

// codeGen writes random plan code that carries tokens and looks at them. It does not know what the code means: that is
// what JavaScript computes from the same text where Key has the values of one row.
type codeGen struct {
	rng  *rand.Rand
	vars map[byte][]string // in scope, by kind: n, b, s, a (arrays of numbers)
	made int               // names
}

func (g *codeGen) one(of ...string) string { return of[g.rng.IntN(len(of))] }

func (g *codeGen) name() string { g.made++; return fmt.Sprintf("v%d", g.made) }

// fill replaces each %n, %b, %s, %a, %o by code of that kind, %p by a property name, %c by a small constant, %k by a
// token and %v by code of any kind.
func (g *codeGen) fill(template string, depth int) string {
	var out strings.Builder
	for i := 0; i < len(template); i++ {
		if template[i] != '%' || template[i+1] == ' ' { // which is the operator
			out.WriteByte(template[i])
			continue
		}
		i++
		switch kind := template[i]; kind {
		case 'p':
			out.WriteString(g.one("a", "b", "c"))
		case 'c':
			out.WriteString(g.one("0", "1", "2", "3"))
		case 'k':
			out.WriteString(g.one("Key.id", "Key.score", "Key.model_score_1", "(Key.id > 2)", "Key.country"))
		case 'v':
			out.WriteString(g.code(g.one("n", "n", "b", "s", "a", "o")[0], depth-1))
		default:
			out.WriteString(g.code(kind, depth-1))
		}
	}
	return out.String()
}

// Templates of code by kind. Those of carries only move values about, those of looks look at one.
var (
	leaves = map[byte][]string{
		'n': {"Key.id", "Key.score", "Key.model_score_1", "2", "0.5", "3", "1"},
		'b': {"(Key.id > 2)", "(Key.score < Key.model_score_1)", "true", "false", `(Key.country == "US")`},
		's': {"Key.country", `"US"`, `"DE"`, `"a"`},
		'a': {"[Key.id, 2]", "[1, 2, 3]", "[Key.score, Key.id, 0.5]", "[Key.model_score_1]"},
		'o': {"{ a: Key.id, b: 2, c: Key.score }", "{ a: 1, b: Key.score, c: 3 }", "{ a: 1, b: 2, c: 3 }"},
		'i': {"[Key.id, 1]", "new Set([1, 2])", "new Map([[1, Key.id]]).values()"},
	}
	carries = map[byte][]string{
		'n': {
			"(%n + %n)", "(%n - %n)", "(%n * %n)", "(%n / 2)", "(- %n)", "Math.max(%n, %n)", "Math.min(...%a)", "Math.abs(%n)", "(%b ? %n : %n)", "(%n ?? %n)",
			"%a[0]", "%a.at(-1)", "(%o).%p", `(%o)["%p"]`, `new Map([["x", %n], ["y", %n]]).get("x")`, "%a.reduce((a, b) => a + b)", "%a.reduceRight((a, b) => a * 2 + b, %n)",
			"((x) => x * 2)(%n)", "((x, y = %n) => x + y)(%n)", "(([x, ...r]) => x + r.length)(%a)", "(({ a, ...r }) => a + r.b)(%o)", "((...r) => r[r.length - 1])(%n, %n)",
			"((f) => f.call(null, %n))((x) => x + 1)", "Reflect.apply((x, y) => x - y, null, [%n, %n])", "((x) => x).apply(null, [%n])", "((x, y) => x + y).bind(null, %n)(%n)",
			`helpers["tw" + "ice"](%n)`, "helpers[\"sum\"](...%a)", "Reflect.get(%o, \"%p\")", "Reflect.construct(Box, [%n]).twice", "new Box(%n).k", "new Box(%n).twice", "Box.of(%n).k",
			"(() => { let s = 0; for (const x of %i) s = s + x; return s; })()", "(() => { let s = 0; for (const k in %o) s += 1; return s + %n; })()", "[...gen(%n)][1]", "gen(%n).next().value",
			"(() => { const g = (function* () { const k = yield 1; return k; })(); g.next(); return g.next(%n).value; })()", "Object.values(%o)[%c % 3]", "Object.entries(%o)[1][1]",
			`Object.fromEntries([["a", %n]]).a`, "Object.assign({}, %o, { c: %n }).c", "({ ...%o, b: %n }).b", "Object.freeze(%o).a", `Object.defineProperty({}, "a", { value: %n }).a`,
			"new Proxy(%o, {}).a", "new Proxy({}, { get: () => %n }).a", "({ get a() { return %n; } }).a", "(() => { try { throw %n; } catch (e) { return e; } })()", "[[%n], [%n]].flat()[1]",
			"(%o)?.a", "[%n, %n].map((x, i) => x + i)[1]", "Array.from({ length: 2 }, (_, i) => %a[0])[1]", "(() => { let x = %n; x += %n; x *= 2; return x; })()", "(() => { const o = %o; o.a += %n; return o.a; })()",
			"(() => { const a = %a; a[0] = %n; return a[0] + a.length; })()", "(() => { let x = null; x ??= %n; return x; })()", "[...%i][0]", "(() => { const [x] = %i; return x; })()", "((f) => f`a${%n}b`)((_, x) => x)",
			"(() => { const { a: { b = %n } = {} } = { a: { } }; return b; })()", "(() => { const m = new Map(); m.set(\"k\", %n); m.forEach((v) => { m.r = v; }); return m.r; })()", "structured(%o).a", "(0, %n)",
			"[%n].concat(%a)[1]", "(() => { const s = new Set([%n]); for (const x of s) return x; })()", "[%n, 1].fill(%n)[0]", "(() => { const w = new WeakMap(), o = {}; w.set(o, %n); return w.get(o); })()",
			"(() => { outer: for (const x of %a) { for (const y of %a) { if (y === y + 0 || true) break outer; } } return %n; })()", "(() => { switch (%c) { case 1: return %n; default: return %n; } })()",
			"(() => { let t = 0; const f = (x) => { t += 1; return x; }; return (%b ? f(%n) : %n) + t; })()", "(() => { const o = { t: 1 }; const f = (x) => { o.t = x; return 2; }; return (%b ? f(%c) : f(%n)) + o.t; })()",
			"(() => { const l = [1]; const r = %b ? l.push(2) : 3; return r + l.length; })()", "(() => { const g = gen(%n); const r = %b ? g.next().value : 3; return r + [...g].length; })()",
			"(() => { let t = 1; const f = () => { t = 3; return %b; }; const r = %b && f(); return r ? t : %n; })()", "(() => { let x = %n, t = 1; x ??= (t = 2); return x + t; })()",
			"(%b ? ((l) => { let s = 0; l.forEach((x) => { s += x; }); const o = {}; o.s = s; return [o, s].at(-1); })(%a) : %n)", "(%b ? new Box(%n).twice : [...gen(%n)].reverse()[0])",
			"(%b ? (() => { const [x, ...r] = [1, ...%a]; r.push(2); return r[0]; })() : %n)", "(%b ? (({ a, ...r }) => { r.b = %n; return r.b; })(%o) : %n)", "(%b ? (() => { class C { x = %n } const c = new C(); c.x += 1; return c.x; })() : %n)",
			"(%b ? (() => { const o = JSON.parse('{\"a\":{\"b\":[1]}}'); o.a.b.push(%n); return o.a.b[1]; })() : %n)", "(() => { class S { static i; n = 1; constructor() { if (S.i) return S.i; } } S.i = new S(); const r = %b ? new S().n += 1 : 2; return r + S.i.n; })()",
		},
		'b': {
			"(%n < %n)", "(%n >= %n)", "(%n == %n)", "(%n !== %n)", "(%b && %b)", "(%b || %b)", "(!%b)", "(%s == %s)", "(%b ? %b : %b)", "[1, 2, 3].includes(%n)", "[%b].at(0)", "{ a: %b }.a", "new Set([1, 3, 0.5]).has(%n)",
			"[%b, %b].reduce((a, b) => a && b)", "((x) => !x)(%b)", `["US", "FR"].includes(%s)`, "(%n + Key.id * 0).in([1, 2, 3])", "(({ a }) => a)({ a: %b })", "(%s !== \"US\")", "[1, 2].some((x) => x > 1)",
		},
		's': {"%s", "(%s + %s)", "`${%s}-${%s}`", "[%s][0]", "({ a: %s }).a", "((x) => x)(%s)", "(%b ? %s : %s)", `new Map([[1, %s]]).get(1)`},
		'a': {
			"[%n, %n]", "[%n, ...%a]", "%a.map((x) => x + %n)", "%a.map((x, i) => x * i)", "%a.slice(0, 2)", "%a.concat(%a)", "%a.reverse()", "Array.from(%i)", "[...%i]", "Object.values(%o)", "%a.filter((x, i) => i < 2)",
			"%a.flatMap((x) => [x, x])", "Array.of(%n, %n)", "%a.toReversed()", "%a.with(0, %n)", "(() => { const r = []; for (const x of %i) r.push(x); return r; })()", "((...r) => r)(%n, %n)", "helpers[\"sl\" + \"ice\"].call(%a, 0)",
			"[...new Map([[1, %n], [2, %n]]).values()]", "Array.from(%a, (x) => x * 2)", "Array.prototype.concat.call(%a, %a)", "%a.toSpliced(0, 1, %n)", "(() => { const a = %a; a.push(%n); a.unshift(%n); return a; })()", "[[%n, [%n]]].flat(2)",
		},
		'o': {"({ a: %n, b: %n, c: %n })", "({ ...%o, b: %n })", "Object.assign({}, %o)", `Object.fromEntries([["a", %n], ["b", %n], ["c", 1]])`, `({ ["a"]: %n, b: %n, c: 3 })`, "new Proxy(%o, {})", "structured(%o)", "Object.fromEntries(Object.entries(%o))"},
		'i': {"%a", "new Set([%n, %n])", "gen(%n)", "new Map([[1, %n], [2, %n]]).values()", "%a.values()", "({ *[Symbol.iterator]() { yield %n; yield %n; } })", "own(%n, 2)", "Object.values(%o)"},
	}
	looking = map[byte][]string{
		'n': {
			"%a.length", "%a.indexOf(%n)", "%a.lastIndexOf(%n)", "%a.findIndex((x) => %b)", "new Set(%a).size", "new Set([%n, %n]).size", "new Map([[%n, 1], [%n, 2]]).size", "new Map([[%n, 1], [2, 3]]).get(%n)", "Number(%n)", "(+%n)", "(%n | 0)", "parseInt(%n)", "parseFloat(%n)", "(%n & 3)",
			"%a.sort()[0]", "%a.sort((a, b) => a - b)[0]", "%a.toSorted((a, b) => %n)[0]", "JSON.parse(JSON.stringify(%a))[0]", "JSON.stringify(%v).length", "String(%v).length", "`${%v}`.length", "%s.length", "Object.keys(%v).length", "Object.keys({ ...%v }).length", "Object.getOwnPropertyNames(%k).length",
			"({ 1: 5, 2: 6, true: 7, US: 8 })[%v]", "[5, 6, 7][%n]", "({ [%v]: 4 }).US", "%a.filter((x) => x > 1).length", "%a.filter(Boolean).length", "%a.filter((x) => %b).length", "%a.find((x) => x > 1)", "Math.trunc(%n) % 2", "Number.parseFloat(%n)", "(typeof %v).length",
			"(() => { let n = 0; for (const x of [1, 2]) { if (%b) n += x; } return n; })()", "(() => { let n = 0; while (n < %n) { n++; if (n > 3) break; } return n; })()", "(() => { switch (%n) { case 1: return 1; case 2: return 5; default: return 7; } })()", "(() => { let n = 0; for (const k in %v) n++; return n; })()",
			"(() => { let n = 0; %b && n++; return n; })()", "(() => { let n = 0; %b ? n += 1 : n = 4; return n; })()", "(() => { const o = { a: 0 }; %b || (o.a = 3); return o.a; })()", "(() => { let n = 0; %b ? bump(() => n++) : 0; return n; })()", "(() => { let n = 0; [n] = %b ? [n = 5] : [1]; return n; })()", "(() => { const m = new Map(); %b && m.set(1, 2); return m.size; })()", "(() => { const a = []; %b && a.push(1); return a.length; })()",
			"(() => { let n = 0; try { if (%b) throw 1; } catch { n = 1; } return n; })()", "Array.from({ length: Math.min(%n, 9) }).length", "Array.from({ length: Math.min(%n, 9), 0: 5 }).length", "[1, 2].at(%n)", "[1, 2].slice(%n).length", "[1, 2, 3].splice(%n, 1).length", "[[1, [2]]].flat(%n).length", "\"abc\".slice(%n).length", "\"abc\".charCodeAt(%n)",
			"\"a\".repeat(Math.min(%n, 9)).length", "[].concat({ length: 1, 0: 1, [Symbol.isConcatSpreadable]: %b }).length", "(+{ [Symbol.toPrimitive]: () => %n })", "(+{ valueOf: () => %n })", "(+{ __proto__: null, valueOf: () => %n, toString: () => \"5\" })", "({ __proto__: null, valueOf: () => %n, toString: () => \"5\" } * 2)", "Math.max({ __proto__: null, valueOf: () => %n }, 1)",
			"[1].concat({ length: 3, [Symbol.isConcatSpreadable]: %b }).length", "new Set([1, 2]).intersection({ size: 3, has: () => %b, keys: () => [].values() }).size", "JSON.stringify({ a: 1, US: 2 }, [%s]).length", "Object.prototype.toString.call({ [Symbol.toStringTag]: %s }).length",
			"({ 2: 5, 3: 7 })[{ toString: () => %n }]", "Math.max({ valueOf: () => %n }, 1)", "[...{ [Symbol.iterator]: () => { let i = 0; return { next: () => ({ done: i++ > 1 || %b, value: i }) }; } }].length",
			"[...ends(%b)].length", "[...ends(%n)].length", "Array.from(ends(%b)).length", "(([...r]) => r.length)(ends(%b))", "(() => { let n = 0; for (const x of ends(%b)) n++; return n; })()", "new Set(ends(%b)).size", "new Map(ends(%b)).size", "Math.max(...ends(%b), 0)", "(() => { let n = 0; (function* () { yield* ends(%b); })().next().done && n++; return n; })()", "Object.fromEntries(ends(%b)).a ?? 9",
			"/a/g.exec(\"aXa\").index", "(() => { const r = /a/g; r.lastIndex = %n; return r.exec(\"aaaa\")?.index ?? 9; })()", "(() => { const r = /a/g; r.exec = () => %v; return r.test(\"a\") ? 1 : 2; })()", "\"aXb\".replace(/X/, () => %v).length", "\"abc\".indexOf(%s)", "[3, 1, 2].sort(() => %n)[0]", "[3, 1, 2].sort((a, b) => %b)[0]", "Int8Array.from(%a)[0]", "new Int8Array(%a)[0]", "new Float64Array([%n, 2])[0]",
			"new Float64Array(Math.min(%n, 9)).length", "Float64Array.of(%n)[0]", "(() => { const f = new Float64Array(2); f[0] = %n; return f[0]; })()", "(() => { const f = new Float64Array(2); f.set(%a); return f[0]; })()", "(() => { const f = new Float64Array(2); f.fill(%n); return f[0]; })()", "Float64Array.of(1, 2).map(() => %n)[0]", "(() => { const d = new DataView(new ArrayBuffer(8)); d.setInt8(0, %n); return d.getInt8(0); })()",
			"Reflect.ownKeys(new Proxy({}, { ownKeys: () => [%v] })).length", "Object.keys(new Proxy({ a: 1 }, { ownKeys: () => [\"a\"], getOwnPropertyDescriptor: () => ({ value: 1, configurable: true, enumerable: %b }) })).length", "(() => { let n = 0; do { n++; } while (%b && n < 3); return n; })()", "(() => { let n = 0; for (; %b && n < 3;) n++; return n; })()", "(() => { const a = [1, 2, 3]; a.length = Math.min(%n, 9); return a.length; })()",
			"(() => { let i = %n; i++; return i; })()", "(() => { const o = %o; o.a++; return o.a; })()", "new Array(Math.min(%n, 9)).length", "Array(Math.min(%n, 9)).length", "BigInt.asIntN(%n, 5n) == 5n ? 1 : 2", "(%b + 1)", "Symbol(%v).description.length", "new Error(%v).message.length", "new Box(%n) instanceof %v ? 1 : 2", "Number.prototype.toFixed.call(%n, 1).length", "(%n).toString().length", "(1.5).toFixed(%n).length", "Object.groupBy ? 1 : 2",
			"[%n, %n].join(\"\").length", "[%n].toString().length", "isNaN(%n) ? 1 : 2", "Math.imul(%n, 2)", "Math.fround(%n)", "Math.hypot(%n, 2)", "[1, 2, 3].copyWithin(0, %n)[0]", "[1, 2, 3].fill(9, %n)[1]", "(\"abc\".at(%n)?.length ?? 9)", "(() => { try { null.x; } catch (e) { return e instanceof TypeError ? 1 : 2; } })()", "encodeURIComponent(%v).length", "new Date ? 1 : 2", "({}).toString.call(%v).length", "Object.entries({ a: %k })[0].length", "[,%n].length",
			"(() => { const a = %a; a.constructor = %n; return a.slice(0).length; })()", "(() => { const f = () => 1; Object.defineProperty(f, \"name\", { value: %s }); return f.bind().name.length; })()", "(() => { const f = () => 1; Object.defineProperty(f, \"length\", { value: %n }); return f.bind().length; })()",
			"(() => { class A { constructor() { return %v; } } return typeof new A() === \"object\" ? 1 : 2; })()", "(({ __proto__: %v }).x === undefined ? 1 : 2)", "(\"abc\".includes({ [Symbol.match]: %b, toString: () => \"a\" }) ? 1 : 2)", "(() => { function F() {} F.prototype = %v; return new F() instanceof Object ? 1 : 2; })()",
			"(() => { const r = /a/; r.exec = () => %v; return \"abc\".split(r).length; })()", "(() => { class R extends RegExp { exec() { return %b ? null : { index: %n, length: 1, 0: \"a\" }; } } return \"abc\".search(new R(\"a\")); })()", "(() => { try { return new RegExp(%s, \"v\").flags.length; } catch { return 9; } })()", "(() => { try { return JSON.parse(%s).length; } catch { return 9; } })()",
			"(%v == %v ? 1 : 2)", "(%v === %v ? 1 : 2)", "(%v ? 1 : 2)", "(%v && 3)", "(%v || 3)", "(%v ?? 3)",
		},
		'b': {
			"%a.includes(%n)", "new Set(%a).has(%n)", "new Set([%n]).has(%n)", "new Map([[%n, 1]]).has(%n)", "Array.isArray(%v)", "Object.is(%v, %v)", "(typeof %v == \"number\")", "(typeof %v === \"object\")", "Number.isFinite(%n)", "Number.isNaN(%v)", "Number.isInteger(%n)", "Boolean(%v)", "!!%v", "(%v instanceof Object)", "%a.some((x) => x > 1)", "%a.every((x) => x > 1)", "%a.some((x) => %b)", "(\"a\" in %o)",
			"(%v in { a: 1, US: 2, 1: 3 })", "(%v === %v)", "(%v !== %v)", "(%v == %v)", "Object.hasOwn(%o, %v)", "/US/.test(%s)", "\"US\".includes(%s)", "\"US\".startsWith(%s)", "(JSON.stringify(%v) == \"1\")", "(%v == null)", "(%v === undefined)", "isFinite(%n)", "[%v].includes(%v)", "helpers[\"isFin\" + \"ite\"](%n)", "Number.isFinite.call(null, %n)", "Reflect.apply(Number.isInteger, null, [%n])", "[%v].map(Boolean)[0]", "[%v].map(Array.isArray)[0]",
			"Reflect.has({ a: 1, US: 2 }, %v)", "delete { a: 1 }[%v]", "Object.isFrozen(%v)", "(%n == \"1\")", "(%s == 1)", "(%s < \"V\")", "ends(%b).next().done", "(%v > %v)", "(\"a\" in new Proxy({}, { has: () => %b }))", "Reflect.set(new Proxy({}, { set: () => %b }), \"a\", 1)", "Reflect.isExtensible(new Proxy({}, { isExtensible: () => %b }))", "Reflect.deleteProperty(new Proxy({}, { deleteProperty: () => %b }), \"a\")",
			"({ [Symbol.hasInstance]: 1 }) == %v", "(1 instanceof { [Symbol.hasInstance]: () => %b })", "(%v === %v) === (%v === %v)", "Object.getOwnPropertyDescriptor(Object.defineProperty({}, \"a\", { value: 1, writable: %b }), \"a\").writable", "[1, 2].includes(1, %n)", "(() => { const o = %o; return o.a === o.a; })()", "(() => { const k = %n; return [k].includes(k); })()", "(() => { const k = %n; return [k, 1].indexOf(k) == 0; })()", "(() => { const k = %v; return k === k; })()", "%a.at(0) == %a.at(0)",
			"new RegExp(%s).test(\"US\")", "(() => { const r = /a/y; Object.defineProperty(r, \"global\", { value: %b }); return \"aa\".replace(r, \"b\") == \"ba\"; })()", "(() => { const r = /a/; Object.defineProperty(r, \"flags\", { get: () => %s }); return \"aa\".replaceAll ? \"aXa\".split(r).length == 3 : true; })()", "(() => { const r = /./y; return r.sticky === %b; })()",
		},
		's': {"String(%v)", "`${%v}`", "JSON.stringify(%v)", "%a.join()", "Object.keys(%o)[0]", "(typeof %v)", "(\"\" + %v)", "(%v + \"\")", "%s.toUpperCase()", "%s[0]", "[%s, %s].sort()[0]", "(%b ? \"US\" : %s)", "(%b && %s)", "(%s || \"a\")", "String.raw`${%v}`", "String.raw({ raw: [%v, \"b\"] })", "Object.prototype.toString.call(%v)", "Symbol(%v).toString()", "[%v].toString()", "new String(%v).toString()"},
		'a': {"%a.sort()", "%a.sort((x, y) => x - y)", "%a.filter((x) => x > 1)", "%a.filter((x) => %b)", "[...ends(%b)]", "[...new Set(%a)]", "JSON.parse(JSON.stringify(%a))", "%a.slice(%n)", "Array.from({ length: Math.min(%n, 9) })", "Object.keys(%v)", "[...%v]", "Array.from(%v)", "[...new Map([[%n, 1], [%n, 2]]).values()]", "Object.values(%v)", "[].concat(%v)", "%a.flat(%n)", "%a.splice(%n)", "(%b ? %a : %a)", "(%v && %a)"},
		'o': {"({ ...%v, a: 1 })", "({ [%v]: 1, a: %n, b: 2, c: 1 })", "JSON.parse(JSON.stringify(%o))", "Object.assign({ a: 1, b: 2, c: 3 }, %v)", "(%b ? %o : %o)", "(%v || %o)"},
		'i': {"ends(%b)", "ends(%n)", "%v", "own(%n, Math.min(%n, 9))", "new Set(%a)", "(%b ? %a : %a)"},
	}
)

// codePrelude declares what programs use.
const codePrelude = `
const helpers = { twice: (x) => x * 2, sum: (...r) => r.reduce((a, b) => a + b, 0), slice: Array.prototype.slice, isFinite: Number.isFinite };
class Box { #k; constructor(k) { this.#k = k; } get k() { return this.#k; } get twice() { return this.#k * 2; } static of(k) { return new this(k); } }
function* gen(k) { yield k; yield k + 1; }
const bump = (f) => f();
const structured = (o) => { const r = {}; for (const [k, v] of Object.entries(o)) r[k] = v; return r; };
const own = (k, n) => ({ [Symbol.iterator]: () => { let i = 0; return { next: () => (i++ < n ? { value: k, done: false } : { value: undefined, done: true }) }; } });
const ends = (b) => { let i = 0; const it = { next: () => (i++ < 2 ? { value: [i, i], done: b } : { value: 0, done: true }), [Symbol.iterator]: () => it }; return it; };
`

// code returns code of a kind.
func (g *codeGen) code(kind byte, depth int) string {
	if known := g.vars[kind]; len(known) > 0 && g.rng.IntN(4) == 0 {
		return known[g.rng.IntN(len(known))]
	}
	if depth <= 0 {
		return parenthesized(kind, g.one(leaves[kind]...))
	}
	if kind != 'i' && kind != 'o' && g.rng.IntN(12) == 0 { // a name for a value
		of := g.one("n", "b", "s", "a")[0]
		name, value := g.name(), g.code(of, depth-1)
		g.vars[of] = append(g.vars[of], name)
		text := fmt.Sprintf("(() => { const %s = %s; return %s; })()", name, value, g.code(kind, depth-1))
		g.vars[of] = g.vars[of][:len(g.vars[of])-1]
		return text
	}
	templates := carries[kind]
	if g.rng.IntN(7) == 0 {
		templates = looking[kind]
	}
	return parenthesized(kind, g.fill(g.one(templates...), depth))
}

// parenthesized puts an object literal into parentheses.
func parenthesized(kind byte, text string) string {
	if kind == 'o' || text[0] == '{' || text[0] == '-' {
		return "(" + text + ")"
	}
	return text
}

// program returns code that gives a number or a condition.
func (g *codeGen) program() string {
	g.vars, g.made = make(map[byte][]string), 0
	depth := 1 + g.rng.IntN(3)
	return g.code(g.one("n", "n", "b")[0], depth)
}

// codeRows are rows that differ in every value, and whose values differ from each other and from most constants, and some
// whose values agree.
func codeRows() []row {
	some := func(v float64) nullable { return nullable{v, true} }
	rows := []row{
		{id: 1, score: some(2.25), model: some(0.75), country: "US"}, {id: 4, score: some(1.75), model: some(6.5), country: "DE"},
		{id: 3, score: some(-0.375), model: some(2.625), country: "a"}, {id: 2, score: some(2), model: some(2), country: "US"},
		{id: 0, score: some(0), model: some(1), country: ""},
	}
	for i := range rows {
		rows[i].hasCountry, rows[i].weight, rows[i].lang = true, some(1), "FR"
	}
	return rows
}

// naive runs the programs as plain JavaScript for each row and returns their values; nil stands for an exception.
func naive(t *testing.T, programs []string, rows []row) [][]goja.Value {
	t.Helper()
	all := make([][]goja.Value, len(programs))
	for i := range rows {
		vm := goja.New()
		require.NoError(t, (&host{vm: vm}).installMath(vm.GlobalObject().Get("Math").ToObject(vm)))
		_, err := vm.RunString(plainJavaScript + "let Key, P; for (const of of [Number, String]) Object.defineProperty(of.prototype, 'in', { enumerable: false });" + codePrelude + rows[i].javaScript())
		require.NoError(t, err)
		for p, program := range programs {
			stop := time.AfterFunc(5*time.Second, func() { vm.Interrupt("slow") })
			v, err := vm.RunString("'use strict'; (" + program + ")")
			stop.Stop()
			vm.ClearInterrupt()
			if err != nil {
				v = nil
			}
			all[p] = append(all[p], v)
		}
	}
	return all
}

// accepted runs the programs in the sandbox, each for itself, and reports which give a number or a condition without a fault.
func accepted(t *testing.T, programs []string) []bool {
	t.Helper()
	source := codePrelude + "export default [\n() => (" + strings.Join(programs, "),\n() => (") + "),\n];"
	u := newUnit(testLanguage(t), "plans", Source{Folder: t.TempDir(), File: "a.plan.ts", Text: []byte(source)})
	require.True(t, u.read(), "%v\n%s", u.answer.Errors, source)
	main := u.load()
	require.NotNil(t, main, "%v", u.answer.Errors)
	exports, err := main(goja.Undefined(), u.host.object)
	require.NoError(t, err)
	list := exports.ToObject(u.vm).Get("default").ToObject(u.vm)
	all := make([]bool, len(programs))
	for i := range programs {
		u.answer.Errors, u.faults, u.seen = nil, 0, make(map[string]bool)
		function, _ := goja.AssertFunction(list.Get(itoa(i)))
		stop := time.AfterFunc(5*time.Second, func() { u.vm.Interrupt("slow") })
		v, err := function(goja.Undefined())
		stop.Stop()
		u.vm.ClearInterrupt()
		if err == nil && len(u.answer.Errors) == 0 {
			token := tokenOf(v)
			all[i] = goja.IsNumber(v) || isPredicate(v) || token != nil && token.kind == number
			if f, ok := finite(v); goja.IsNumber(v) {
				all[i] = ok && f == f
			}
		}
	}
	return all
}

// TestRandomPlanCode compiles random plan code. It is refused, or its rows have what plain JavaScript computes from the
// same text and the values of the row.
func TestRandomPlanCode(t *testing.T) {
	began, programs, compiled, varying := time.Now(), 0, 0, 0
	seed := *codeFirst
	for ; !(t.Failed() && *codeTime > 0) && (*codeTime == 0 && seed < *codeFirst+*codeSeeds || *codeTime > 0 && time.Since(began) < *codeTime); seed++ {
		ok, vary := checkPlanCode(t, seed)
		programs, compiled, varying = programs+programsOfSeed, compiled+ok, varying+vary
	}
	t.Logf("seeds %d to %d: %d programs, of which %d compile and %d differ between rows", *codeFirst, seed-1, programs, compiled, varying)
	assert.Greater(t, compiled, programs/10)
	assert.Greater(t, programs-compiled, programs/20)
	assert.Greater(t, varying, programs/20)
}

// checkPlanCode returns how many programs of a seed compile, and the values of how many differ between rows.
func checkPlanCode(t *testing.T, seed uint64) (compiled, varying int) {
	t.Helper()
	g := &codeGen{rng: rand.New(rand.NewPCG(seed, 17))}
	programs := make([]string, programsOfSeed)
	for i := range programs {
		programs[i] = g.program()
	}
	rows := codeRows()
	wants := naive(t, programs, rows)
	var calls strings.Builder
	var kept []int
	for i, ok := range accepted(t, programs) {
		if !ok {
			continue
		}
		kept = append(kept, i)
		call := "vm({ outKey: Key.score, expr"
		for _, v := range wants[i] {
			if _, is := boolean(v); is {
				call = "filter({ pred"
			}
		}
		fmt.Fprintf(&calls, "ctx = ctx.%s: %s });\n", call, programs[i])
	}
	all := trees(t, `import { definePlan } from "@ranking-dsl/runtime";`+codePrelude+`export default definePlan({ name: "p", build: (start) => { let ctx = start.fixed_source();`+"\n"+calls.String()+"return ctx; } });")
	require.Len(t, all, len(kept))
	in := batchOf(rows)
	for n, i := range kept {
		got := valuesOf(t, all[n], in)
		differ := false
		for r := range rows {
			want := wants[i][r]
			asked := strings.Contains(programs[i], ".size") || strings.Contains(programs[i], ".has(")
			if strings.Contains(programs[i], "Set(") && strings.Contains(programs[i], "Key") && (rows[r].id < 4 || !asked) {
				continue // A set of tokens has each of them once, and not each value; here values agree with each other or with constants.
			}
			if !sameValue(want, got[r]) {
				t.Errorf("seed %d, row %+v: %s\nplain JavaScript has %v, the plan has %v: %s", seed, rows[r], programs[i], want, got[r], compact(t, all[n]))
				break
			}
			differ = differ || got[r] != got[0]
		}
		if differ {
			varying++
		}
	}
	return len(kept), varying
}

// valuesOf returns what a tree gives for each row: a float64, a bool, or nil for null.
func valuesOf(t *testing.T, tree map[string]any, in rowset.RowSet) []any {
	t.Helper()
	all, language := make([]any, in.N), languageOf(t, tree)
	if strings.Contains(compact(t, tree), fmt.Sprintf(`"key_id":%d`, keyCountry)) { // Strings compare in typed trees.
		language.Typed = true
	}
	if parsed, err := language.ParsePred(document(t, tree)); err == nil {
		kept, err := parsed.Filter(nil, nil, in, &expr.Params{})
		require.NoError(t, err)
		for i := range all {
			all[i] = false
		}
		for i := range kept.N {
			all[kept.Row(i)] = true
		}
		return all
	}
	e, err := language.ParseExpr(document(t, tree))
	require.NoError(t, err, compact(t, tree))
	column, err := e.Column(nil, nil, in, &expr.Params{})
	require.NoError(t, err)
	for i := range all {
		if column.Valid == nil || column.Valid.Get(i) {
			all[i] = column.Values[i] + 0
		}
	}
	return all
}

// sameValue compares a value of plain JavaScript, nil for an exception, with that of a row. What is not finite is null.
func sameValue(want goja.Value, got any) bool {
	if want == nil {
		return false
	}
	if b, ok := boolean(want); ok {
		return got == b
	}
	if !goja.IsNumber(want) {
		return false
	}
	f := want.ToFloat()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return got == nil
	}
	return got == f+0
}
