package task

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

func TestParseID(t *testing.T) {
	tests := []struct {
		entry string
		id    int64
		ok    bool
	}{
		{"12x", 12, true}, {"-5", -5, true}, {"-007", -7, true}, {"007", 7, true}, {"0009abc", 9, true},
		{"3.9", 3, true}, {"-1.5", -1, true}, {"1e5", 1, true}, {"0x1F", 0, true}, {"8 ", 8, true}, {"22\n", 22, true},
		{"15,16", 15, true}, {"44-45", 44, true}, {"5é", 5, true}, {"-0", 0, true}, {"00", 0, true},
		{"9223372036854775807", 1<<63 - 1, true}, {"-9223372036854775808", -1 << 63, true},
		{"000000000000000000000000012", 12, true},
		{"abc", 0, false}, {"x12", 0, false}, {"#3", 0, false}, {"NaN", 0, false}, {"-abc", 0, false}, {"", 0, false},
		{" 7", 0, false}, {"\t12", 0, false}, {"- 5", 0, false}, {"+7", 0, false}, {"+", 0, false}, {"-", 0, false},
		{"--5", 0, false}, {".5", 0, false}, {"１２", 0, false},
		{"9223372036854775808", 0, false}, {"9223372036854775808abc", 0, false}, {"-9223372036854775809", 0, false},
		{"18446744073709551616", 0, false}, {"18446744073709551617", 0, false}, {"99999999999999999999999", 0, false},
	}
	for _, tt := range tests {
		id, ok := ParseID([]byte(tt.entry))
		assert.Equal(t, tt.ok, ok, "%q", tt.entry)
		assert.Equal(t, tt.id, id, "%q", tt.entry)
	}
}

func TestCatalogRefusesFaultySpecs(t *testing.T) {
	body := func(*Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, nil }
	_, err := NewCatalog(
		Spec{Op: "noNamespace", Run: body, Output: Source},
		Spec{Op: "w::a b", Run: body, Output: Source},
		Spec{Op: "a::fed", Run: body, Output: Source, Inputs: 1},
		Spec{Op: "a::noBody", Output: Source},
		Spec{Op: "a::inputs", Run: body, Output: Subset, Inputs: 2, InputsMax: 1},
		Spec{Op: "a::many", Run: body, Output: Append, InputsMax: InputsLimit + 1},
		Spec{Op: "a::with", Run: body, Output: Append, Inputs: 1, InputsMax: 2, Params: []plan.ParamSchema{{Name: "with", Type: plan.Int}}},
		Spec{Op: "a::params", Run: body, Output: Source, Params: []plan.ParamSchema{
			{Name: "enum", Type: plan.Enum}, {Name: "items", Type: plan.Int, MaxItems: 3}, {Name: "untyped"},
			{Name: "empty", Type: plan.Object}, {Name: "outer", Type: plan.Object, Fields: []plan.ParamSchema{
				{Name: "inner", Type: plan.Object, Fields: []plan.ParamSchema{{Name: "n", Type: plan.Int}}}}},
			{Name: "long", Type: plan.Int, List: true, MaxItems: plan.MaxItemsLimit + 1}, {Name: "keys", Type: plan.Int, IsKey: true, List: true},
		}},
		Spec{Op: "a::shape", Run: body},
		Spec{Op: "a::io", Run: body, Output: Source, Place: Waits, Cost: func(*plan.Node) int64 { return 0 }},
		Spec{Op: "a::place", Run: body, Output: Source, Place: OnLoop + 1},
		Spec{Op: "a::twice", Run: body, Output: Source},
		Spec{Op: "b::twice", Run: body, Output: Source},
	)
	require.Error(t, err)
	for _, want := range []string{"noNamespace", `"w::a b": an op is named`, "a::fed: a task whose Output is Source has no inputs", "a::noBody: Run", "a::inputs: Inputs", "a::shape: Output", "a::io: Cost", "a::place: Place", `"twice" is taken`,
		"a::many: Inputs", "a::with: parameter with", "parameter enum: an Enum", "parameter items: MinItems", "parameter untyped: Type",
		"parameter empty: an Object has", "parameter outer.inner: an Object holds", "parameter long: MinItems", "parameter keys: a List of keys"} {
		assert.Contains(t, err.Error(), want)
	}
}

