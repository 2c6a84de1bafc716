package plan_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// strictOps returns an op table with one op of each kind of parameter.
func strictOps() opTable {
	table := testOps()
	add := func(schema plan.OpSchema) {
		schema.Strict = plan.IsStrict(schema.Strict, schema.Params)
		schema.InputsMax = max(schema.InputsMin, schema.InputsMax)
		table[schema.Op] = &schema
	}
	low, high := int64(1), int64(9)
	least, most := 0.5, 2.5
	items := []plan.ParamSchema{
		{Name: "ints", Type: plan.Int, List: true, MinItems: 1, MaxItems: 3, Source: plan.SourceRule{Min: &low, Max: &high}},
		{Name: "floats", Type: plan.Float, List: true},
		{Name: "bools", Type: plan.Bool, List: true},
		{Name: "texts", Type: plan.String, List: true},
		{Name: "enums", Type: plan.Enum, List: true, Source: plan.SourceRule{OneOf: []string{"a", "b"}}},
		{Name: "keys", Type: plan.Key, List: true},
		{Name: "templates", Type: plan.Template, List: true},
		{Name: "expr_ids", Type: plan.ExprID, List: true},
		{Name: "pred_ids", Type: plan.PredID, List: true},
		{Name: "refs", Type: plan.NodeRef, List: true},
		{Name: "rules", Type: plan.Object, List: true, Fields: []plan.ParamSchema{
			{Name: "pred_id", Type: plan.PredID, Required: true},
			{Name: "expr_id", Type: plan.ExprID},
			{Name: "weight", Type: plan.Float, FloatValue: 1},
			{Name: "only", Type: plan.Key, List: true},
		}},
	}
	singles := []plan.ParamSchema{
		{Name: "int", Type: plan.Int, IntValue: 4, Source: plan.SourceRule{Min: &low, Max: &high}},
		{Name: "float", Type: plan.Float, FloatValue: 0.75, Source: plan.SourceRule{FloatMin: &least, FloatMax: &most}},
		{Name: "bool", Type: plan.Bool},
		{Name: "text", Type: plan.String},
		{Name: "enum", Type: plan.Enum, StrValue: "max", Source: plan.SourceRule{OneOf: []string{"max", "min"}}},
		{Name: "key", Type: plan.Key},
		{Name: "to", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true}},
		{Name: "by", Type: plan.Int, IsKey: true},
		{Name: "template", Type: plan.Template},
		{Name: "expr_id", Type: plan.ExprID},
		{Name: "pred_id", Type: plan.PredID},
		{Name: "ref", Type: plan.NodeRef},
		{Name: "endpoint", Type: plan.Endpoint},
		{Name: "http", Type: plan.Endpoint, EndpointKind: registry.HTTP},
		{Name: "object", Type: plan.Object, Fields: []plan.ParamSchema{{Name: "n", Type: plan.Int, Required: true}}},
	}
	add(plan.OpSchema{Op: "new::singles", Params: singles, InputsMin: 1, Inherits: plan.InheritsInputs})
	add(plan.OpSchema{Op: "new::lists", Params: items, InputsMin: 1, InputsMax: 3, Inherits: plan.InheritsInputs})
	add(plan.OpSchema{Op: "new::checked", Strict: true, InputsMin: 1,
		Params: []plan.ParamSchema{{Name: "n", Type: plan.Int}},
		Prepare: func(n *plan.Node, _ *registry.Registry) (any, error) {
			switch i := n.Params.Int("n"); {
			case i < 0:
				return nil, plan.ParamErrorf("n", "is negative: %d", i)
			case i > 100:
				return nil, fmt.Errorf("too much")
			default:
				return i * 2, nil
			}
		}})
	return table
}

func loadStrict(text string, t testing.TB) (*plan.Graph, error) {
	return plan.Load("t.plan.json", []byte(text), strictOps(), testRegistry(t))
}

