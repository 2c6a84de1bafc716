package expr

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

func parseJSON(t testing.TB, text string) *jsondoc.Value {
	t.Helper()
	v, err := jsondoc.Parse([]byte(text))
	require.NoError(t, err, "%s", text)
	return &v
}

// testRegistry has the keys of rowsettest and parameters of each type.
var testRegistry = func() *registry.Registry {
	tables := registrytest.Tables{Keys: registrytest.ID + registrytest.Key(4001, "k4001", "feature_bundle", registrytest.Nullable)}
	for kind, ids := range map[string][]registry.KeyID{
		"float": rowsettest.FloatKeys[:], "string": rowsettest.StringKeys[:], "int": rowsettest.IntKeys[:],
		"bool": rowsettest.BoolKeys[:], "string_set": rowsettest.SetKeys[:],
		fmt.Sprintf("vector(%d)", rowsettest.VectorDims): rowsettest.VectorKeys[:],
	} {
		for _, id := range ids {
			tables.Keys += registrytest.Key(id, fmt.Sprintf("k%d", id), kind, registrytest.Nullable)
		}
	}
	for i, kind := range []string{"float", "string", "float", "float", "int", "bool", "int_list", "string_list", fmt.Sprintf("vector(%d)", rowsettest.VectorDims)} {
		tables.Params += registrytest.Param(i+1, fmt.Sprintf("p%d", i+1), kind, registrytest.Nullable)
	}
	return tables.Load()
}()

var typedLanguage = Language{Typed: true, Registry: testRegistry}

// language returns the language of a generator's trees.
func (g treeGen) language() Language {
	if g.typed {
		return typedLanguage
	}
	return Language{}
}

func mustExpr(t testing.TB, text string) *Expr { return mustExprOf(t, Language{}, text) }
func mustPred(t testing.TB, text string) *Pred { return mustPredOf(t, Language{}, text) }

func mustExprOf(t testing.TB, l Language, text string) *Expr {
	t.Helper()
	return mustParse(t, l.ParseExpr, text)
}

func mustPredOf(t testing.TB, l Language, text string) *Pred {
	t.Helper()
	return mustParse(t, l.ParsePred, text)
}

func mustParse[T any](t testing.TB, parse func(*jsondoc.Value) (T, error), text string) T {
	t.Helper()
	parsed, err := parse(parseJSON(t, text))
	require.NoError(t, err, "%s", text)
	return parsed
}

// checkExpr compares e with the reference on one row set.
func checkExpr(t *testing.T, e *Expr, tree *jsondoc.Value, in rowset.RowSet, params *Params) {
	t.Helper()
	checkColumns(t, e, tree, in, params)
	if !e.Type().isNumber() {
		return
	}
	want := Column{Values: make([]float64, in.Batch.Len()), Valid: rowset.NewBitmap(in.Batch.Len())}
	ref := reference{in.Batch, params, e.registry != nil}
	for i := range in.N {
		row := int(in.Row(i))
		v, ok := ref.expr(tree, row)
		if !ok {
			want.Null = true
			continue
		}
		want.Values[row] = v
		want.Valid.Set(row)
		want.NonFinite = want.NonFinite || math.IsInf(v, 0) || math.IsNaN(v)
	}

	got, err := e.Column(nil, usedMemory(), in, params)
	require.NoError(t, err)
	require.Len(t, got.Values, in.Batch.Len())
	if got.Valid != nil {
		require.Len(t, got.Valid, len(want.Valid))
	}
	for row := range want.Values { // a require for each row would take most of the time
		if want.Valid.Get(row) != got.Valid.Get(row) || !sameFloat(want.Values[row], got.Values[row]) {
			require.Fail(t, "wrong value", "row %d: want %v (valid %v), got %v", row, want.Values[row], want.Valid.Get(row), got.Values[row])
		}
	}
	assert.Equal(t, want.Valid.All(in.Batch.Len()), got.Valid == nil, "valid is nil exactly if all is valid")
	assert.Equal(t, want.Null, got.Null, "some row null")
	assert.Equal(t, want.NonFinite, got.NonFinite, "some row not finite")

	byPosition, err := e.Values(nil, usedMemory(), in, params)
	require.NoError(t, err)
	require.Len(t, byPosition.Values, in.N)
	assert.Equal(t, want.Null, byPosition.Valid != nil, "valid is nil exactly if no row is null")
	assert.Equal(t, want.NonFinite, byPosition.NonFinite)
	for pos := range in.N {
		row := int(in.Row(pos))
		if want.Valid.Get(row) != byPosition.Valid.Get(pos) || !sameFloat(want.Values[row], byPosition.Values[pos]) {
			require.Fail(t, "wrong value by position", "position %d", pos)
		}
	}
}

