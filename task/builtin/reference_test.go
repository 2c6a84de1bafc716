package builtin_test

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// The references do the work of the tasks that join sources plainly: one row after another,
// each with its values in a map.

// record is one row. A column that is null in the row is there with nil.
type record struct {
	id     int64
	values map[registry.KeyID]any
}

// table has the active rows of a row set, and the columns of its batch.
type table struct {
	columns []registry.KeyID // ascending
	rows    []record
}

func tableOf(rs rowset.RowSet) table {
	t := table{columns: rs.Batch.AppendKeys(nil)}
	for _, id := range rankdtest.IDs(rs) {
		t.rows = append(t.rows, record{id, make(map[registry.KeyID]any)})
	}
	for _, key := range t.columns {
		for i, value := range rankdtest.Values(rs, key) {
			if members, ok := value.([]string); ok && members == nil {
				value = []string{}
			}
			t.rows[i].values[key] = value
		}
	}
	return t
}

func (r record) get(key registry.KeyID) any {
	if key == registry.IDKey {
		return r.id
	}
	return r.values[key]
}

func (r record) with(key registry.KeyID, value any) record {
	r.values = maps.Clone(r.values)
	r.values[key] = value
	return r
}

// add adds that column to the table.
func (t *table) add(key registry.KeyID) {
	if !slices.Contains(t.columns, key) {
		t.columns = slices.Sorted(slices.Values(append(slices.Clone(t.columns), key)))
	}
}

// complete gives each row a value in each column.
func (t *table) complete() {
	for i := range t.rows {
		values := make(map[registry.KeyID]any)
		for _, key := range t.columns {
			values[key] = t.rows[i].values[key]
		}
		t.rows[i].values = values
	}
}

// provenanceOf are the source and rank columns that a reference writes; 0 means none.
type provenanceOf struct {
	source, rank registry.KeyID
	names        []string
}

func refUnion(inputs []table, p provenanceOf) table {
	var out table
	for i, in := range inputs {
		for _, key := range in.columns {
			out.add(key)
		}
		for rank, row := range in.rows {
			if p.source != 0 {
				row = row.with(p.source, []string{p.names[i]})
			}
			if p.rank != 0 {
				row = row.with(p.rank, int64(rank)+1)
			}
			out.rows = append(out.rows, row)
		}
	}
	if p.source != 0 {
		out.add(p.source)
	}
	if p.rank != 0 {
		out.add(p.rank)
	}
	out.complete()
	return out
}

func refDedupe(in table, by registry.KeyID, keep string, column, sets registry.KeyID) table {
	if by == 0 {
		by = registry.IDKey
	}
	beats := func(a, b any) bool { // a, from a later row, replaces b
		if keep == "first" || a == nil {
			return false
		}
		if b == nil {
			return true
		}
		var order int
		if x, ok := a.(int64); ok {
			order = cmp.Compare(x, b.(int64))
		} else {
			order = cmp.Compare(a.(float64), b.(float64))
		}
		return keep == "max" && order > 0 || keep == "min" && order < 0
	}
	best, members := map[any]int{}, map[any][]string{}
	hasSet := map[any]bool{}
	for i, row := range in.rows {
		value := row.get(by)
		if value == nil {
			continue
		}
		if b, ok := best[value]; !ok || beats(row.values[column], in.rows[b].values[column]) {
			best[value] = i
		}
		if set, ok := row.values[sets].([]string); ok {
			hasSet[value] = true
			members[value] = append(members[value], set...)
		}
	}
	out := table{columns: in.columns}
	for i, row := range in.rows {
		value := row.get(by)
		switch {
		case value == nil:
			out.rows = append(out.rows, row)
		case best[value] == i:
			if hasSet[value] {
				row = row.with(sets, append([]string{}, slices.Compact(slices.Sorted(slices.Values(members[value])))...))
			}
			out.rows = append(out.rows, row)
		}
	}
	return out
}

func refExclude(in table, by registry.KeyID, excluded func(value any) bool) table {
	out := table{columns: in.columns}
	for _, row := range in.rows {
		if value := row.get(by); value == nil || !excluded(value) {
			out.rows = append(out.rows, row)
		}
	}
	return out
}

func refJoin(left, right table, how string, on, rightOn registry.KeyID, columns []registry.KeyID) table {
	out := table{columns: left.columns}
	for _, key := range columns {
		out.add(key)
	}
	for _, row := range left.rows {
		match := slices.IndexFunc(right.rows, func(r record) bool { return row.get(on) != nil && row.get(on) == r.get(rightOn) })
		if how == "inner" && match < 0 || how == "anti" && match >= 0 {
			continue
		}
		for _, key := range columns {
			if match < 0 {
				row = row.with(key, nil)
			} else {
				row = row.with(key, right.rows[match].values[key])
			}
		}
		out.rows = append(out.rows, row)
	}
	return out
}

