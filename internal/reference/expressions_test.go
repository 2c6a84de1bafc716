package reference

import (
	"fmt"
	"strings"

	"github.com/rankd/rankd/plan/expr"
)

// expressionsIntro says what holds for all operators. The table has the rest.
const expressionsIntro = `<!-- ` + "`go test ./internal/reference -update`" + ` writes this page from the table of operators. -->
# Expressions

An *expression* gives each row a number, a string or null. A *predicate* gives each row true or false. Plans in TypeScript write both with the
operators and functions of JavaScript, which say the same where all values are there and finite; [Math](#math) says which last digits
may differ. Artifacts hold trees of objects: expressions in ` + "`expr_table`" + `, predicates in ` + "`pred_table`" + `.

Code of a plan may carry an expression: ` + "`[Key.a, Key.b].map((k) => k * 0.5)`" + `, ` + "`new Map([[\"x\", Key.x]]).get(\"x\")`" + `. It may not
look at one: ` + "`Number.isFinite(Key.a)`" + `, ` + "`typeof Key.a`" + `, ` + "`[Key.a].includes(\"US\")`" + ` and ` + "`JSON.stringify(Key.a)`" + ` are
errors. A list or a set of constants has its meaning per row: ` + "`[\"US\"].includes(Key.a)`" + `, ` + "`new Set([\"US\"]).has(Key.a)`" + `.

## Typed expressions

An artifact lists the capability ` + "`" + expr.Capability + "`" + ` in ` + "`capabilities_required`" + ` to have *typed expressions*. The compiler
lists it when a plan needs it. It brings three things:

- The operators marked *typed* below. Without the capability, loading refuses them.
- The types of the registry. Strings, sets and lists can be compared, and integers are compared exactly. Without it, each value is a
  double, and a string reads as null.
- Errors at loading for an operand of a wrong type, a key or parameter that does not exist, a malformed pattern, and a column that no
  node writes. The error names the place in the tree.

## Types

| type | from | in arithmetic | compared |
|---|---|---|---|
| number | float keys and parameters, fractions, the results of operators | as it is, a double | as doubles |
| integer | int keys and parameters, the id, integral constants | becomes a double, rounded beyond 2^53 | with another integer exactly, with a number as doubles |
| bool | bool keys and parameters | 1 or 0 | as 1 or 0; in TypeScript it is a predicate, too, which is false for null |
| string | string keys and parameters, constants, what the operators of strings make | no; ` + "`+`" + ` makes a longer string | ` + "`==` and `!=`" + ` with another string, by bytes |
| set | string_set keys, string_list and int_list parameters | no | ` + "`includes`" + ` and null tests alone |

` + "`hash`" + ` and the operators of strings take no bool. A choice between bools is a predicate in TypeScript, and no number:
` + "`c ? (Key.b1 ? 1 : 0) : (Key.b2 ? 1 : 0)`" + ` is one. ` + "`Pred.cmp`" + ` compares numbers; ` + "`Key.id != \"7\"`" + ` compares ids that are strings.

Arithmetic is that of doubles, as in JavaScript. An integer stays exact only where it is compared as it stands: by the six
comparisons, ` + "`in` and `member`" + `. Every other operator turns it into a double first: ` + "`Key.id + 0 == Key.likes`" + ` compares doubles, and so
does ` + "`min`, `if` or `coalesce`" + ` of integers. TypeScript writes an exact constant beyond 2^53 as ` + "`9007199254740993n`" + `.

## Nulls and infinities

- An operator with a null operand is null, if the table does not say otherwise. A comparison with a null operand is false, ` + "`!=`" + ` included.
- A typed operator is null if its result is an infinity or NaN: ` + "`x / 0`, `Math.log(0)`, `Math.sqrt(-1)`, `Math.exp(1000)`" + `. ` + "`coalesce`" + ` gives such a
  row a value.
- ` + "`+`, `-`, `*`, `??`" + ` and the choice of ` + "`?:`" + ` pass an infinity or NaN on. A node that writes one into a column fails.

## Math

Exponentials, logarithms, powers, roots and functions of angles are defined so, in constants of plans and in rows:

- The result is the double nearest to the true value or, rarely, its neighbor: the error is below 0.55 units in the last place.
- It is exact where the true value is a double: ` + "`Math.log10(1000)`, `Math.log2(8)`, `Math.cbrt(27)`, `3 ** 4`" + `. ` + "`10 ** k`" + ` of an
  integer k is the double of its literal: ` + "`10 ** -5 == 0.00001`" + `.
- Special values are those of ECMAScript: ` + "`Math.atan2(0, -0)`" + ` is π, ` + "`1 ** NaN`" + ` is NaN.
- The bits are the same on every processor.

ECMAScript leaves last digits to each engine, so a program in JavaScript may have others. This is the greatest error of each function
among 10,000 arguments, by arithmetic of 200 bits, and how often the result is not the nearest double. A fifth of the arguments
was chosen because they are hard: the true value is near the middle of two doubles.[^math]

| function | greatest error, in units in the last place | not the nearest double | that of Node 24.21 is not |
|---|---|---|---|
| ` + "`" + `acos` + "`" + ` | 0.500 | 0 | 9.10 % |
| ` + "`" + `acosh` + "`" + ` | 0.500 | 0 | 12.20 % |
| ` + "`" + `asin` + "`" + ` | 0.500 | 0 | 7.09 % |
| ` + "`" + `asinh` + "`" + ` | 0.500 | 0 | 18.50 % |
| ` + "`" + `atan` + "`" + ` | 0.500 | 0 | 9.17 % |
| ` + "`" + `atan2` + "`" + ` | 0.501 | 0.12 % | 15.35 % |
| ` + "`" + `atanh` + "`" + ` | 0.500 | 0 | 18.05 % |
| ` + "`" + `cbrt` + "`" + ` | 0.500 | 0 | 14.19 % |
| ` + "`" + `cos` + "`" + ` | 0.500 | 0.01 % | 5.73 % |
| ` + "`" + `cosh` + "`" + ` | 0.502 | 0.10 % | 14.68 % |
| ` + "`" + `exp` + "`" + ` | 0.507 | 0.37 % | 11.53 % |
| ` + "`" + `expm1` + "`" + ` | 0.502 | 0.02 % | 11.53 % |
| ` + "`" + `hypot` + "`" + ` | 0.500 | 0 | 26.14 % |
| ` + "`" + `log` + "`" + ` | 0.500 | 0 | 7.54 % |
| ` + "`" + `log10` + "`" + ` | 0.500 | 0 | 7.93 % |
| ` + "`" + `log1p` + "`" + ` | 0.502 | 0.02 % | 10.09 % |
| ` + "`" + `log2` + "`" + ` | 0.500 | 0 | 0.81 % |
| ` + "`" + `pow` + "`" + ` | 0.505 | 0.59 % | 0.53 % |
| ` + "`" + `sin` + "`" + ` | 0.500 | 0.02 % | 5.68 % |
| ` + "`" + `sinh` + "`" + ` | 0.502 | 0.06 % | 17.95 % |
| ` + "`" + `tan` + "`" + ` | 0.501 | 0.03 % | 6.76 % |
| ` + "`" + `tanh` + "`" + ` | 0.500 | 0 | 17.46 % |

` + "`abs`, `ceil`, `floor`, `fround`, `max`, `min`, `round`, `sign`, `sqrt` and `trunc`" + ` are exact or the nearest double.

[^math]: ` + "`.ci/long math`" + ` measures it, and fails where this table says something else.

## The unit of time

Times are seconds since 1970-01-01 00:00 UTC, with fractions. All rows and nodes of a request have the same ` + "`now()`" + `, its arrival. For a column in
milliseconds write ` + "`now() - Key.created_ms / 1000`" + `.
`

