package rowset

import "github.com/rankd/rankd/registry"

// Groups puts the active rows with the same value of a column, or with the same id, into one group. of has the group of each
// row, by position: numbers below n, in the order in which groups first occur. A row whose value is null is a group of its own, and so
// is every row if there is no such column. of is m's. The error is a *KeyTypeError, or ErrStopped once stop says so.
func Groups(stop Stop, m *Memory, rs RowSet, key registry.KeyID) (of []int32, n int, err error) {
	keys, err := keysOf(m, rs, key)
	if err != nil {
		return nil, 0, err
	}
	g, err := groupRows(stop, m, keys)
	return g.of, len(g.kept), err
}
