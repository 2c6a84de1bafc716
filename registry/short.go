package registry

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/rankd/rankd/internal/errtext"
)

// otherNames is the name of the field, of type map[string]R, that describes each table which no other field names. The
// decoder leaves it empty; shortRows reads those tables.
const otherNames = "*"

// A shorthand is a row that may be written as just the name of its type, as in price = "float".
type shorthand interface{ setType(name string) }

func isShorthand(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[shorthand]())
}

// A shortRow is a row in the short form: a member of a table of the file. Immutable.
type shortRow[R any] struct {
	table, name string
	row         R
}

// label names the row in problems.
func (s *shortRow[R]) label() string { return errtext.Name(s.table + "." + s.name) }

// shortRows returns the rows in the short form of a text that has the right shape, by table and name.
func shortRows[R any, P interface {
	*R
	shorthand
}](text []byte) (rows []shortRow[R]) {
	var tree map[string]any
	_ = toml.Unmarshal(text, &tree) // The loader has decoded it before.
	for table, members := range tree {
		members, ok := members.(map[string]any)
		if !ok {
			continue // the long form
		}
		for name, value := range members {
			s := shortRow[R]{table: table, name: name}
			if typ, ok := value.(string); ok {
				P(&s.row).setType(typ)
			} else if again, err := toml.Marshal(value); err == nil {
				_ = toml.Unmarshal(again, &s.row) // Its shape has been checked.
			}
			rows = append(rows, s)
		}
	}
	slices.SortFunc(rows, func(a, b shortRow[R]) int { return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.name, b.name)) })
	return rows
}