// expressionsPage returns docs/reference/expressions.md.
func expressionsPage(operators []expr.Operator) string {
	var b strings.Builder
	b.WriteString(expressionsIntro + "\n## Operators\n")
	group := ""
	for i := range operators {
		o := &operators[i]
		if o.Group != group {
			group = o.Group
			fmt.Fprintf(&b, "\n### %s\n\n| TypeScript | in artifacts | meaning | null, infinity, NaN |\n|---|---|---|---|\n", group)
		}
		meaning := o.Doc
		if o.Typed {
			meaning += " *Typed.*"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", waysToWrite(o), cell(operatorJSON(o)), cell(meaning), cell(o.Null+" "+o.NonFinite))
	}
	return b.String()
}

// waysToWrite returns how plans write an operator: an example, and other ways.
func waysToWrite(o *expr.Operator) string {
	parts := []string{"`" + cell(o.Example) + "`"}
	for _, other := range []string{o.Function, o.Builder} {
		if other != "" && !strings.Contains(o.Example, other+"(") {
			parts = append(parts, "`"+other+"`")
		}
	}
	return strings.Join(parts, ", ")
}

// operatorJSON returns an operator as artifacts write it, with "…" for its operands.
func operatorJSON(o *expr.Operator) string {
	text := `{"op": "` + o.Name + `"`
	for _, m := range o.Members {
		value := map[string]string{
			"number": "0.5", "integer": "2002", "string": `"…"`, "boolean": "true", "array": "[…]", "object": "{…}",
		}[m.Type]
		if m.Name == "param_id" {
			value = "4"
		}
		if o.Cmp != "" {
			value = `"` + o.Cmp + `"`
		}
		text += `, "` + m.Name + `": ` + value
	}
	for _, operand := range o.Operands {
		text += `, "` + operand.Member + `": …`
	}
	return text + "}"
}
