package expr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

func TestParseExprRefuses(t *testing.T) {
	for _, c := range []struct{ name, doc, want string }{
		{"no object", `3`, "want an object, the expression; have the integer 3"},
		{"a list", `[]`, "want an object, the expression; have an array"},
		{"no op", `{}`, "op is missing"},
		{"op of another type", `{"op":1}`, "op: want a string, have the integer 1"},
		{"unknown op", `{"op":"divide"}`, `unknown op "divide" of an expression`},
		{
			"op of typed expressions", `{"op":"div"}`,
			`op "div" needs "cap.rankd.expressions.v1" in capabilities_required`,
		},
		{"op of a predicate", `{"op":"cmp"}`, `unknown op "cmp" of an expression`},
		{"op in capitals", `{"op":"Add"}`, `unknown op "Add" of an expression`},
		{"number missing", `{"op":"const_number"}`, "value is missing"},
		{"number null", `{"op":"const_number","value":null}`, "value: want a number, have null"},
		{"number as string", `{"op":"const_number","value":"1"}`, `value: want a number, have "1"`},
		{"number as boolean", `{"op":"const_number","value":true}`, "value: want a number, have true"},
		{"key missing", `{"op":"key_ref"}`, "key_id is missing"},
		{"key with sign", `{"op":"key_ref","key_id":-1}`, "key_id: want an integer without sign, have the integer -1"},
		{"key minus zero", `{"op":"key_ref","key_id":-0}`, "key_id: want an integer without sign, have the integer 0"},
		{"key as float", `{"op":"key_ref","key_id":1.0}`, "key_id: want an integer without sign, have the number 1.0"},
		{"key as string", `{"op":"key_ref","key_id":"1"}`, `key_id: want an integer without sign, have "1"`},
		{"key too large", `{"op":"key_ref","key_id":4294967296}`, "key_id: 4294967296 is more than 4294967295"},
		{"param too large", `{"op":"param_ref","param_id":4294967296}`, "param_id: 4294967296 is more than 4294967295"},
		{
			"param as float", `{"op":"param_ref","param_id":1e0}`,
			"param_id: want an integer without sign, have the number 1.0",
		},
		{"operand missing", `{"op":"add","a":{"op":"const_null"}}`, "b is missing"},
		{"operand null", `{"op":"neg","x":null}`, "x: want an object, the expression; have null"},
		{"operand list", `{"op":"add","a":[],"b":{"op":"const_null"}}`, "a: want an object, the expression; have an array"},
		{"operands of neg", `{"op":"neg","a":{"op":"const_null"}}`, "x is missing"},
		{
			"deep inside", `{"op":"add","a":{"op":"const_null"},"b":{"op":"neg","x":{"op":"coalesce","a":{"op":"what"},"b":0}}}`,
			`b.x.a: unknown op "what" of an expression`,
		},
		{"the last duplicate counts", `{"op":"const_null","op":"what"}`, `unknown op "what" of an expression`},
		{
			"a long string", `{"op":"const_number","value":"` + strings.Repeat("x", 1000) + `"}`,
			"value: want a number, have a string",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Language{}.ParseExpr(parseJSON(t, c.doc))
			assert.EqualError(t, err, c.want)
			assert.ErrorAs(t, err, new(*ParseError))
		})
	}
	_, err := Language{}.ParseExpr(nil)
	assert.EqualError(t, err, "want an object, the expression; have nothing")
}