// A catalog checks all tasks except those that it is told to trust, whatever the spec says.
func TestCatalogTrusts(t *testing.T) {
	breaks := func(op string) Spec {
		return Spec{Op: op, Output: Source, Run: func(*Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, nil }}
	}
	trusting, err := engine{}.NewTrustingCatalog([]Spec{breaks("a::trusted")}, breaks("a::own"))
	require.NoError(t, err)
	checking, err := NewCatalog(breaks("a::own"), *trusting.Specs()[1])
	require.NoError(t, err)
	for _, c := range []struct {
		catalog *Catalog
		op      string
		checked bool
	}{{trusting, "a::trusted", false}, {trusting, "a::own", true}, {checking, "a::own", true}, {checking, "a::trusted", true}} {
		schema, ok := c.catalog.OpSchema(c.op)
		require.True(t, ok)
		_, err := engine{}.Invoke(schema.Impl.(*Spec), new(Ctx))
		if c.checked {
			assert.ErrorIs(t, err, ErrContract, c.op)
		} else {
			assert.NoError(t, err, c.op)
		}
	}
}

func batchOf(ids ...int64) *rowset.Batch { return &rowset.Batch{IDs: ids} }

func view(b *rowset.Batch, rows ...int32) rowset.RowSet {
	return rowset.RowSet{Batch: b, Rows: rows, N: len(rows)}
}

func withColumn(b *rowset.Batch, key registry.KeyID) *rowset.Batch {
	return rowset.With(b, &rowset.FloatColumn{Key: key, Values: make([]float64, b.Len())})
}

// typed returns a batch of n rows with an int, a bool and a set column.
func typed(n int) *rowset.Batch {
	ints, bools, sets := rowset.NewIntBuilder(5001, n), rowset.NewBoolBuilder(5101, n), rowset.NewSetBuilder(5201, n)
	for i := range n {
		ints.Append(int64(i))
		bools.Append(true)
		sets.Append()
	}
	return rowset.NewBatch(make([]int64, n),
		ints.Column(),
		bools.Column(),
		sets.Column(),
	)
}

