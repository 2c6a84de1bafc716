package expr

import (
	"math"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/elementary"
	"github.com/rankd/rankd/rowset"
)

var (
	one       = []Operand{{"x", TakesNumber}}
	two       = []Operand{{"a", TakesNumber}, {"b", TakesNumber}}
	equal     = []Operand{{"a", TakesEqual}, {"b", TakesEqual}}
	ordered   = []Operand{{"a", TakesOrdered}, {"b", TakesOrdered}}
	oneText   = []Operand{{"x", TakesText}}
	twoTexts  = []Operand{{"x", TakesText}, {"part", TakesText}}
	anything  = []Operand{{"x", TakesAny}}
	clock     = []Operand{{"x", TakesNumber}, {"zone", TakesText}}
	oneOfThem = []Operand{{"x", TakesVector}}
	vectors   = []Operand{{"a", TakesVector}, {"b", TakesVector}}
	logical   = []Operand{{"a", TakesPredicate}, {"b", TakesPredicate}}
	cmpMember = []Member{{Name: "cmp", Type: "string", Values: []string{"==", "!=", "<", "<=", ">", ">="}, Doc: "The comparison."}}
)

// Sentences that several operators share.
const (
	nullIfAny     = "Null if an operand is null."
	falseIfNull   = "False if an operand is null."
	passesOn      = "An infinity or NaN passes on."
	nullIfNot     = "Null if the result is not finite."
	neverNullPred = "Never null."
	noDate        = "Null if x is more than 8.64e12 seconds from 1970, as a Date of JavaScript is."
)