func TestParsePredRefuses(t *testing.T) {
	const x, yes = `{"op":"const_null"}`, `{"op":"const_bool","value":true}`
	regex := func(rest string) string { return `{"op":"regex","key_id":3001` + rest + `}` }
	for _, c := range []struct{ name, doc, want string }{
		{"no object", `true`, "want an object, the predicate; have true"},
		{"unknown op", `{"op":"xor"}`, `unknown op "xor" of a predicate`},
		{"op of an expression", `{"op":"add"}`, `unknown op "add" of a predicate`},
		{"bool as number", `{"op":"const_bool","value":1}`, "value: want true or false, have the integer 1"},
		{"bool null", `{"op":"const_bool","value":null}`, "value: want true or false, have null"},
		{"bool missing", `{"op":"const_bool"}`, "value is missing"},
		{
			"list of operands", `{"op":"and","a":[` + yes + `],"b":` + yes + `}`,
			"a: want an object, the predicate; have an array",
		},
		{"operand missing", `{"op":"or","b":` + yes + `}`, "a is missing"},
		{"not without operand", `{"op":"not","a":` + yes + `}`, "x is missing"},
		{
			"unknown comparison", `{"op":"cmp","cmp":"=","a":` + x + `,"b":` + x + `}`,
			`cmp: want one of == != < <= > >=, have "="`,
		},
		{
			"comparison no string", `{"op":"cmp","cmp":1,"a":` + x + `,"b":` + x + `}`,
			"cmp: want one of == != < <= > >=, have the integer 1",
		},
		{"comparison missing", `{"op":"cmp","a":` + x + `,"b":` + x + `}`, "cmp is missing"},
		{
			"comparison of a predicate", `{"op":"cmp","cmp":"<","a":` + yes + `,"b":` + x + `}`,
			`a: unknown op "const_bool" of an expression`,
		},
		{"is_null without operand", `{"op":"is_null"}`, "x is missing"},
		{"in without lhs", `{"op":"in","list":[]}`, "lhs is missing"},
		{"in without list", `{"op":"in","lhs":` + x + `}`, "list is missing"},
		{"in with an object", `{"op":"in","lhs":` + x + `,"list":{}}`, "list: want an array, have an object"},
		{"mixed list", `{"op":"in","lhs":` + x + `,"list":[1,"a"]}`, "list[1]: numbers and strings are mixed"},
		{
			"mixed list, strings first", `{"op":"in","lhs":` + x + `,"list":["a","b",1]}`,
			"list[2]: numbers and strings are mixed",
		},
		{"null in a list", `{"op":"in","lhs":` + x + `,"list":[1,null]}`, "list[1]: want a number or a string, have null"},
		{"boolean in a list", `{"op":"in","lhs":` + x + `,"list":[true]}`, "list[0]: want a number or a string, have true"},
		{"list in a list", `{"op":"in","lhs":` + x + `,"list":[[]]}`, "list[0]: want a number or a string, have an array"},
		{"regex without key", `{"op":"regex","pattern":{"kind":"literal","value":""}}`, "key_id is missing"},
		{"regex without pattern", regex(``), "pattern is missing"},
		{"pattern as string", regex(`,"pattern":"a"`), "pattern: want an object, have \"a\""},
		{"pattern without kind", regex(`,"pattern":{"value":"a"}`), "pattern: kind is missing"},
		{
			"pattern of unknown kind", regex(`,"pattern":{"kind":"glob","value":"a"}`),
			`pattern: kind: want "literal" or "param", have "glob"`,
		},
		{"literal without value", regex(`,"pattern":{"kind":"literal"}`), "pattern: value is missing"},
		{
			"literal number", regex(`,"pattern":{"kind":"literal","value":1}`),
			"pattern: value: want a string, have the integer 1",
		},
		{"param without id", regex(`,"pattern":{"kind":"param"}`), "pattern: param_id is missing"},
		{"param 0", regex(`,"pattern":{"kind":"param","param_id":0}`), "pattern: param_id: 0 is not a parameter"},
		{
			"param too large", regex(`,"pattern":{"kind":"param","param_id":4294967296}`),
			"pattern: param_id: 4294967296 is more than 4294967295",
		},
		{
			"unknown flag", regex(`,"pattern":{"kind":"literal","value":""},"flags":"im"`),
			`flags: want "" or "i", have "im"`,
		},
		{"flags null", regex(`,"pattern":{"kind":"literal","value":""},"flags":null`), `flags: want "" or "i", have null`},
		{
			"deep inside", `{"op":"or","a":` + yes + `,"b":{"op":"not","x":{"op":"cmp","cmp":"<","a":{"op":"neg","x":{"op":"what"}},"b":` + x + `}}}`,
			`b.x.a.x: unknown op "what" of an expression`,
		},
		{
			"deep inside a pattern", `{"op":"not","x":` + regex(`,"pattern":[]`) + `}`,
			"x.pattern: want an object, have an array",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Language{}.ParsePred(parseJSON(t, c.doc))
			assert.EqualError(t, err, c.want)
			assert.ErrorAs(t, err, new(*ParseError))
		})
	}
	_, err := Language{}.ParsePred(nil)
	assert.EqualError(t, err, "want an object, the predicate; have nothing")
}