func TestNewParamsHaveValues(t *testing.T) {
	g, err := loadStrict(withNode("new::singles", `{"int": 9, "float": 2, "bool": true, "text": "hi", "enum": "min", "key": "country", "to": 2002,
		"by": 2001, "template": "sim:{id}", "expr_id": "e", "pred_id": "p", "ref": "s", "endpoint": "ep_0001", "http": "ep_0002", "object": {"n": 5}}`), t)
	require.NoError(t, err)
	p := &g.Nodes[1].Params
	assert.Equal(t, int64(9), p.Int("int"))
	assert.Equal(t, 2.0, p.Float("float"))
	assert.True(t, p.Bool("bool"))
	assert.Equal(t, "hi", p.String("text"))
	assert.Equal(t, "min", p.String("enum"))
	assert.Equal(t, registry.KeyID(3001), p.Key("key").ID)
	assert.Equal(t, "score", p.Key("to").Name)
	assert.True(t, p.Template("template").PerRow())
	assert.NotNil(t, p.Expr("expr_id"))
	assert.NotNil(t, p.Pred("pred_id"))
	assert.Same(t, g.Nodes[1].Expr, p.Expr("expr_id"))
	assert.Same(t, g.Nodes[1].Pred, p.Pred("pred_id"))
	assert.Equal(t, 0, p.Ref("ref"))
	assert.Equal(t, []int{0}, g.Nodes[1].Refs)
	assert.Equal(t, "ep_0001", p.Endpoint("endpoint").ID)
	assert.Equal(t, registry.HTTP, p.Endpoint("http").Kind)
	assert.Equal(t, int64(5), p.Object("object").Int("n"))
	assert.True(t, p.Given("int"))
	assert.Panics(t, func() { p.Float("none") })

	g, err = loadStrict(withNode("new::singles", `{"text": null}`), t)
	require.NoError(t, err)
	p = &g.Nodes[1].Params
	assert.Equal(t, int64(4), p.Int("int"))
	assert.Equal(t, 0.75, p.Float("float"))
	assert.Equal(t, "max", p.String("enum"))
	assert.Nil(t, p.Key("key"))
	assert.Nil(t, p.Template("template"))
	assert.Nil(t, p.Expr("expr_id"))
	assert.Nil(t, p.Object("object"))
	assert.Equal(t, -1, p.Ref("ref"))
	for _, name := range []string{"int", "text", "enum", "key"} {
		assert.False(t, p.Given(name), name)
	}
}

func TestNewParamsHaveLists(t *testing.T) {
	g, err := loadStrict(withNode("new::lists", `{"ints": [1, 9.0], "floats": [1, -2.5e3], "bools": [true, false], "texts": ["", "x"],
		"enums": ["b", "a"], "keys": ["id", 3001], "templates": ["a", "{user}"], "expr_ids": ["e", "e"], "pred_ids": ["p"], "refs": ["s", "s"],
		"rules": [{"pred_id": "p"}, {"pred_id": "p", "expr_id": "e", "weight": 0.5, "only": ["score"]}]}`), t)
	require.NoError(t, err)
	n := g.Nodes[1]
	p := &n.Params
	assert.Equal(t, []int64{1, 9}, p.Ints("ints"))
	assert.Equal(t, []float64{1, -2500}, p.Floats("floats"))
	assert.Equal(t, []bool{true, false}, p.Bools("bools"))
	assert.Equal(t, []string{"", "x"}, p.Strings("texts"))
	assert.Equal(t, []string{"b", "a"}, p.Strings("enums"))
	assert.Equal(t, registry.IDKey, p.Keys("keys")[0].ID)
	assert.Equal(t, "country", p.Keys("keys")[1].Name)
	assert.Len(t, p.Templates("templates"), 2)
	assert.Len(t, p.Exprs("expr_ids"), 2)
	assert.Len(t, p.Preds("pred_ids"), 1)
	assert.Equal(t, []int{0, 1}, p.Refs("refs"))
	assert.Equal(t, []int{0, 0}, n.Refs)
	assert.Len(t, n.Exprs, 3)
	assert.Len(t, n.Preds, 3)
	rules := p.Objects("rules")
	require.Len(t, rules, 2)
	assert.NotNil(t, rules[0].Pred("pred_id"))
	assert.Nil(t, rules[0].Expr("expr_id"))
	assert.Equal(t, 1.0, rules[0].Float("weight"))
	assert.Empty(t, rules[0].Keys("only"))
	assert.NotNil(t, rules[1].Expr("expr_id"))
	assert.Equal(t, 0.5, rules[1].Float("weight"))
	assert.Equal(t, "score", rules[1].Keys("only")[0].Name)

	info, err := json.Marshal(g.Info().Nodes[1].Params)
	require.NoError(t, err)
	assert.Contains(t, string(info), `"keys":["id","country"]`)
	assert.Contains(t, string(info), `{"expr_id":"e","only":["score"],"pred_id":"p","weight":0.5}`)

	g, err = loadStrict(withNode("new::lists", `{}`), t)
	require.NoError(t, err)
	assert.Empty(t, g.Nodes[1].Params.Ints("ints"))
	assert.Empty(t, g.Nodes[1].Params.Objects("rules"))
}

