package expr

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// TestTheHashOfAnID: an id that is a text is hashed as a text. Other ids are hashed as
// integers.
func TestTheHashOfAnID(t *testing.T) {
	tables := registrytest.Tables{Keys: registrytest.ID, Params: registrytest.Param(1, "seed", "string"), Endpoints: registrytest.Redis}.FS()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"product\"\nid = \"string\"\n")}
	reg, err := registry.Load(tables, "test")
	require.NoError(t, err)
	ids := rowset.NewIDDict()
	numbers, err := ids.Number(nil, []byte("x"), []byte("a"), []byte("x"))
	require.NoError(t, err)
	rows := rowset.Dense(rowset.NewBatch(numbers))
	var texts, integers Params
	texts.SetString(1, "s")
	integers.SetString(1, "s")
	texts.SetIDs(ids)
	for _, tree := range []string{
		`{"op":"random","seed":{"op":"param_ref","param_id":1}}`,
		`{"op":"hash","x":{"op":"key_ref","key_id":1},"seed":{"op":"param_ref","param_id":1}}`,
	} {
		e := mustExprOf(t, Language{Typed: true, Registry: reg}, tree)
		draw := e.code.program[e.root].of.draw
		got, err := e.Values(nil, nil, rows, &texts)
		require.NoError(t, err)
		for i, text := range []string{"x", "a", "x"} {
			assert.Equal(t, draw(rowset.HashText(text, rowset.TextBits("s"))), got.Values[i])
		}
		got, err = e.Values(nil, nil, rows, &integers)
		require.NoError(t, err)
		for i, id := range numbers {
			assert.Equal(t, draw(rowset.HashInt(id, rowset.TextBits("s"))), got.Values[i])
		}
		assert.Len(t, e.Explain(rows, 1, &texts).Terms, len(e.code.program[e.root].of.Operands))
		got, err = e.Values(nil, nil, rows, &Params{})
		require.NoError(t, err)
		assert.Zero(t, got.Valid.Count(3), "without a seed")
	}
}

// TestIDsThatAreTexts: where ids may be texts, a comparison with strings reads the id as a
// text. Elsewhere it is refused, and so is any other expression.
func TestIDsThatAreTexts(t *testing.T) {
	tables := registrytest.Tables{
		Keys:      registrytest.ID + registrytest.Key(2, "sku", "string", registrytest.Nullable) + registrytest.Key(3, "tags", "string_set", registrytest.Nullable),
		Params:    registrytest.Param(1, "wanted", "string") + registrytest.Param(2, "several", "string_list"),
		Endpoints: registrytest.Redis,
	}.FS()
	integers, err := registry.Load(tables, "test")
	require.NoError(t, err)
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"product\"\nid = \"string\"\n")}
	texts, err := registry.Load(tables, "test")
	require.NoError(t, err)

	ids := rowset.NewIDDict()
	numbers, err := ids.Number(nil, []byte("x"), []byte("a"), []byte("b"), []byte("a"), []byte("7"))
	require.NoError(t, err)
	sku, tags := rowset.NewStringBuilder(2, 5), rowset.NewSetBuilder(3, 5)
	for _, text := range []string{"x", "b", "b", "a", "7"} {
		sku.Append([]byte(text))
		tags.Add([]byte("a"))
		tags.Append()
	}
	rows := rowset.Dense(rowset.NewBatch(numbers, sku.Column(), tags.Column()))
	var params, others Params
	for _, p := range []*Params{&params, &others} {
		p.SetString(1, "b")
		p.SetStringList(2, []string{"7", "nobody", "x"})
	}
	params.SetIDs(ids)

	const id, text, wanted, several, skus, set = `{"op":"key_ref","key_id":1}`, `{"op":"const_string","value":"a"}`, `{"op":"param_ref","param_id":1}`,
		`{"op":"param_ref","param_id":2}`, `{"op":"key_ref","key_id":2}`, `{"op":"key_ref","key_id":3}`
	for _, c := range []struct {
		pred string
		want []int // positions; nil: the tree is refused
		read bool  // it also reads the id as a number
	}{
		{`{"op":"cmp","cmp":"==","a":` + id + `,"b":` + text + `}`, []int{1, 3}, false},
		{`{"op":"cmp","cmp":"!=","a":` + text + `,"b":` + id + `}`, []int{0, 2, 4}, false},
		{`{"op":"cmp","cmp":"==","a":` + id + `,"b":` + wanted + `}`, []int{2}, false},
		{`{"op":"cmp","cmp":"==","a":` + skus + `,"b":` + id + `}`, []int{0, 2, 3, 4}, false},
		{`{"op":"in","lhs":` + id + `,"list":["b","7","nobody"]}`, []int{2, 4}, false},
		{`{"op":"not","x":{"op":"in","lhs":` + id + `,"list":["b","7","nobody"]}}`, []int{0, 1, 3}, false},
		{`{"op":"member","x":` + id + `,"set":` + several + `}`, []int{0, 4}, false},
		{`{"op":"member","x":` + id + `,"set":` + set + `}`, []int{1, 3}, false},
		{`{"op":"or","a":{"op":"cmp","cmp":"==","a":` + id + `,"b":` + text + `},"b":{"op":"cmp","cmp":"==","a":` + id + `,"b":{"op":"const_number","value":4}}}`, []int{1, 3}, true},
		{`{"op":"cmp","cmp":"<","a":` + id + `,"b":` + text + `}`, nil, false},
		{`{"op":"in","lhs":` + id + `,"list":["b",7]}`, nil, false},
		{`{"op":"starts_with","x":` + id + `,"part":` + text + `}`, nil, false},
	} {
		v, err := new(jsondoc.Parser).Parse([]byte(c.pred))
		require.NoError(t, err)
		_, err = Language{Typed: true, Registry: integers}.ParsePred(&v)
		require.Error(t, err, c.pred)
		pred, err := Language{Typed: true, Registry: texts}.ParsePred(&v)
		if c.want == nil {
			require.Error(t, err, c.pred)
			continue
		}
		require.NoError(t, err, c.pred)
		assert.True(t, pred.TextIDs())
		assert.Equal(t, c.read, slices.Contains(pred.Keys(), registry.IDKey), c.pred)
		hits, count, err := pred.Matches(nil, rows, &params)
		require.NoError(t, err)
		assert.Equal(t, len(c.want), count)
		for pos := range rows.Len() {
			assert.Equal(t, slices.Contains(c.want, pos), hits.Get(pos), "%s of row %d", c.pred, pos)
			term := pred.Explain(rows, pos, &params)
			assert.Equal(t, slices.Contains(c.want, pos), term.Value)
		}
		if !c.read {
			_, none, err := pred.Matches(nil, rows, &others)
			require.NoError(t, err)
			if v.Get("op").Str != "not" {
				assert.Zero(t, none, "without texts the id is null")
			}
		}
	}
}