func TestParseAccepts(t *testing.T) {
	for name, doc := range map[string]string{
		"members that the format does not know": `{"op":"const_number","value":1,"note":[1,2],"a":7}`,
		"the largest ids":                       `{"op":"add","a":{"op":"key_ref","key_id":4294967295},"b":{"op":"param_ref","param_id":4294967295}}`,
		"ids of nothing":                        `{"op":"add","a":{"op":"key_ref","key_id":0},"b":{"op":"param_ref","param_id":0}}`,
		"numbers of any literal":                `{"op":"add","a":{"op":"const_number","value":-0},"b":{"op":"const_number","value":1e-999}}`,
		"the last duplicate":                    `{"op":"what","op":"const_null"}`,
	} {
		t.Run(name, func(t *testing.T) { mustExpr(t, doc) })
	}
	for name, doc := range map[string]string{
		"a bad literal pattern": `{"op":"regex","key_id":3001,"pattern":{"kind":"literal","value":"("}}`,
		"empty list":            `{"op":"in","lhs":{"op":"const_null"},"list":[]}`,
		"strings on a non-key":  `{"op":"in","lhs":{"op":"const_null"},"list":["a"]}`,
	} {
		t.Run(name, func(t *testing.T) { mustPred(t, doc) })
	}
}

// nested returns a tree of that many levels, with open repeated around leaf.
func nested(open, leaf string, levels int) string {
	return strings.Repeat(open, levels-1) + leaf + strings.Repeat("}", levels-1)
}

func TestNesting(t *testing.T) {
	const null = `{"op":"const_null"}`
	exprs := map[string]string{
		"neg":                     `{"op":"neg","x":`,
		"add, deep to the right":  `{"op":"add","a":{"op":"neg","x":{"op":"key_ref","key_id":1}},"b":`,
		"coalesce to the right":   `{"op":"coalesce","a":{"op":"neg","x":{"op":"key_ref","key_id":1001}},"b":`,
		"mul around a small left": `{"op":"mul","a":{"op":"key_ref","key_id":1001},"b":`,
	}
	one := rowset.Dense(rowset.NewBatch([]int64{3, 4}, &rowset.FloatColumn{Key: 1001, Values: []float64{2, 1}, Valid: rowset.NewBitmapOf(2, 1)}))
	for name, open := range exprs {
		for _, levels := range []int{256, MaxDepth - 1} { // -1: the other operands are a level deeper
			text := nested(open, `{"op":"key_ref","key_id":1}`, levels)
			t.Run(name, func(t *testing.T) { checkExpr(t, mustExpr(t, text), parseJSON(t, text), one, nil) })
		}
		t.Run(name+", too deep", func(t *testing.T) {
			_, err := Language{}.ParseExpr(parseJSON(t, nested(open, null, MaxDepth+1)))
			require.ErrorContains(t, err, "nested deeper than 1000 levels")
			assert.Less(t, len(err.Error()), 200)
		})
	}
	for name, open := range map[string]string{
		"not": `{"op":"not","x":`,
		"and": `{"op":"and","a":{"op":"not_null","x":` + null + `},"b":`,
		"or":  `{"op":"or","a":{"op":"is_null","x":{"op":"key_ref","key_id":1001}},"b":`,
	} {
		for _, levels := range []int{256, MaxDepth - 2} {
			text := nested(open, `{"op":"cmp","cmp":"<","a":{"op":"key_ref","key_id":1},"b":{"op":"const_number","value":4}}`, levels)
			t.Run(name, func(t *testing.T) { checkPred(t, mustPred(t, text), parseJSON(t, text), one, nil) })
		}
		t.Run(name+", too deep", func(t *testing.T) {
			_, err := Language{}.ParsePred(parseJSON(t, nested(open, `{"op":"const_bool","value":true}`, MaxDepth+1)))
			assert.ErrorContains(t, err, "nested deeper than 1000 levels")
		})
	}
	t.Run("predicate and expression count together", func(t *testing.T) {
		leaf := `{"op":"is_null","x":` + nested(`{"op":"neg","x":`, null, MaxDepth/2) + `}`
		mustPred(t, nested(`{"op":"not","x":`, leaf, MaxDepth/2))
		_, err := Language{}.ParsePred(parseJSON(t, nested(`{"op":"not","x":`, leaf, MaxDepth/2+1)))
		assert.ErrorContains(t, err, "nested deeper than 1000 levels")
	})
}

