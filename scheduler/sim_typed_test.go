package scheduler

import (
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// The keys of the columns of the simulation's fixed_source, in addition to those of the
// built-in tables.
const (
	simInt  registry.KeyID = 5001
	simBool registry.KeyID = 5101
	simSet  registry.KeyID = 5201
)

const simKeys = `
[[key]]
id = 5001
name = "sim_int"
type = "int"
nullable = true
[[key]]
id = 5101
name = "sim_bool"
type = "bool"
nullable = true
[[key]]
id = 5201
name = "sim_set"
type = "string_set"
nullable = true
`

// withTypes adds a column of each type that the built-in tasks do not make. The values,
// including nulls, follow from the ids.
func withTypes(rows rowset.RowSet) rowset.RowSet {
	ints, bools, sets := rowset.NewIntBuilder(simInt, rows.N), rowset.NewBoolBuilder(simBool, rows.N), rowset.NewSetBuilder(simSet, rows.N)
	for i := range rows.N {
		id := rows.ID(i)
		switch id % 4 {
		case 0:
			ints.AppendNull()
			bools.AppendNull()
			sets.AppendNull()
			continue
		case 1:
			sets.Add([]byte("odd"))
			sets.Add([]byte{'a' + byte(id%26)})
		}
		ints.Append(1<<60 - id%3)
		bools.Append(id%3 == 0)
		sets.Append()
	}
	return rowset.Scatter(nil, rows,
		ints.Column(),
		bools.Column(),
		sets.Column(),
	)
}