// checkColumns compares e with the reference as a column of each type of key, and compares its
// explanation.
func checkColumns(t *testing.T, e *Expr, tree *jsondoc.Value, in rowset.RowSet, params *Params) {
	t.Helper()
	ref := reference{in.Batch, params, e.registry != nil}
	for pos := 0; pos < in.N; pos += 1 + in.N/4 {
		checkTerm(t, ref, e.Explain(in, pos, params), tree, int(in.Row(pos)), 50)
	}
	for _, typ := range []registry.Type{registry.Int, registry.String, registry.Bool} {
		if !e.Fits(typ) {
			continue
		}
		got, err := e.ColumnOf(nil, usedMemory(), in, params, &registry.Key{ID: 9, Type: typ})
		require.NoError(t, err)
		require.Equal(t, registry.KeyID(9), got.KeyID())
		null, fits := false, true
		active := rowset.NewBitmap(in.Batch.Len())
		for i := range in.N {
			row := int(in.Row(i))
			active.Set(row)
			var want, have any
			ok, has := true, true
			switch column := got.Column.(type) {
			case *rowset.StringColumn:
				want, ok = ref.text(tree, row)
				have, has = column.Value(row)
			case *rowset.BoolColumn:
				want, err = ref.pred(tree, row, "")
				require.NoError(t, err)
				have, has = column.Value(row)
			case *rowset.IntColumn:
				var x float64
				if x, ok = ref.expr(tree, row); e.Type() == Int {
					var whole int64
					whole, ok = ref.value(tree, row).(int64)
					want = whole
				} else if want = int64(x); ok && (x != math.Trunc(x) || math.Abs(x) > 1<<53) {
					fits = false
					continue
				}
				have, has = column.Value(row)
			}
			if null = null || !ok; ok != has || ok && want != have {
				require.Fail(t, "wrong value", "row %d: want %v (valid %v), got %v (valid %v)", row, want, ok, have, has)
			}
		}
		assert.Equal(t, null, got.Null, "some row null")
		assert.Equal(t, fits, !got.NotWhole && !got.NonFinite, "some row not whole")
		for row := range in.Batch.Len() {
			if active.Get(row) {
				continue
			}
			switch column := got.Column.(type) {
			case *rowset.StringColumn:
				assert.Equal(t, rowset.NullCode, column.Places[row])
			case *rowset.BoolColumn:
				assert.False(t, column.Valid.Get(row))
			case *rowset.IntColumn:
				assert.False(t, column.Valid.Get(row))
			}
		}
	}
}