// Each fault of a parameter names node and JSON path.
func TestNewParamsRefuse(t *testing.T) {
	long := strings.Repeat("x", 5000)
	many := strings.Repeat("1,", 1025)
	for _, test := range []struct{ op, params, field, text string }{
		{"singles", `{"int": 0}`, "int", "must be 1 to 9, not the integer 0"},
		{"singles", `{"int": 18446744073709551615}`, "int", "must be 1 to 9"},
		{"singles", `{"float": 0.25}`, "float", "must be 0.5 to 2.5, not 0.25"},
		{"singles", `{"float": "1"}`, "float", "must be a finite number"},
		{"singles", `{"text": "` + long + `"}`, "text", "has 5000 bytes, more than 4096"},
		{"singles", `{"enum": "mean"}`, "enum", `must be "max" or "min", not "mean"`},
		{"singles", `{"key": "contry"}`, "key", `no key "contry"; the nearest is "country"`},
		{"singles", `{"key": 77}`, "key", "no key the integer 77"},
		{"singles", `{"key": 1.5}`, "key", "must be the name or the id of a key"},
		{"singles", `{"key": true}`, "key", "must be the name or the id of a key"},
		{"singles", `{"to": "country"}`, "to", "must be a key of type float, not key 3001 (country) of type string"},
		{"singles", `{"by": 77}`, "by", "no key"},
		{"singles", `{"template": "a:{nobody}"}`, "template", "{nobody} is neither"},
		{"singles", `{"expr_id": ""}`, "expr_id", `expr_table has no entry ""`},
		{"singles", `{"pred_id": ""}`, "pred_id", `pred_table has no entry ""`},
		{"singles", `{"ref": "x_"}`, "ref", `there is no node "x_"`},
		{"singles", `{"endpoint": "ep_0002"}`, "endpoint", "must be an endpoint of kind redis"},
		{"singles", `{"http": "ep_0001"}`, "http", "must be an endpoint of kind http"},
		{"singles", `{"object": {}}`, "object.n", "is missing"},
		{"singles", `{"object": {"n": 1, "m": 2}}`, "object.m", "there are n"},
		{"singles", `{"object": []}`, "object", "must be an object"},
		{"lists", `{"ints": []}`, "ints", "must have 1 to 3 items, not 0"},
		{"lists", `{"ints": [1,2,3,4]}`, "ints", "must have 1 to 3 items, not 4"},
		{"lists", `{"ints": 1}`, "ints", "must be an array of 1 to 3 items"},
		{"lists", `{"ints": [1, 10]}`, "ints[1]", "must be 1 to 9"},
		{"lists", `{"floats": [` + many + `1]}`, "floats", "must have 0 to 1024 items, not 1026"},
		{"lists", `{"floats": [1, null]}`, "floats[1]", "must be a finite number, not null"},
		{"lists", `{"enums": ["a", "c"]}`, "enums[1]", `must be "a" or "b"`},
		{"lists", `{"keys": ["score", "none"]}`, "keys[1]", "no key"},
		{"lists", `{"expr_ids": ["e", "none"]}`, "expr_ids[1]", "expr_table has no entry"},
		{"lists", `{"refs": ["s", "none"]}`, "refs[1]", "there is no node"},
		{"lists", `{"rules": [{"pred_id": "p"}, {"pred_id": "none"}]}`, "rules[1].pred_id", "pred_table has no entry"},
		{"lists", `{"rules": [{"expr_id": "e"}]}`, "rules[0].pred_id", "is missing, must be an id in pred_table"},
		{"lists", `{"rules": [{"pred_id": "p", "wait": 1}]}`, "rules[0].wait", "there are pred_id, expr_id, weight, only"},
		{"lists", `{"rules": [{"pred_id": "p", "only": [1, "no"]}]}`, "rules[0].only[1]", "no key"},
		{"checked", `{"n": -4}`, "n", "is negative: -4"},
	} {
		_, err := loadStrict(withNode("new::"+test.op, test.params), t)
		var bad *plan.Error
		require.ErrorAs(t, err, &bad, test.params)
		assert.Equal(t, "x", bad.Node, test.params)
		assert.Equal(t, "nodes[1].params."+test.field, bad.Field, test.params)
		assert.Contains(t, bad.Msg, test.text, test.params)
		assert.NotContains(t, bad.Error(), "\n")
	}
}