// operators is the table. The order is the order of the reference.
var operators = withKernels([]Operator{
	{
		Group: "Values", Name: "const_number", code: opConst, Makes: Number,
		Members: []Member{{Name: "value", Type: "number", Doc: "The number."}},
		Doc:     "A constant. An integral value of at most 64 bits is an integer, any other a double.",
		Null:    "Never null.", Example: "0.5", Builder: "E.const",
	},
	{Group: "Values", Name: "const_null", code: opNull, Makes: Null, Doc: "The constant null.", Null: "Always null.", Example: "null"},
	{
		Group: "Values", Name: "const_string", code: opText, Makes: String, Typed: true,
		Members: []Member{{Name: "value", Type: "string", Doc: "The string."}},
		Doc:     "A constant string.", Null: "Never null.", Example: `"US"`,
	},
	{
		Group: "Values", Name: "key_ref", code: opKey, Makes: Number,
		Members: []Member{{Name: "key_id", Type: "integer", Doc: "The key."}},
		Doc: "The row's value in the column of a key; key 1 is the row's id. A bool is the number 0 or 1 in arithmetic. " +
			"Without typed expressions a string reads as null.",
		Null: "Null if the row has no value, or no column of that key exists.", NonFinite: passesOn,
		Example: "Key.score", Builder: "E.key",
	},
	{
		Group: "Values", Name: "param_ref", code: opParam, Makes: Number,
		Members: []Member{{Name: "param_id", Type: "integer", Doc: "The parameter."}},
		Doc: "The request's value for a parameter or a field of its context, the same for each row. A bool is the number 0 or 1. " +
			"Without typed expressions a string reads as null.",
		Null: "Null if the request sets none.", Example: "P.weight", Builder: "E.param",
	},
	{
		Group: "Values", Name: "now", code: opNow, Makes: Number, Typed: true,
		Doc:  "The time at which the request arrived, in seconds since 1970-01-01 00:00 UTC, with fractions.",
		Null: "Never null.", Example: "now()", Function: "now",
	},

	{
		Group: "Arithmetic", Name: "add", Operands: two, Makes: Number, Doc: "The sum of a and b.", Null: nullIfAny, NonFinite: passesOn,
		Example: "Key.score + 1", Infix: "+", Builder: "E.add",
		row:    func(a, b, _ float64) float64 { return a + b },
		kernel: kernel{two: addVector, scalar: addScalar, before: func(dst []float64, c float64, y []float64) { addScalar(dst, y, c) }},
	},
	{
		Group: "Arithmetic", Name: "sub", Operands: two, Makes: Number, Doc: "a minus b.", Null: nullIfAny, NonFinite: passesOn,
		Example: "Key.score - 1", Infix: "-", Builder: "E.sub",
		row:    func(a, b, _ float64) float64 { return a - b },
		kernel: kernel{two: subVector, scalar: func(dst, x []float64, c float64) { addScalar(dst, x, -c) }, before: subScalar},
	},
	{
		Group: "Arithmetic", Name: "mul", Operands: two, Makes: Number, Doc: "The product of a and b.", Null: nullIfAny, NonFinite: passesOn,
		Example: "Key.score * P.weight", Infix: "*", Builder: "E.mul",
		row:    func(a, b, _ float64) float64 { return a * b },
		kernel: kernel{two: mulVector, scalar: mulScalar, before: func(dst []float64, c float64, y []float64) { mulScalar(dst, y, c) }},
	},
	{
		Group: "Arithmetic", Name: "div", Operands: two, Makes: Number, Typed: true, Doc: "a divided by b, with fractions.", Null: nullIfAny,
		NonFinite: "Null if b is zero or the result overflows.", Example: "Key.likes / Key.views", Infix: "/", Builder: "E.div",
		row:    func(a, b, _ float64) float64 { return a / b },
		kernel: kernel{two: divVector, scalar: divByScalar, before: divScalar},
	},
	{
		Group: "Arithmetic", Name: "mod", Operands: two, Makes: Number, Typed: true,
		Doc:  "The remainder of a divided by b, with the sign of a, as % of JavaScript.",
		Null: nullIfAny, NonFinite: "Null if b is zero.", Example: "Key.id % 10", Infix: "%", Builder: "E.mod",
		row:    func(a, b, _ float64) float64 { return remainder(a, b) },
		kernel: kernel{two: modVector, scalar: modByScalar},
	},
	{
		Group: "Arithmetic", Name: "neg", Operands: one, Makes: Number, Doc: "x with the opposite sign.", Null: nullIfAny, NonFinite: passesOn,
		Example: "-Key.score", Prefix: "-", Builder: "E.neg",
		row:    func(x, _, _ float64) float64 { return -x },
		kernel: kernel{one: negate},
	},
	mathFunction("abs", "x without its sign.", nullIfNot, "Math.abs(Key.score)", math.Abs, absolute),
	mathFunction("floor", "The largest integer that is at most x.", nullIfNot, "Math.floor(Key.score)", math.Floor, floor),
	mathFunction("ceil", "The smallest integer that is at least x.", nullIfNot, "Math.ceil(Key.score)", math.Ceil, ceil),
	mathFunction("round", "The integer nearest to x. A half goes up, as in JavaScript: 2.5 to 3, -2.5 to -2.", nullIfNot, "Math.round(Key.score * 100) / 100", round, nil),
	mathFunction("trunc", "x without its fraction.", nullIfNot, "Math.trunc(Key.score)", func(x float64) float64 { return math.Trunc(x) }, nil),
	mathFunction("sign", "1 where x is above zero, -1 where it is below, and zero where it is zero.", "Null if x is NaN.", "Math.sign(Key.score)", sign, nil),
	mathFunction("sqrt", "The square root of x.", "Null if x is negative.", "Math.sqrt(Key.likes)", math.Sqrt, squareRoot),
	mathFunction("exp", "e to the power of x.", "Null if the result overflows, from about x = 709.8 on.", "Math.exp(-Key.score)", elementary.Exp, exponential),
	mathFunction("log", "The natural logarithm of x.", "Null if x is zero or negative.", "Math.log(1 + Key.likes)", elementary.Log, logarithm),
	mathFunction("expm1", "e to the power of x, less 1; exact where x is small.", "Null if the result overflows, from about x = 709.8 on.", "Math.expm1(Key.score)", elementary.Expm1, nil),
	mathFunction("log1p", "The natural logarithm of 1 + x; exact where x is small.", "Null if x is -1 or less.", "Math.log1p(Key.likes)", elementary.Log1p, nil),
	mathFunction("log2", "The logarithm of x to base 2.", "Null if x is zero or negative.", "Math.log2(1 + Key.likes)", elementary.Log2, nil),
	mathFunction("log10", "The logarithm of x to base 10.", "Null if x is zero or negative.", "Math.log10(1 + Key.likes)", elementary.Log10, nil),
	mathFunction("sin", "The sine of x, an angle in radians.", "Null if x is not finite.", "Math.sin(Key.score)", elementary.Sin, nil),
	mathFunction("cos", "The cosine of x, an angle in radians.", "Null if x is not finite.", "Math.cos(Key.score)", elementary.Cos, nil),
	mathFunction("tanh", "The hyperbolic tangent of x, from -1 to 1.", nullIfNot, "Math.tanh(Key.score)", elementary.Tanh, nil),
	{
		Group: "Arithmetic", Name: "atan2", Operands: []Operand{{"y", TakesNumber}, {"x", TakesNumber}}, Makes: Number, Typed: true,
		Doc:  "The angle in radians, from -π to π, between the x axis and the line from the origin to (x, y). y stands first, as in JavaScript.",
		Null: nullIfAny, NonFinite: nullIfNot, Example: "Math.atan2(Key.score, 2)", Function: "Math.atan2", Builder: "E.atan2",
		row: func(y, x, _ float64) float64 { return elementary.Atan2(y, x) },
	},
	{
		Group: "Arithmetic", Name: "pow", Operands: two, Makes: Number, Typed: true, Doc: "a to the power of b.", Null: nullIfAny,
		NonFinite: "Null if the result overflows, for zero to a negative power, and for a negative number to a fraction.",
		Example:   "Key.score ** 2", Infix: "**", Function: "Math.pow", Builder: "E.pow",
		row:    func(a, b, _ float64) float64 { return power(a, b) },
		kernel: kernel{two: powVector, scalar: powByScalar},
	},
	{
		Group: "Arithmetic", Name: "min", Operands: two, Makes: Number, Typed: true, Doc: "The smaller of a and b.", Null: nullIfAny,
		NonFinite: nullIfNot, Example: "Math.min(Key.score, 1)", Function: "Math.min", Variadic: true, Builder: "E.min",
		row:    func(a, b, _ float64) float64 { return min(a, b) },
		kernel: kernel{two: minVector, scalar: minScalar, before: func(dst []float64, c float64, y []float64) { minScalar(dst, y, c) }},
	},
	{
		Group: "Arithmetic", Name: "max", Operands: two, Makes: Number, Typed: true, Doc: "The larger of a and b.", Null: nullIfAny,
		NonFinite: nullIfNot, Example: "Math.max(Key.score, 0)", Function: "Math.max", Variadic: true, Builder: "E.max",
		row:    func(a, b, _ float64) float64 { return max(a, b) },
		kernel: kernel{two: maxVector, scalar: maxScalar, before: func(dst []float64, c float64, y []float64) { maxScalar(dst, y, c) }},
	},
	{
		Group: "Arithmetic", Name: "clamp", Operands: []Operand{{"x", TakesNumber}, {"low", TakesNumber}, {"high", TakesNumber}},
		Makes: Number, Typed: true, Doc: "x, but at least low and at most high. high wins if it is below low.", Null: nullIfAny,
		NonFinite: nullIfNot, Example: "clamp(Key.score, 0, 1)", Function: "clamp", Builder: "E.clamp",
		row:    func(x, low, high float64) float64 { return min(max(x, low), high) },
		kernel: kernel{three: clampVector, scalars: clampScalar},
	},

	{
		Group: "Time", Name: "age", code: opAge, Operands: one, Makes: Number, Typed: true,
		Doc:  "The seconds from the time x to the request's arrival: now() - x. x is in seconds since 1970. The age of a time to come is negative.",
		Null: nullIfAny, NonFinite: nullIfNot, Example: "age(Key.created_at)", Function: "age", Builder: "E.age",
	},
	{
		Group: "Time", Name: "decay", Operands: []Operand{{"x", TakesNumber}, {"half_life", TakesNumber}}, Makes: Number, Typed: true,
		Doc:  "2 to the power of -x / half_life: 1 at x = 0, one half at x = half_life. x and half_life have the same unit.",
		Null: nullIfAny, NonFinite: "Null if half_life is not above 0, or the result overflows.",
		Example: "decay(age(Key.created_at), 6 * 3600)", Function: "decay", Builder: "E.decay",
		row:    func(x, halfLife, _ float64) float64 { return decay(x, halfLife) },
		kernel: kernel{two: decayVector, scalar: decayScalar},
	},

	{
		Group: "Time", Name: "hour_of", code: opClock, Operands: clock, Makes: Number, Typed: true,
		Doc:  "The hour of the day, 0 to 23, at the time x in a zone of the IANA database. x is in seconds since 1970. The zone is a literal.",
		Null: nullIfAny, NonFinite: noDate, Example: `hourOf(now(), "Europe/Berlin")`, Function: "hourOf", Builder: "E.hourOf",
		clock: time.Time.Hour,
	},
	{
		Group: "Time", Name: "day_of_week", code: opClock, Operands: clock, Makes: Number, Typed: true,
		Doc:  "The day of the week, 0 (Sunday) to 6, at the time x in a zone of the IANA database. x is in seconds since 1970. The zone is a literal.",
		Null: nullIfAny, NonFinite: noDate, Example: `dayOfWeek(now(), "America/New_York")`, Function: "dayOfWeek", Builder: "E.dayOfWeek",
		clock: func(t time.Time) int { return int(t.Weekday()) },
	},

	{
		Group: "Vectors", Name: "dot", code: opVectors, Operands: vectors, Makes: Number, Typed: true,
		Doc:  "The sum of the products of two vectors of one length, number by number. Sums are of doubles in a stated order, the same on every machine.",
		Null: nullIfAny, Example: "dot(Key.taste, Key.embedding)", Function: "dot", Builder: "E.dot", vectors: rowset.Dot,
	},
	{
		Group: "Vectors", Name: "cosine", code: opVectors, Operands: vectors, Makes: Number, Typed: true,
		Doc: "The cosine of the angle between two vectors: dot(a, b) / sqrt(dot(a, a) * dot(b, b)), from -1 to 1 but for rounding.", Null: nullIfAny,
		NonFinite: "Null if a vector is zero.", Example: "cosine(Key.taste, Key.embedding)", Function: "cosine", Builder: "E.cosine", vectors: rowset.Cosine,
	},
	{
		Group: "Vectors", Name: "l2", code: opVectors, Operands: vectors, Makes: Number, Typed: true,
		Doc:  "The distance between two vectors: the square root of the sum of the squares of their differences.",
		Null: nullIfAny, Example: "l2(Key.taste, Key.embedding)", Function: "l2", Builder: "E.l2", vectors: rowset.L2,
	},
	{
		Group: "Vectors", Name: "norm", code: opVectors, Operands: oneOfThem, Makes: Number, Typed: true,
		Doc: "The length of a vector: the square root of dot(x, x).", Null: nullIfAny, Example: "norm(Key.embedding)", Function: "norm", Builder: "E.norm",
		vectors: oneVector(rowset.Norm),
	},

	{
		Group: "Places", Name: "geo_distance",
		Operands: []Operand{{"lat1", TakesNumber}, {"lon1", TakesNumber}, {"lat2", TakesNumber}, {"lon2", TakesNumber}}, Makes: Number, Typed: true,
		Doc: "The distance in meters between two places, along the surface of a sphere with the mean radius of the earth, 6,371,008.8 m (IUGG). " +
			"Latitudes and longitudes are in degrees, north and east above zero. It is at most 0.6 % off the distance on the ellipsoid. " +
			"The formula is the haversine (Sinnott, Virtues of the Haversine, 1984).",
		Null: nullIfAny, NonFinite: "Null if a latitude is not from -90 to 90, or a longitude is not finite.",
		Example: "geoDistance(Key.lat, Key.lon, P.lat, P.lon)", Function: "geoDistance", Builder: "E.geoDistance",
		four: geoDistance,
	},

	{
		Group: "Chance", Name: "hash", code: opHash, Operands: []Operand{{"x", TakesElement}, {"seed", TakesElement}}, Makes: Number, Typed: true,
		Doc: "An integer from 0 to below 2 to the power of 53 that looks random, and depends on x and seed alone. It is the same on every machine and in every version. " +
			"An integer, a number of the same value and an id count as one; a string counts by its bytes.",
		Null: nullIfAny, NonFinite: "Null if an operand is not finite.", Example: "hash(Key.id, P.seed) % 100", Function: "hash", Builder: "E.hash",
		draw: hashOf,
	},
	{
		Group: "Chance", Name: "random", code: opHash, Operands: []Operand{{"seed", TakesElement}}, Makes: Number, Typed: true,
		Doc: "A number from 0 to below 1 for each row: hash(Key.id, seed) / 2 ** 53. Rows of the same id and seed have the same number, in any request; " +
			"another seed, P.seed + 1 for example, gives others.",
		Null: nullIfAny, NonFinite: "Null if seed is not finite.", Example: "random(P.seed)", Function: "random", Builder: "E.random",
		draw: rowset.HashUnit,
	},

	{
		Group: "Strings", Name: "concat", code: opConcat, Operands: []Operand{{"a", TakesElement}, {"b", TakesElement}}, Makes: String, Typed: true,
		Doc: "The string a followed by the string b. A number stands as JavaScript writes it, an integer with all its digits. Plans also write it " +
			"with + where an operand is a string, and as a template: `${Key.title} (${Key.id})`.",
		Null: nullIfAny + " Null if a number is not finite, or if the result has more than 16,384 bytes.", Example: `Key.title + "!"`,
		Builder: "E.concat", Variadic: true,
	},
	{
		Group: "Strings", Name: "lower", code: opLower, Operands: oneText, Makes: String, Typed: true,
		Doc:  "x in lower case, as toLowerCase of JavaScript: by Unicode, whatever the language.",
		Null: nullIfAny + " Null if the result has more than 16,384 bytes.", Example: "lower(Key.title)", Function: "lower", Builder: "E.lower",
	},
	{
		Group: "Strings", Name: "length", code: opLength, Operands: oneText, Makes: Number, Typed: true,
		Doc:  "The length of x in UTF-16 units, as JavaScript counts it. A byte that is not UTF-8 counts as one.",
		Null: nullIfAny, Example: "length(Key.title)", Function: "length", Builder: "E.length",
	},

	{
		Group: "Choices", Name: "coalesce", code: opCoalesce, Operands: []Operand{{"a", TakesNullable}, {"b", TakesNullable}}, Makes: Number, Doc: "a, or b where a is null. Both are numbers, or both are strings.", Null: "Null if both are null.",
		NonFinite: passesOn, Example: "coalesce(Key.score, 0)", Infix: "??", Function: "coalesce", Builder: "E.coalesce",
	},
	{
		Group: "Choices", Name: "table", code: opTable, Operands: []Operand{{"x", TakesElement}}, Makes: Number, Typed: true,
		Members: []Member{
			{Name: "entries", Type: "object", Doc: "Up to 4,096 numbers by the value of x. Integers stand as their digits."},
			{Name: "default", Type: "number", Optional: true, Doc: "The number for other values. Without it they give null."},
		},
		Doc:  "The entry of x, an integer or a string that is a key, a parameter or a constant, or the default if there is none.",
		Null: "Null if x is null, or if it has no entry and there is no default.", Example: "table(Key.country, { US: 2, CA: 1.5 }, 1)", Function: "table", Builder: "E.table",
	},
	{
		Group: "Choices", Name: "if", code: opIf,
		Operands: []Operand{{"cond", TakesPredicate}, {"then", TakesNullable}, {"else", TakesNullable}},
		Makes:    Number, Typed: true,
		Doc:  "then where cond is true, else where it is false. Both are numbers, or both are strings. A pattern inside cond must be a literal, because an expression cannot fail.",
		Null: "Null if the chosen operand is null.", NonFinite: passesOn,
		Example: "Key.score > 0.5 ? 1 : Key.score", Infix: "?:", Builder: "E.if",
	},

	{
		Group: "Predicates", Name: "const_bool", code: opTruth, Makes: Predicate, Members: []Member{{Name: "value", Type: "boolean", Doc: "The value."}},
		Doc: "A constant predicate.", Null: neverNullPred, Example: "true", Builder: "Pred.const",
	},
	{
		Group: "Predicates", Name: "cmp", Cmp: "==", code: opCmp, Operands: equal, Members: cmpMember, Makes: Predicate,
		Doc: "a equals b.", Null: "With the literal null: true if the other side is null. Otherwise false if an operand is null.",
		Example: `Key.country == "US"`, Infix: "==",
	},
	{
		Group: "Predicates", Name: "cmp", Cmp: "!=", code: opCmp, Operands: equal, Members: cmpMember, Makes: Predicate,
		Doc: "a differs from b.", Null: "With the literal null: true if the other side is not null. Otherwise false if an operand is null.",
		Example: "Key.author_id != Key.id", Infix: "!=",
	},
	ordering("<", "a is less than b."),
	ordering("<=", "a is at most b."),
	ordering(">", "a is greater than b."),
	ordering(">=", "a is at least b."),
	{
		Group: "Predicates", Name: "is_null", code: opIsNull, Operands: anything, Makes: Predicate,
		Doc: "x is null.", Null: neverNullPred, Example: "Key.score == null", Builder: "Pred.isNull",
	},
	{
		Group: "Predicates", Name: "not_null", code: opNotNull, Operands: anything, Makes: Predicate,
		Doc: "x is not null.", Null: neverNullPred, Example: "Key.score != null", Builder: "Pred.notNull",
	},
	{
		Group: "Predicates", Name: "in", code: opIn, Operands: []Operand{{"lhs", TakesElement}}, Makes: Predicate,
		Members: []Member{{Name: "list", Type: "array", Doc: "Numbers, or strings."}},
		Doc:     "lhs equals an element of the list.", Null: falseIfNull, Example: `Key.country.in(["US", "CA"])`, Method: "in", Builder: "Pred.in",
	},
	{
		Group: "Predicates", Name: "member", code: opMember, Operands: []Operand{{"x", TakesElement}, {"set", TakesSet}}, Makes: Predicate, Typed: true,
		Doc:  "x is an element of the row's set or of the request's list. Integers are compared exactly.",
		Null: falseIfNull, Example: `Key.tags.includes("news")`, Method: "includes",
	},
	{
		Group: "Predicates", Name: "regex", code: opRegex, Makes: Predicate,
		Members: []Member{
			{Name: "key_id", Type: "integer", Doc: "A string key."},
			{Name: "pattern", Type: "object", Doc: `{"kind": "literal", "value": "^a"} or {"kind": "param", "param_id": 2}.`},
			{Name: "flags", Type: "string", Values: []string{"", "i"}, Optional: true, Doc: `"i" ignores the case of letters.`},
		},
		Doc: "The pattern (RE2) occurs in the row's string. A pattern from a parameter that is null or malformed fails the node, " +
			"once a row with a string is reached.",
		Null: falseIfNull, Example: `regex(Key.title, "^new", "i")`, Function: "regex", Builder: "Pred.regex",
	},
	{
		Group: "Predicates", Name: "contains", code: opTexts, Operands: twoTexts, Makes: Predicate, Typed: true,
		Doc: "The string x contains part. Letters count by their case, and no character of part is special, so that it may come from a caller.", Null: falseIfNull, Example: `contains(Key.title, "new")`, Function: "contains", Builder: "Pred.contains",
		texts: strings.Contains,
	},
	{
		Group: "Predicates", Name: "starts_with", code: opTexts, Operands: twoTexts, Makes: Predicate, Typed: true,
		Doc: "The string x begins with part.", Null: falseIfNull, Example: `startsWith(Key.country, "U")`, Function: "startsWith", Builder: "Pred.startsWith",
		texts: strings.HasPrefix,
	},
	{
		Group: "Predicates", Name: "ends_with", code: opTexts, Operands: twoTexts, Makes: Predicate, Typed: true,
		Doc: "The string x ends with part.", Null: falseIfNull, Example: `endsWith(Key.title, "!")`, Function: "endsWith", Builder: "Pred.endsWith",
		texts: strings.HasSuffix,
	},
	{
		Group: "Predicates", Name: "and", code: opAnd, Operands: logical, Makes: Predicate, Doc: "a and b. b is not evaluated where a is false.",
		Null: neverNullPred, Example: "Key.score > 0.5 && Key.likes > 3", Infix: "&&", Variadic: true, Builder: "Pred.and",
	},
	{
		Group: "Predicates", Name: "or", code: opOr, Operands: logical, Makes: Predicate, Doc: "a or b. b is not evaluated where a is true.",
		Null: neverNullPred, Example: "Key.score > 0.5 || Key.likes > 3", Infix: "||", Variadic: true, Builder: "Pred.or",
	},
	{
		Group: "Predicates", Name: "not", code: opNot, Operands: []Operand{{"x", TakesPredicate}}, Makes: Predicate,
		Doc: "x is false. The negation of a comparison with null is therefore true.", Null: neverNullPred,
		Example: "!(Key.score > 0.5)", Prefix: "!", Builder: "Pred.not",
	},
})

// mathFunction returns an operator of one number that Math of JavaScript has under the same name. A vector of nil calls row for each row.
func mathFunction(name, doc, nonFinite, example string, row func(x float64) float64, vector func(dst, x []float64)) Operator {
	if vector == nil {
		vector = func(dst, x []float64) {
			for i, v := range x {
				dst[i] = row(v)
			}
		}
	}
	return Operator{
		Group: "Arithmetic", Name: name, Operands: one, Makes: Number, Typed: true, Doc: doc, Null: nullIfAny, NonFinite: nonFinite,
		Example: example, Function: "Math." + name, Builder: "E." + name,
		row: func(x, _, _ float64) float64 { return row(x) }, kernel: kernel{one: vector},
	}
}

// ordering returns a comparison by order.
func ordering(cmp, doc string) Operator {
	return Operator{
		Group: "Predicates", Name: "cmp", Cmp: cmp, code: opCmp, Operands: ordered, Members: cmpMember, Makes: Predicate, Doc: doc,
		Null: falseIfNull, Example: "Key.score " + cmp + " 0.5", Infix: cmp,
	}
}