func TestInvokeChecksTheOutput(t *testing.T) {
	b := batchOf(10, 20, 30, 40)
	in := view(b, 3, 1, 0)
	dense := rowset.Dense(b)
	other := batchOf(10, 20, 30, 40)
	// The table has an input with columns, and what may become of them.
	full := rowset.NewBatch(b.IDs,
		&rowset.StringColumn{Key: 3001, Places: []int32{0, 1, 0, -1}, Dict: &rowset.Dict{Values: []string{"US", "CA"}}},
		&rowset.FloatColumn{Key: 1001, Values: make([]float64, 4), Valid: rowset.NewBitmap(4)},
		&rowset.FloatColumn{Key: 2001, Values: make([]float64, 4)},
	)
	columns := func(edit func(b *rowset.Batch)) rowset.RowSet {
		first, second, country := *full.Float(1001), *full.Float(2001), *full.String(3001)
		c := rowset.NewBatch(full.IDs, &first, &second, &country)
		edit(c)
		return rowset.Dense(c)
	}
	fullIn, inherited := rowset.Dense(full), typed(4)
	strings := rowset.NewBatch([]int64{1}, &rowset.StringColumn{Key: 1001, Places: []int32{-1}, Dict: &rowset.Dict{}})
	reg, err := registry.Default("test")
	require.NoError(t, err)
	writes := Columns(2001, 3002, 5001, 5101, 5201)
	tests := []struct {
		name   string
		output Output
		in     rowset.RowSet
		out    rowset.RowSet
		ok     bool
	}{
		{"no batch", PassThrough, in, rowset.RowSet{}, false},
		{"row out of range", Subset, in, view(b, 4), false},
		{"negative row", Subset, in, view(b, -1), false},
		{"pass through", PassThrough, in, in, true},
		{"pass through copies the list", PassThrough, in, view(b, 3, 1, 0), true},
		{"pass through drops a row", PassThrough, in, view(b, 3, 1), false},
		{"pass through of another batch", PassThrough, in, view(other, 3, 1, 0), false},
		{"prefix", Prefix, in, rowset.Take(in, 2), true},
		{"prefix of dense", Prefix, dense, rowset.Take(dense, 2), true},
		{"prefix written out", Prefix, dense, view(b, 0, 1), true},
		{"prefix of none", Prefix, in, view(b), true},
		{"prefix that starts later", Prefix, in, view(b, 1, 0), false},
		{"prefix that is longer", Prefix, in, view(b, 3, 1, 0, 2), false},
		{"subset", Subset, in, view(b, 3, 0), true},
		{"subset of none", Subset, in, view(b), true},
		{"subset of dense", Subset, dense, view(b, 1, 3), true},
		{"subset in another order", Subset, in, view(b, 0, 3), false},
		{"subset with a dropped row", Subset, in, view(b, 3, 2), false},
		{"subset with a row twice", Subset, in, view(b, 3, 3), false},
		{"permutation", Permutation, in, view(b, 0, 1, 3), true},
		{"permutation of dense", Permutation, dense, view(b, 2, 3, 0, 1), true},
		{"permutation with a row twice", Permutation, in, view(b, 0, 0, 3), false},
		{"permutation that loses a row", Permutation, in, view(b, 0, 3), false},
		{"permutation with a dropped row", Permutation, in, view(b, 0, 1, 2), false},
		{"same rows, new column", SameRows, in, view(withColumn(b, 2001), 3, 1, 0), true},
		{"same rows, undeclared column", SameRows, in, view(withColumn(b, 1001), 3, 1, 0), false},
		{"same rows, inherited columns", SameRows, fullIn, columns(func(*rowset.Batch) {}), true},
		{"same rows, replaced column", SameRows, fullIn, rowset.Dense(withColumn(full, 2001)), true},
		{"same rows, replaced column that is not declared", SameRows, fullIn, rowset.Dense(withColumn(full, 1001)), false},
		{"same rows, other nulls", SameRows, fullIn,
			columns(func(b *rowset.Batch) { b.Float(1001).Valid = rowset.NewBitmap(4) }), false},
		{"same rows, nulls lost", SameRows, fullIn, columns(func(b *rowset.Batch) { b.Float(1001).Valid = nil }), false},
		{"same rows, other codes", SameRows, fullIn,
			columns(func(b *rowset.Batch) { b.String(3001).Places = []int32{0, 1, 0, -1} }), false},
		{"same rows, other dictionary", SameRows, fullIn,
			columns(func(b *rowset.Batch) { b.String(3001).Dict = &rowset.Dict{Values: []string{"US", "CA"}} }), false},
		{"same rows, column of another kind", SameRows, rowset.Dense(withColumn(b, 1001)),
			rowset.Dense(rowset.NewBatch(b.IDs, &rowset.StringColumn{Key: 1001, Places: make([]int32, 4), Dict: &rowset.Dict{Values: []string{"a"}}})), false},
		{"same rows, column for the id", SameRows, dense, rowset.Dense(withColumn(b, registry.IDKey)), false},
		{"same rows, other ids", SameRows, in, view(other, 3, 1, 0), false},
		{"same rows, other order", SameRows, in, view(b, 1, 3, 0), false},
		{"expand", Expand, in, rowset.Dense(batchOf(7, 8)), true},
		{"expand, declared column", Expand, in, rowset.Dense(withColumn(batchOf(7), 2001)), true},
		{"expand, undeclared column", Expand, in, rowset.Dense(withColumn(batchOf(7), 1001)), false},
		{"expand, not dense", Expand, in, view(batchOf(7, 8), 1), false},
		{"append", Append, in, rowset.Dense(batchOf(40, 20, 10)), true},
		{"pick", Pick, in, view(b, 0, 3), true},
		{"pick of none", Pick, in, view(b), true},
		{"pick with a new column", Pick, in, view(withColumn(b, 2001), 1, 3), true},
		{"pick, undeclared column", Pick, in, view(withColumn(b, 1001), 1, 3), false},
		{"pick with a row twice", Pick, in, view(b, 0, 0), false},
		{"pick of an inactive row", Pick, in, view(b, 2), false},
		{"pick of another batch", Pick, in, view(other, 1, 3), false},
		{"merge", Merge, in, rowset.Dense(batchOf(10, 40)), true},
		{"merge, not dense", Merge, in, view(batchOf(10, 40, 20, 77), 2, 0), true},
		{"merge, a row twice", Merge, in, view(batchOf(10, 40), 1, 1), false},
		{"merge of an id that no input has", Merge, in, rowset.Dense(batchOf(10, 30)), false},
		{"merge of an id more often than inputs", Merge, in, rowset.Dense(batchOf(10, 10)), false},
		{"merge, declared column", Merge, in, rowset.Dense(withColumn(batchOf(10), 2001)), true},
		{"merge, undeclared column", Merge, in, rowset.Dense(withColumn(batchOf(10), 1001)), false},
		{"expand, column too short", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1, 2}, &rowset.FloatColumn{Key: 2001, Values: []float64{1}})), false},
		{"expand, code out of range", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1, 2}, &rowset.StringColumn{Key: 3002, Places: []int32{0, 1}, Dict: &rowset.Dict{Values: []string{"a"}}})), false},
		{"expand, nulls and codes", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1, 2}, &rowset.StringColumn{Key: 3002, Places: []int32{0, -1}, Dict: &rowset.Dict{Values: []string{"a"}}})), true},
		{"expand, code below null", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1}, &rowset.StringColumn{Key: 3002, Places: []int32{-2}, Dict: &rowset.Dict{Values: []string{"a"}}})), false},
		{"expand, strings for a float key", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1}, &rowset.StringColumn{Key: 2001, Places: []int32{0}, Dict: &rowset.Dict{Values: []string{"a"}}})), false},
		{"expand, ints for a float key", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1}, &rowset.IntColumn{Key: 2001, Values: []int64{1}})), false},
		{"expand, ints, bools and sets", Expand, in, rowset.Dense(typed(1)), true},
		{"expand, undeclared ints", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1}, &rowset.IntColumn{Key: 5002, Values: []int64{1}})), false},
		{"expand, too few ints", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1, 2}, typed(1).Columns()...)), false},
		{"expand, bools without values", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1}, &rowset.BoolColumn{Key: 5101})), false},
		{"expand, set out of range", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1}, &rowset.SetColumn{Key: 5201, Codes: []int32{1}, Dict: typed(1).Set(5201).Dict})), false},
		{"same rows, inherited ints, bools and sets", SameRows, rowset.Dense(typed(4)), rowset.Dense(withColumn(typed(4), 2001)), false}, // other ids,
		{"same rows, the very ints, bools and sets", SameRows, rowset.Dense(inherited), rowset.Dense(withColumn(inherited, 2001)), true},
		{"merge, an inherited column of another type than its key", Merge, rowset.Dense(strings), rowset.Dense(strings), false},
		{"one key of two types", Expand, in, rowset.Dense(rowset.NewBatch([]int64{1},
			&rowset.IntColumn{Key: 5001, Values: []int64{1}},
			&rowset.FloatColumn{Key: 5001, Values: []float64{1}},
		)), false},
		{"fewer rows than listed", Subset, in, rowset.RowSet{Batch: b, Rows: []int32{3, 1}, N: 1}, false},
		{"more rows than the batch has", Subset, dense, rowset.RowSet{Batch: b, N: 5}, false},
		{"append that loses a row", Append, in, rowset.Dense(batchOf(40, 20)), false},
		{"append in another order", Append, in, rowset.Dense(batchOf(20, 40, 10)), false},
		{"append of another row", Append, in, rowset.Dense(batchOf(40, 20, 30)), false},
		{"append, column for the id", Append, in, rowset.Dense(withColumn(batchOf(40, 20, 10), registry.IDKey)), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := func(*Ctx) (rowset.RowSet, error) { return tt.out, nil }
			spec := &Spec{Op: "test::it", Inputs: 1, Output: tt.output, Writes: writes, Run: body}
			out, err := engine{}.Invoke(spec, &Ctx{Inputs: []rowset.RowSet{tt.in}, Registry: reg})
			if tt.ok {
				require.NoError(t, err)
				assert.Equal(t, tt.out, out)
				return
			}
			require.ErrorIs(t, err, ErrContract)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// With a limit, a result may be the first rows of a permutation.
func TestInvokeChecksALimitedOutput(t *testing.T) {
	in := rowset.Dense(batchOf(40, 30, 20, 10))
	for _, tt := range []struct {
		limit int
		rows  []int32
		ok    bool
	}{
		{2, []int32{3, 1}, true},
		{4, []int32{3, 1, 0, 2}, true},
		{5, []int32{3, 1, 0, 2}, true},
		{2, []int32{3}, false},
		{2, []int32{3, 1, 0}, false},
		{2, []int32{3, 3}, false},
		{0, []int32{3, 1}, false},
	} {
		body := func(*Ctx) (rowset.RowSet, error) { return view(in.Batch, tt.rows...), nil }
		_, err := engine{}.Invoke(&Spec{Inputs: 1, Output: Permutation, Limited: true, Run: body},
			&Ctx{Inputs: []rowset.RowSet{in}, Limit: tt.limit})
		if tt.ok {
			assert.NoError(t, err, "%v", tt)
		} else {
			assert.ErrorIs(t, err, ErrContract, "%v", tt)
		}
	}
}

// The rows of the second side count, too, and come after the first.
func TestInvokeChecksAppendedRefs(t *testing.T) {
	in, ref := view(batchOf(1, 2, 3), 2, 0), rowset.Dense(batchOf(7, 8))
	for _, tt := range []struct {
		ids []int64
		ok  bool
	}{
		{[]int64{3, 1, 7, 8}, true},
		{[]int64{7, 8, 3, 1}, false},
		{[]int64{3, 1, 8, 7}, false},
		{[]int64{3, 1, 7, 9}, false},
		{[]int64{3, 1, 7}, false},
		{[]int64{3, 1, 7, 8, 8}, false},
	} {
		body := func(*Ctx) (rowset.RowSet, error) { return rowset.Dense(batchOf(tt.ids...)), nil }
		_, err := engine{}.Invoke(&Spec{Inputs: 1, Output: Append, Run: body},
			&Ctx{Inputs: []rowset.RowSet{in}, Refs: []rowset.RowSet{ref}})
		if tt.ok {
			assert.NoError(t, err)
		} else {
			assert.ErrorIs(t, err, ErrContract, "%v", tt.ids)
		}
	}
}

func TestInvokeChecksTheNumberOfInputs(t *testing.T) {
	called := false
	body := func(c *Ctx) (rowset.RowSet, error) { called = true; return c.Inputs[0], nil }
	spec := &Spec{Op: "test::it", Inputs: 1, Output: PassThrough, Run: body}
	in := rowset.Dense(batchOf(1))
	for _, inputs := range [][]rowset.RowSet{nil, {in, in}} {
		_, err := engine{}.Invoke(spec, &Ctx{Inputs: inputs})
		require.ErrorIs(t, err, ErrInvalid)
	}
	assert.False(t, called)

	spec = &Spec{Op: "test::many", Inputs: 1, InputsMax: 2, Output: Append,
		Run: func(*Ctx) (rowset.RowSet, error) { return rowset.Dense(batchOf(1, 1)), nil }}
	_, err := engine{}.Invoke(spec, &Ctx{Inputs: []rowset.RowSet{in, in}})
	require.NoError(t, err)
	_, err = engine{}.Invoke(spec, &Ctx{Inputs: []rowset.RowSet{in, in, in}})
	assert.EqualError(t, err, "takes 1 to 2 inputs, has 3")
}

func TestInvokeContainsAPanic(t *testing.T) {
	body := func(*Ctx) (rowset.RowSet, error) { panic("boom") }
	_, err := engine{}.Invoke(&Spec{Output: Source, Run: body}, &Ctx{})
	require.ErrorIs(t, err, ErrPanic)
	var p *PanicError
	require.ErrorAs(t, err, &p)
	assert.Equal(t, "boom", p.Value)
	assert.Contains(t, string(p.Stack), "task_test.go")
	assert.NotContains(t, err.Error(), "\n")
}