// checkTerm checks an explanation against the reference: what it says of each part of a tree,
// and which parts it skips.
func checkTerm(t *testing.T, ref reference, term Term, tree *jsondoc.Value, row, levels int) {
	t.Helper()
	if levels == 0 { // the reference evaluates the parts of each part again
		return
	}
	require.Empty(t, term.Fault)
	op := operatorNamed(tree.Get("op").Str)
	require.Equal(t, op.Name, term.Op)
	switch {
	case ref.typed && ref.typeOf(tree) == String:
		var want any
		if s, ok := ref.text(tree, row); ok {
			want = s
		}
		require.Equal(t, want, term.Value, "%s of row %d", term.Op, row)
	case op.Makes == Predicate:
		want, err := ref.pred(tree, row, "")
		require.NoError(t, err)
		require.Equal(t, want, term.Value, "%s of row %d", term.Op, row)
	case op.Makes == Number || op.Makes == Null:
		switch term.Value.(type) {
		case string, []string, []int64: // the reference has only numbers
		default:
			want, ok := ref.expr(tree, row)
			value, isNumber := asNumber(term.Value)
			require.Equal(t, ok, isNumber, "%s of row %d", term.Op, row)
			require.True(t, !ok || sameFloat(want, value), "%s of row %d: want %v, got %v", term.Op, row, want, value)
		}
	}
	operands := []*jsondoc.Value{}
	for _, o := range op.Operands {
		operands = append(operands, tree.Get(o.Member))
	}
	switch truth := len(term.Terms) > 0 && term.Terms[0].Value == true; {
	case op.code == opRegex, op.code == opIn && !ref.typed:
		return // they may read a key as a string, and the reference takes it for a number
	case op.code == opIf && truth, op.code == opAnd && !truth, op.code == opOr && truth, op.code == opCoalesce && term.Terms[0].Value != nil:
		operands = slices.Delete(operands, len(operands)-1, len(operands))
	case op.code == opIf:
		operands = slices.Delete(operands, 1, 2)
	}
	require.Len(t, term.Terms, len(operands), "%s evaluates these operands", term.Op)
	for i, operand := range operands {
		checkTerm(t, ref, term.Terms[i], operand, row, levels-1)
	}
}

// checkPred compares p with the reference on one row set.
func checkPred(t *testing.T, p *Pred, tree *jsondoc.Value, in rowset.RowSet, params *Params) {
	t.Helper()
	ref := reference{in.Batch, params, p.registry != nil}
	want, wantErr := ref.filter(tree, in)
	got, err := p.Filter(nil, usedMemory(), in, params)
	if wantErr != nil {
		require.Error(t, err)
		assert.Equal(t, wantErr.Error(), err.Error())
		for _, sentinel := range []error{ErrListOperand, ErrNullPattern, ErrBadPattern} {
			assert.Equal(t, errors.Is(wantErr, sentinel), errors.Is(err, sentinel), "%v", sentinel)
		}
		return
	}
	require.NoError(t, err)
	require.NoError(t, got.Validate())
	assert.Same(t, in.Batch, got.Batch)
	rows := []int32{}
	for i := range got.N {
		rows = append(rows, got.Row(i))
	}
	require.Equal(t, want, rows)

	bits, count, err := p.Matches(nil, in, params)
	require.NoError(t, err)
	assert.Equal(t, len(want), count)
	matched := []int32{}
	for pos := range in.N {
		if bits.Get(pos) {
			matched = append(matched, in.Row(pos))
		}
	}
	require.Equal(t, want, matched)
	for pos := 0; pos < in.N; pos += 1 + in.N/4 {
		term := p.Explain(in, pos, params)
		checkTerm(t, ref, term, tree, int(in.Row(pos)), 50)
		if term.Value == false {
			require.Equal(t, false, term.Culprit().Value)
		}
	}
}

// forSeeds runs check with many seeds and names the seed that fails.
func forSeeds(t *testing.T, rounds int, check func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	if testing.Short() || raceDetector {
		rounds /= 4
	}
	for seed := range uint64(rounds) {
		if !t.Run("seed="+strconv.FormatUint(seed, 10), func(t *testing.T) {
			check(t, rand.New(rand.NewPCG(seed, 2)))
		}) {
			return
		}
	}
}