func TestKeysAndParams(t *testing.T) {
	e := mustExpr(t, `{"op":"coalesce","a":{"op":"const_null"},"b":{"op":"add",
		"a":{"op":"mul","a":{"op":"key_ref","key_id":2001},"b":{"op":"key_ref","key_id":1}},
		"b":{"op":"coalesce","a":{"op":"param_ref","param_id":4},"b":{"op":"mul",
			"a":{"op":"param_ref","param_id":3},"b":{"op":"key_ref","key_id":2001}}}}}`)
	assert.Equal(t, []registry.KeyID{1, 2001}, e.Keys())
	assert.Equal(t, []registry.ParamID{3, 4}, e.Params())

	p := mustPred(t, `{"op":"and",
		"a":{"op":"in","lhs":{"op":"key_ref","key_id":3002},"list":["a"]},
		"b":{"op":"not","x":{"op":"or",
			"a":{"op":"regex","key_id":3001,"pattern":{"kind":"param","param_id":2}},
			"b":{"op":"cmp","cmp":"==","a":{"op":"const_null"},"b":{"op":"neg","x":{"op":"key_ref","key_id":1001}}}}}}`)
	assert.Equal(t, []registry.KeyID{1001, 3001, 3002}, p.Keys())
	assert.Equal(t, []registry.ParamID{2}, p.Params())

	assert.Empty(t, mustExpr(t, `{"op":"const_null"}`).Keys())
	assert.Empty(t, mustPred(t, `{"op":"const_bool","value":true}`).Params())
}

func TestParams(t *testing.T) {
	var p Params
	p.SetFloat(1, 0.5)
	p.SetFloat(1, 0.25) // the last one counts
	p.SetString(2, "a")
	p.SetString(2, "b")
	p.SetFloat(3, 1)
	p.SetString(3, "now a string")
	p.SetFloat(4, 1)
	p.Unset(4)

	f, ok := p.Float(1)
	assert.Equal(t, 0.25, f)
	assert.True(t, ok)
	s, ok := p.String(2)
	assert.Equal(t, "b", s)
	assert.True(t, ok)
	for _, id := range []registry.ParamID{0, 2, 3, 4, 9} {
		_, ok := p.Float(id)
		assert.False(t, ok, "param %d", id)
	}
	for _, id := range []registry.ParamID{0, 1, 4, 9} {
		_, ok := p.String(id)
		assert.False(t, ok, "param %d", id)
	}
	var none *Params
	_, ok = none.Float(1)
	assert.False(t, ok)
	_, ok = none.String(2)
	assert.False(t, ok)
}
