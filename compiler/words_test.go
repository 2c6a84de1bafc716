package compiler

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPlainWords: errors of the engine and of the bundler that would mislead have plain texts.
func TestPlainWords(t *testing.T) {
	for code, want := range map[string]string{
		`({} as any).foo()`: "foo is not a function", `(5 as any)()`: "5 is not a function", `(null as any).a.b`: "property 'a' of undefined or null",
		`const { a } = undefined as any;`: "undefined or null has no members to take", `for (const x of undefined as any);`: "undefined or null stands where a list",
		`for (const x of 5 as any);`: "the value is not a list", `"a" in (5 as any)`: "5 is not a function or an object", `Object.freeze(Key)`: "Key, P, EP, the context and rows cannot be changed",
		`delete (Key as any).id`: "cannot be changed", `(Key as any)[Symbol("x")] = 1`: "cannot be changed", `JSON.parse("{a")`: "the text is not JSON", `/a/v`: "have the flags g, i,",
		`new RegExp("[b-a]")`: "the pattern [b-a] has a fault", `/a(?i:b)c/`: "no such group", `new RegExp("(?i:b)")`: "no such group", `const x = <div>1</div>;`: "plan code has no JSX",
		`const x = <div/>;`: "no JSX", `const x = <>a</>;`: "no JSX", `import.meta.url`: "no import.meta", `new.target`: "cannot use \"new.target\" here", `1 instanceof (5 as any)`: "5 is not a function",
		`[].reduce((a: any, b: any) => a)`: "reduce of an empty array needs a second argument", `(5 as any).x = 1`: "5 is not an object", `new ((() => 1) as any)()`: "the value behind new is not a class",
		`async function f() { throw new Error("late") } f()`: "failed in an async function: late", `async function f() { await 1; null.x } f()`: "failed in an async function",
	} {
		a := compileText(t, `import { definePlan } from "@ranking-dsl/runtime"; export default definePlan({ name: "p", build: (ctx) => { `+code+"\nreturn ctx.fixedSource(); } });")
		if assert.NotEmpty(t, a.Errors, code) {
			assert.Contains(t, a.Errors[0].Message, want, code)
			assert.NotRegexp(t, ":$", a.Errors[0].Message, code)
		}
	}
	for code, want := range map[string]string{`x.y`: "", `p.weight`: "did you mean P?", `coalese(1)`: "did you mean coalesce?"} {
		assert.Equal(t, want, compileText(t, `import { definePlan } from "@ranking-dsl/runtime"; export default definePlan({ name: "p", build: (ctx) => `+code+" });").Errors[0].Hint, code)
	}
	caught := compileText(t, `import { definePlan } from "@ranking-dsl/runtime"; export default definePlan({ name: "p", build: (ctx) => { (async () => { throw 5; })().catch(() => 1); return ctx.fixedSource(); } });`)
	assert.Empty(t, caught.Errors)
}
