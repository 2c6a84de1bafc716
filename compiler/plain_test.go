package compiler

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plainCode are bodies of functions without tokens. They contain every kind of expression and
// statement that the rewriter changes or must leave as it is.
var plainCode = []string{
	`return 1 + 2 * 3 - 4 / 5 % 6`,
	`return (1 + 2) * (3 - 4) * -(5 - 6)`,
	`return ((1 + (2))) * ((((3))))`,
	`return 2 ** 3 ** 2 + (-2) ** 2`,
	`return "a" + 1 + 2 + ("b" + (1 + 2))`,
	`return 1 < 2 && 3 > 2 || !(1 == 1)`,
	`return [1 == "1", 1 === "1", null == undefined, null === undefined, NaN != NaN, "a" !== "b"]`,
	`return [null ?? 1, 0 ?? 1, undefined ?? null ?? 2, 0 || "x", "" && "y", 1 && 2]`,
	`return [5 & 3, 5 | 3, 5 ^ 3, 1 << 4, -16 >> 2, -16 >>> 28, ~5, +"5", -"5", !0, !!"x"]`,
	`return ["a" in { a: 1 }, "b" in { a: 1 }, [] instanceof Array, typeof (1 + 1), typeof undefinedName, void (0)]`,
	`let x = 1; x += 2; x *= 3; x -= 4; x /= 5; x **= 2; x %= 3; x <<= 2; x |= 1; x &= 7; x ^= 2; x >>= 1; x >>>= 0; return x`,
	`let a = null, b = 0, c = 1; a ??= 5; b ||= 6; c &&= 7; a ??= 8; return [a, b, c]`,
	`const o = { n: 1, list: [1, 2] }; o.n += 1; o["n"] *= 5; o.list[1 - 1] -= 3; o.list[o.list.length - 1] **= 3; return o`,
	`let calls = 0; const o = { v: 1 }; const get = () => { calls++; return o }; get().v += 2; get()["v"] *= 2; return [calls, o]`,
	`let calls = 0; const o = { v: 0 }; (() => o)().v ||= ++calls; (() => o)().v &&= (calls++, 9); (() => o)().v ??= calls++; return [calls, o]`,
	`let calls = 0; const f = () => { calls++; return true }; false && f(); true || f(); 1 ?? f(); true && f(); return calls`,
	`let i = 0, j = 10; i++; ++i; j--; --j; return [i++, i, j--, j, -i, - -i, +-i]`,
	`return [1, 2, 3].map((x) => x * 2).filter((x) => x > 2 && x !== 4).reduce((a, b) => a + b, 0)`,
	`return [3, 1, 2].sort((a, b) => a - b).find((x) => x >= 2)`,
	`return [[1, 2, 3].some((x) => x > 2), [1, 2].every((x) => x > 1), [1, 2].findIndex((x) => x == 2), [1].filter(Boolean)]`,
	`return [1, 2, 3].filter(function (x) { return x > this.n }, { n: 1 })`,
	`return ((a, b = a + 1, ...rest) => a + b + rest.length * 10)(1, undefined, 3, 4)`,
	`return (x => ({ y: x + 1 }))(2).y + (x => (x, x + 1))(3)`,
	`const { a = 1 + 1, b: { c = 2 * 2 } = {}, ...rest } = { d: 4, e: 5 }; return [a, c, rest]`,
	`const [x = 1 + 1, , y = x * 3, ...z] = [undefined, 2, undefined, 4, 5]; return [x, y, z]`,
	`let s = 0; for (let i = 0; i < 10; i++) { if (i % 2 == 0) continue; if (i > 7) break; s += i } return s`,
	`let s = 0; for (const x of [1, 2, 3]) s += x; for (const k in { a: 1, b: 2 }) s += k.length; return s`,
	`let s = 0, i = 5; while (i-- > 0) s += i; do { s -= 1 } while (s > 5 && s != 3); return s`,
	`let s = ""; outer: for (const a of [1, 2]) { for (const b of [1, 2]) { if (b > a) continue outer; s += a + "" + b + "," } } return s`,
	`switch (1 + 1) { case 1: return "one"; case 4 - 2: { return "two" } default: return "many" }`,
	`switch ("x") { default: return 1 + 1; case "y" + "z": return 2 }`,
	`try { throw new Error("a" + "b") } catch (e) { return e.message + "!" } finally { 1 + 1 }`,
	`try { try { null.x } finally { 1 } } catch ({ name }) { return name }`,
	`class A { #n = 1 + 1; static s = 2 * 2; get n() { return this.#n } set n(v) { this.#n = v + 1 } has(o) { return #n in o } }
	 class B extends A { constructor() { super(); this.m = super.n + 1 } inc() { super.n = this.n + 1; return this } }
	 const b = new B().inc(); b.n += 5; return [b.n, b.m, A.s, b.has(b), b instanceof A]`,
	`class A { static { this.x = 1 + 2 } static #p = 5; static q() { return A.#p++ + ++A.#p } } return [A.x, A.q()]`,
	`function* g(n) { let got = yield n + 1; while (got && got < 3) got = yield got * 2; return (yield "end") || 7 }
	 const it = g(1); return [it.next(), it.next(1), it.next(2), it.next(3), it.next(0)]`,
	`function* g() { yield* [1, 2]; const x = 1 + (yield 3); return x && (yield x) } const it = g(); it.next(); it.next(); it.next(); return [it.next(4), it.next(9)]`,
	`const o = { get v() { return 1 + 1 }, ["k" + 1]: 2, m() { return this.v * 2 }, async: 1, get: 2, *g() { yield 1 + 1 } }; return [o.v, o.k1, o.m(), o.async + o.get, [...o.g()]]`,
	"return `a${1 + 1}b${`c${2 * 2}` + \"d\"}`",
	"const tag = (strings, ...values) => strings.raw.join('|') + values.join(); return tag`x${1 + 1}\\ny${2}` + (1 + 1)",
	`const o = { a: { b: () => 5 } }; return [o?.a?.b?.() + 1, o.x?.y.z, o?.["a"].b(), (o?.a).b() * 2, o.x?.[1 + 1] ?? "none"]`,
	`return [new Array(1 + 1).length, new (class { constructor(x) { this.x = x + 1 } })(2 * 3).x, new Map([[1, 1 + 1]]).get(1)]`,
	`return (function f(n) { return n <= 1 ? 1 : n * f(n - 1) })(5)`,
	`return 1 ? 2 ? 3 : 4 : 5`,
	`return (1, 2) + (3, 4 * 2)`,
	`var x = 1, y = (x = x + 1, x * 2); { let x = 9; y += x } return [x, y]`,
	`return [/a+b/.test("aab"), "x/y".split("/").length / 2, /[/]/.test("/")]`,
	`return [0x10 + 0b11 + 0o17, 1_000 + 1, .5 + 5., 1e3 - 1, 10n ** 3n > 5n, (7n / 2n).toString()]`,
	`return "ü" + "\u{1F600}" + "日本".length + "\x41"`,
	`const größe = 2, \u0061b = 3; return größe * ab + größe`,
	`return [Math.max(1, 2 + 1), Math.min(...[3, 2]), Math.abs(-5) + Math.floor(2.5), Math.round(1.5 * 2), Math.sqrt(16) ** 2]`,
	`return [JSON.stringify({ a: 1 + 1 }), parseInt("1" + "2") + 1, Number("3") * 2, String(1 + 1), isNaN(0 / 0)]`,
	`if (1 > 2) return "a"; else if (2 > 1) return "b"; else return "c"`,
	`if (!(1 > 2)) { if (!0 && !!1) return !1 } return 5`,
	`let n = 0; for (;;) { if (++n > 3) break } for (let i = 0, j = 9; i < j; i++, j--) n += j - i; return n`,
	`const f = (a) => (b) => (c) => a + b * c; return f(1)(2)(3) - (f)(1)(1)(1)`,
	`return ((a) => a)(1 + 1) + (function () { return arguments.length + 1 })(1, 2) + (() => 3)()`,
	`return typeof typeof (1 + 1) + (typeof (() => 1) === "function")`,
	`let x = { y: 1 }; delete x.y; return ["y" in x, delete x.z, void 0 === undefined]`,
	`return [..."ab", ...[1 + 1]].concat([..."cd"].map((c) => c + c))`,
	`async function f() { return (await 1) + 1 } return typeof f() + (f() instanceof Object)`,
	`label: { if (1 + 1 == 2) break label; return 1 } return 2`,
	`return [1, , 3].length + [, ].length + { a: 1, "b c": 2, 3: 4 }[1 + 2]`,
	`return (function () { "use strict"; return this === undefined })()`,
}

// TestPlainCode runs plan code without tokens. It compares with what goja computes from the
// unchanged text.
func TestPlainCode(t *testing.T) {
	for _, code := range plainCode {
		program := "JSON.stringify((() => {" + code + "})(), (k, v) => typeof v === 'bigint' ? v + 'n' : v === undefined ? 'undefined' : v)"
		vm := goja.New()
		want, err := vm.RunString("'use strict';" + program)
		require.NoError(t, err, code)

		a := compileText(t, fmt.Sprintf(`// @ts-nocheck
import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({ name: "p", build: (ctx) => ctx.fixed_source({ trace: %s }) });`, program))
		if !assert.Empty(t, a.Errors, code) {
			continue
		}
		var got struct {
			Nodes []struct {
				Params struct{ Trace string } `json:"params"`
			} `json:"nodes"`
		}
		require.NoError(t, json.Unmarshal(a.Artifact, &got))
		assert.Equal(t, want.String(), got.Nodes[0].Params.Trace, code)
	}
	assert.Greater(t, len(plainCode), 50)
	assert.False(t, strings.Contains(strings.Join(plainCode, ""), "Key."))
}
