package rowset

import "github.com/rankd/rankd/registry"

// Groups puts the active rows with the same values of columns, or with the same id, into one group. Without keys all
// rows are one group. of has the group of each row, by position: numbers below n, in the order in which groups first
// occur. A row with a null among its values is a group of its own. If one of the columns is missing, every row is. of
// is m's. The error is a *KeyTypeError, or ErrStopped once stop says so.
func Groups(stop Stop, m *Memory, rs RowSet, by ...registry.KeyID) (of []int32, n int, err error) {
	if len(by) == 0 {
		of = m.Rows(rs.N)
		clear(of)
		return of, min(1, rs.N), nil
	}
	for i, key := range by {
		keys, err := keysOf(m, rs, key)
		if err != nil {
			return nil, 0, err
		}
		g, err := groupRows(stop, m, keys)
		if err != nil {
			return nil, 0, err
		}
		if i == 0 {
			of, n = g.of, len(g.first)
		} else if of, n, err = JointGroups(stop, m, of, g.of); err != nil {
			return nil, 0, err
		}
	}
	return of, n, nil
}

// JointGroups puts the rows that are in one group of a and in one group of b into one group. Its slices are as Groups has them, by
// position. The error is ErrStopped once stop says so.
func JointGroups(stop Stop, m *Memory, a, b []int32) (of []int32, n int, err error) {
	both := m.IDs(len(a))
	for pos := range both {
		both[pos] = int64(a[pos])<<32 | int64(b[pos])
	}
	g, err := groupRows(stop, m, rowKeys{values: both})
	return g.of, len(g.first), err
}