func TestPrepare(t *testing.T) {
	g, err := loadStrict(withNode("new::checked", `{"n": 21}`), t)
	require.NoError(t, err)
	assert.Equal(t, int64(42), g.Nodes[1].Prepared)
	_, err = loadStrict(withNode("new::checked", `{"n": 101}`), t)
	assert.EqualError(t, err, `t.plan.json: node "x": nodes[1]: too much`)
}

// A strict op bounds its inputs when the plan loads. Inputs of other ops are checked when the
// node runs.
func TestNumberOfInputs(t *testing.T) {
	node := func(op, inputs string) string {
		return nodesPlan(source+`, {"node_id": "x", "op": "`+op+`", "inputs": [`+inputs+`], "params": {}}`, `"x"`)
	}
	for inputs, text := range map[string]string{``: "1 to 3 nodes, not 0", `"s","s","s","s"`: "1 to 3 nodes, not 4"} {
		_, err := loadStrict(node("new::lists", inputs), t)
		var bad *plan.Error
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, "nodes[1].inputs", bad.Field)
		assert.Contains(t, bad.Msg, text)
	}
	g, err := loadStrict(node("new::lists", `"s","s"`), t)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 0}, g.Nodes[1].Inputs)
	_, err = loadStrict(node("new::checked", ``), t)
	require.ErrorContains(t, err, "must list 1 nodes, not 0")
	load(t, node("test::fixed_source", `"s","s","s","s"`))
}

// FuzzParams uses any JSON as the parameters of the ops above. The plan loads, or the error is
// one line and names the node.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{
		`{"int": 9, "float": 2, "key": "country", "template": "a:{id}", "object": {"n": 5}}`,
		`{"rules": [{"pred_id": "p", "weight": 1e308}], "keys": [1, "score"], "refs": ["s"]}`,
		`{"n": 7}`, `{"ints": [[]]}`, `null`, `[]`, `{"enum": "\n"}`, `{"template": "{{}"}`,
	} {
		for op := range 3 {
			f.Add(uint8(op), seed)
		}
	}
	ops, reg := strictOps(), testRegistry(f)
	names := []string{"new::singles", "new::lists", "new::checked"}
	f.Fuzz(func(t *testing.T, op uint8, params string) {
		if !json.Valid([]byte(params)) {
			return
		}
		g, err := plan.Load("f", []byte(withNode(names[int(op)%len(names)], params)), ops, reg)
		if err != nil {
			var bad *plan.Error
			require.ErrorAs(t, err, &bad)
			require.NotContains(t, bad.Error(), "\n")
			return
		}
		checkInvariants(t, g)
		p := &g.Nodes[1].Params
		switch g.Nodes[1].Op {
		case "new::singles":
			require.True(t, 1 <= p.Int("int") && p.Int("int") <= 9)
			require.True(t, 0.5 <= p.Float("float") && p.Float("float") <= 2.5)
			require.Contains(t, []string{"max", "min"}, p.String("enum"))
		case "new::lists":
			for _, v := range p.Floats("floats") {
				require.False(t, math.IsInf(v, 0))
			}
			for _, key := range p.Keys("keys") {
				require.NotNil(t, key)
			}
			rules := p.Objects("rules")
			for i := range rules {
				require.NotNil(t, rules[i].Pred("pred_id"))
			}
		}
	})
}