func TestExprAgreesWithReference(t *testing.T) {
	forSeeds(t, 1500, func(t *testing.T, rng *rand.Rand) {
		g := treeGen{rng, rng.IntN(2) == 0}
		text := g.expr(1 + rng.IntN(7))
		switch {
		case g.typed && rng.IntN(6) == 0:
			text = g.computedText()
		case g.typed && rng.IntN(6) == 0:
			text = g.cond(3)
		case g.typed && rng.IntN(6) == 0:
			text = g.intLeaf()
		}
		tree := parseJSON(t, text)
		e := mustExprOf(t, g.language(), text)
		for range 2 { // the second time with used scratch memory
			in := rowsettest.RowSet(rng, 2500)
			checkExpr(t, e, tree, in, g.params())
		}
		if t.Failed() {
			t.Log(text)
		}
	})
}

func TestManyRegisters(t *testing.T) {
	forSeeds(t, 600, func(t *testing.T, rng *rand.Rand) {
		g := treeGen{rng: rng}
		text := g.computed(2 + rng.IntN(40))
		e, tree := mustExpr(t, text), parseJSON(t, text)
		checkExpr(t, e, tree, allColumns(rng, 200), nil)
		if t.Failed() {
			t.Log(text)
		}
	})
}

// allColumns returns a random row set that has all float columns. So no part of an expression
// is null in all rows.
func allColumns(rng *rand.Rand, n int) rowset.RowSet {
	b := rowsettest.Batch(rng, n)
	for _, key := range rowsettest.FloatKeys {
		values, valid := make([]float64, n), rowset.NewBitmap(n)
		for i := range values {
			values[i] = rng.NormFloat64()
			if rng.IntN(10) > 0 {
				valid.Set(i)
			}
		}
		if rng.IntN(2) == 0 {
			valid = nil
		}
		b = rowset.With(b, &rowset.FloatColumn{Key: key, Values: values, Valid: valid})
	}
	return rowsettest.Rows(rng, b)
}

func TestPredAgreesWithReference(t *testing.T) {
	failed := 0
	forSeeds(t, 3000, func(t *testing.T, rng *rand.Rand) {
		g := treeGen{rng, rng.IntN(2) == 0}
		text := g.pred(1 + rng.IntN(6))
		tree := parseJSON(t, text)
		p := mustPredOf(t, g.language(), text)
		for range 2 {
			in, params := rowsettest.RowSet(rng, 2500), g.params()
			checkPred(t, p, tree, in, params)
			if _, err := p.Filter(nil, nil, in, params); err != nil {
				failed++
			}
		}
		if t.Failed() {
			t.Log(text)
		}
	})
	assert.Positive(t, failed, "some of the random predicates fail at run time")
}

// FuzzPred feeds documents to the parsers of both languages. It feeds the documents that they
// accept to the kernels and the reference.
func FuzzPred(f *testing.F) {
	for seed := range uint64(60) {
		g := treeGen{rand.New(rand.NewPCG(seed, 3)), seed%2 == 0}
		f.Add([]byte(g.pred(4)), seed)
		f.Add([]byte(g.expr(4)), seed)
	}
	f.Fuzz(func(t *testing.T, doc []byte, seed uint64) {
		tree, err := jsondoc.Parse(doc)
		if err != nil || len(doc) > 10_000 {
			return
		}
		for _, typed := range []bool{false, true} {
			g := treeGen{rand.New(rand.NewPCG(seed, 4)), typed}
			in, params := rowsettest.RowSet(g.rng, 130), g.params()
			if e, err := g.language().ParseExpr(&tree); err == nil {
				checkExpr(t, e, &tree, in, params)
			} else {
				assert.ErrorAs(t, err, new(*ParseError))
				assert.NotContains(t, err.Error(), "\n")
			}
			if p, err := g.language().ParsePred(&tree); err == nil {
				checkPred(t, p, &tree, in, params)
			} else {
				assert.ErrorAs(t, err, new(*ParseError))
			}
		}
	})
}

// asNumber returns an explained value as arithmetic sees it.
func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case bool:
		return float64(bit(v)), true
	}
	return 0, false
}
