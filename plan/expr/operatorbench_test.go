package expr

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// operatorRows is benchRows(10,000) with a column of each other type, and with a second string column.
func operatorRows() (rowset.RowSet, *Params) {
	const n = 10_000
	rng := rand.New(rand.NewPCG(3, 3))
	rows := benchRows(n)
	ints := [2]*rowset.IntBuilder{rowset.NewIntBuilder(5001, n), rowset.NewIntBuilder(5002, n)}
	bools, sets := rowset.NewBoolBuilder(5101, n), rowset.NewSetBuilder(5201, n)
	second := rowset.NewStringBuilder(3002, n)
	for range n {
		for i := range ints {
			ints[i].Append(rng.Int64N(1000))
		}
		bools.Append(rng.IntN(2) == 0)
		second.Append(fmt.Appendf(nil, "C%d", rng.IntN(200)))
		for range rng.IntN(4) {
			sets.Add(fmt.Appendf(nil, "C%d", rng.IntN(200)))
		}
		sets.Append()
	}
	rows.Batch = rowset.With(rows.Batch,
		ints[0].Column(),
		ints[1].Column(),
		bools.Column(),
		sets.Column(),
		second.Column(),
		benchVectors(5251, n),
		benchVectors(5252, n),
	)
	params := new(Params)
	params.SetNow(1e9)
	params.SetInt(5, 500)
	params.SetBool(6, true)
	params.SetString(2, "C7")
	params.SetIntList(7, []int64{1, 5, 500})
	params.SetStringList(8, []string{"C1", "C2"})
	return rows, params
}

// benchVectors returns a column of n random vectors.
func benchVectors(key registry.KeyID, n int) rowset.Column {
	rng := rand.New(rand.NewPCG(4, uint64(key)))
	c := &rowset.VectorColumn{Key: key, Dims: rowsettest.VectorDims, Values: make([]float32, n*rowsettest.VectorDims)}
	for i := range c.Values {
		c.Values[i] = float32(rng.NormFloat64())
	}
	return c
}

// operatorTrees returns trees of one operator. In one tree all operands are columns. An
// operator of several operands has another tree, with constants for all but the first. An
// operator that tests leaves has one tree for each type that it takes.
func operatorTrees(o *Operator) map[string]string {
	key := func(id string) string { return `{"op":"key_ref","key_id":` + id + `}` }
	members := ""
	if o.Cmp != "" {
		members = `,"cmp":"` + o.Cmp + `"`
	}
	tree := func(operands ...string) string {
		text := `{"op":"` + o.Name + `"` + members
		for i, operand := range o.Operands {
			text += `,"` + operand.Member + `":` + operands[i]
		}
		return text + "}"
	}
	floats, ints, texts := []string{score, key("2001"), key("1001"), score}, []string{key("5001"), key("5002")}, []string{text, key("3002")}
	truth := cmp(score, ">", num("0.5"))
	switch o.code {
	case opConst, opNull, opText, opTruth, opNow, opParam:
		return nil // the same for all rows
	case opKey:
		return map[string]string{"float": key("2001"), "int": key("5001"), "bool": key("5101")}
	case opIf:
		return map[string]string{"columns": tree(truth, floats[0], floats[1])}
	case opCmp:
		trees := map[string]string{"floats": tree(floats...), "ints": tree(ints...), "ints,constant": tree(ints[0], num("500"))}
		if o.Cmp == "==" || o.Cmp == "!=" {
			trees["strings"], trees["strings,constant"] = tree(texts...), tree(text, `{"op":"const_string","value":"C7"}`)
		}
		return trees
	case opIn:
		return map[string]string{"floats": in(score, "0.5,0.25"), "ints": in(ints[0], "1,5,500"), "strings": in(text, `"C1","C2"`)}
	case opMember:
		return map[string]string{
			"set,constant": tree(`{"op":"const_string","value":"C7"}`, key("5201")), "set,column": tree(text, key("5201")),
			"list of ints": tree(ints[0], `{"op":"param_ref","param_id":7}`), "list of strings": tree(text, `{"op":"param_ref","param_id":8}`),
		}
	case opRegex:
		return map[string]string{"strings": regex("7$", "")}
	case opTexts:
		return map[string]string{"columns": tree(texts...), "constant": tree(text, `{"op":"const_string","value":"C7"}`)}
	case opLower, opLength:
		return map[string]string{"strings": tree(text)}
	case opConcat:
		return map[string]string{"strings": tree(texts...), "string,float": tree(text, score)}
	case opTable:
		table := func(x, entries string) string {
			return `{"op":"table","x":` + x + `,"entries":` + entries + `,"default":1}`
		}
		return map[string]string{"ints": table(ints[0], `{"1":2,"500":3}`), "strings": table(text, `{"C1":2,"C7":3}`)}
	case opVectors:
		return map[string]string{"columns": tree(key("5251"), key("5252"))}
	case opClock:
		return map[string]string{"Berlin": tree(floats[0], `{"op":"const_string","value":"Europe/Berlin"}`)}
	case opHash:
		if len(o.Operands) == 1 {
			return map[string]string{"ids": tree(num("7"))}
		}
		return map[string]string{"ids": tree(key("1"), num("7")), "floats": tree(score, num("7")), "strings": tree(text, num("7"))}
	case opIsNull, opNotNull:
		return map[string]string{"floats": tree(floats[1]), "strings": tree(text)}
	case opAnd, opOr, opNot:
		return map[string]string{"floats": tree(truth, cmp(floats[1], "<", num("0.5")))}
	}
	trees := map[string]string{"columns": tree(floats...)}
	if len(o.Operands) > 1 {
		trees["constant"] = tree(floats[0], num("0.75"), num("0.9"), num("0.5"))
	}
	return trees
}

// BenchmarkOperators measures each operator of the table at 10,000 rows. It begins with mul,
// whose time per row is the baseline for the others. Columns come from a pool, as in a running
// engine.
func BenchmarkOperators(b *testing.B) {
	rows, params := operatorRows()
	m := rowset.NewMemory(rowset.NewPool(rowset.PoolConfig{}))
	m.SetLending(true)
	run := func(name string, body func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				body()
			}
			perRow(b, rows)
		})
	}
	all := append([]Operator{*operatorNamed("mul")}, Operators()...)
	for i := range all {
		o := &all[i]
		for name, tree := range operatorTrees(o) {
			name = o.Name + o.Cmp + "/" + name
			if o.Makes == Predicate {
				p := mustPredOf(b, typedLanguage, tree)
				run(name, func() {
					if _, _, err := p.Matches(nil, rows, params); err != nil {
						b.Fatal(err)
					}
				})
				continue
			}
			e, key := mustExprOf(b, typedLanguage, tree), &registry.Key{ID: 2001, Type: registry.Float}
			if o.Makes == String {
				key = &registry.Key{ID: 3002, Type: registry.String}
			}
			run(name, func() {
				if _, err := e.ColumnOf(nil, m, rows, params, key); err != nil {
					b.Fatal(err)
				}
				m.Release(nil)
			})
		}
	}
}