// refTurns takes rows by turns. turn(i) names the input of turn i, from 0 on.
func refTurns(inputs []table, p provenanceOf, unique bool, turn func(i int) int) table {
	all := refUnion(inputs, p)
	queues := refQueues{unique: unique}.of(inputs, all)
	all.rows = nil
	for i := 0; queues.left() > 0; i++ {
		queues.take(turn(i), &all)
	}
	return all
}

// refSlots gives some positions to inputs. The other inputs fill the rest.
func refSlots(inputs []table, p provenanceOf, unique bool, fixed map[int]int) table {
	all := refUnion(inputs, p)
	queues := refQueues{unique: unique}.of(inputs, all)
	all.rows = nil
	var isFixed []int
	for _, input := range fixed {
		isFixed = append(isFixed, input)
	}
	takeFrom := func(input int) bool { return queues.take(input, &all) }
	positions := slices.Sorted(maps.Keys(fixed))
	for {
		if len(positions) > 0 && positions[0] == len(all.rows)+1 {
			takeFrom(fixed[positions[0]])
			positions = positions[1:]
			continue
		}
		filled := false
		for input := range inputs {
			if !slices.Contains(isFixed, input) && takeFrom(input) {
				filled = true
				break
			}
		}
		if filled {
			continue
		}
		if len(positions) == 0 {
			return all
		}
		takeFrom(fixed[positions[0]])
		positions = positions[1:]
	}
}

// refQueues are the remaining rows of inputs.
type refQueues struct {
	unique bool // taking a row also removes all others with its id
	rows   [][]record
}

func (q refQueues) of(inputs []table, all table) *refQueues {
	at := 0
	for _, in := range inputs {
		q.rows = append(q.rows, slices.Clone(all.rows[at:at+len(in.rows)]))
		at += len(in.rows)
	}
	return &q
}

func (q *refQueues) left() (n int) {
	for _, rows := range q.rows {
		n += len(rows)
	}
	return n
}

// take moves the next row of an input to all, and reports whether there was one.
func (q *refQueues) take(input int, all *table) bool {
	if len(q.rows[input]) == 0 {
		return false
	}
	row := q.rows[input][0]
	all.rows, q.rows[input] = append(all.rows, row), q.rows[input][1:]
	for i := range q.rows {
		if q.unique {
			q.rows[i] = slices.DeleteFunc(q.rows[i], func(r record) bool { return r.id == row.id })
		}
	}
	return true
}

// requireTable compares a result with that of a reference.
func requireTable(t *testing.T, want table, got rowset.RowSet) {
	t.Helper()
	require.NoError(t, got.Validate())
	result := tableOf(got)
	require.ElementsMatch(t, want.columns, result.columns)
	require.Len(t, result.rows, len(want.rows))
	if reflect.DeepEqual(want.rows, result.rows) {
		return
	}
	for i := range want.rows {
		require.Equal(t, want.rows[i], result.rows[i], "row %d", i)
	}
}

// sourceTables returns the tables of a registry. It has the keys of rowsettest, 5501 source
// (string set) and 5502 source_rank (int), and the context fields seen (int list) and muted
// (string list).
func sourceTables() registrytest.Tables {
	tables := registrytest.Tables{Keys: registrytest.ID, Endpoints: registrytest.Redis}
	for _, k := range []struct {
		id         int
		name, kind string
	}{
		{1001, "f1", "float"}, {1002, "f2", "float"}, {2001, "f3", "float"}, {3001, "s1", "string"}, {3002, "s2", "string"},
		{5001, "i1", "int"}, {5002, "i2", "int"}, {5101, "b1", "bool"}, {5201, "set1", "string_set"}, {5202, "set2", "string_set"}, {5251, "v1", "vector(5)"}, {5252, "v2", "vector(5)"},
		{5501, "source", "string_set"}, {5502, "source_rank", "int"},
	} {
		tables.Keys += registrytest.Key(k.id, k.name, k.kind, registrytest.Nullable, registrytest.Writable)
	}
	tables.Keys += registrytest.Key(5503, "fixed_int", "int", registrytest.Nullable)
	for i, p := range [][2]string{{"seen", "int_list"}, {"muted", "string_list"}, {"tab", "string"}} {
		tables.Params += registrytest.Param(i+1, p[0], p[1], registrytest.Nullable, "context = true")
	}
	return tables
}

var sourceRegistry = sync.OnceValue(func() *registry.Registry { return sourceTables().Load() })
