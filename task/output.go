package task

import (
	"slices"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Output is the shape of a task's result, relative to its input. Immutable; any goroutine.
type Output uint8

// The shapes. Those that keep the batch change only the list of active rows.
const (
	// Source makes a dense batch from nothing; its columns are the Spec's Writes.
	Source Output = iota + 1
	// Expand makes a dense batch of other rows from its input's rows; its columns are
	// the Spec's Writes.
	Expand
	// SameRows keeps ids, active rows and their order, and may add or replace
	// the columns of the Spec's Writes. Its other columns share the input's memory.
	SameRows
	// Subset keeps the batch and a subsequence of the active rows.
	Subset
	// Permutation keeps the batch and all active rows, in another order; with a Ctx.Limit, the
	// first rows of that order.
	Permutation
	// Prefix keeps the batch and the first active rows.
	Prefix
	// Append makes a dense batch: the rows of the input, then the rows of each node
	// reference; its columns are the union.
	Append
	// PassThrough keeps everything.
	PassThrough
	// Pick keeps ids, and adds or replaces columns as SameRows does. Its active rows are some of the
	// input's, each at most once, in any order.
	Pick
	// Merge makes a batch, dense or not. Each active row stands for an active row of an input or a node
	// reference, each of those at most once, in any order; its columns are the union and the Spec's Writes.
	Merge
	// Window keeps the batch and consecutive active rows.
	Window
)

var outputNames = [...]string{"", "source", "expand", "same_rows", "subset", "permutation", "prefix", "append",
	"pass_through", "pick", "merge", "window"}

// String returns the name of the shape.
func (o Output) String() string { return outputNames[o] }

// check compares a result with the shape that spec promises. Its time is proportional
// to the rows and less than the task's. It runs where the task ran.
func check(spec *Spec, c *Ctx, out rowset.RowSet) error {
	if out.Batch == nil {
		return contractf("output has no batch")
	}
	for s := range c.Sides() {
		if err := checkTypes(c, "input", c.SideRows(out, s)); err != nil {
			return err
		}
	}
	if err := checkRows(c, out); err != nil {
		return err
	}
	if len(c.Inputs) == 0 || out.Batch != c.Inputs[0].Batch {
		if err := checkBatch(c, out.Batch); err != nil {
			return err
		}
	}
	switch spec.Output {
	case Source, Expand:
		if err := checkDense(out, len(out.Batch.IDs)); err != nil {
			return err
		}
		return checkColumns(spec, c, out, nil)
	case Append:
		rows := 0
		for _, in := range c.Inputs {
			rows += in.Len()
		}
		for _, in := range c.Refs {
			rows += in.Len()
		}
		if err := checkDense(out, rows); err != nil {
			return err
		}
		if err := checkAppended(c, out.Batch.IDs); err != nil {
			return err
		}
		return checkColumns(spec, c, out, c.hasColumn)
	case Merge:
		if err := checkMerged(c, out); err != nil {
			return err
		}
		return checkColumns(spec, c, out, c.hasColumn)
	}

	in := c.Inputs[0]
	if spec.Output == SameRows || spec.Output == Pick {
		if !sameIDs(in.Batch.IDs, out.Batch.IDs) {
			return contractf("output must keep the ids of its input's batch")
		}
		keeps := func(key registry.KeyID) bool { return rowset.SharesColumn(in.Batch, out.Batch, key) }
		if err := checkColumns(spec, c, out, keeps); err != nil {
			return err
		}
	} else if out.Batch != in.Batch {
		return contractf("output must keep its input's batch (%s)", spec.Output)
	}
	ok := true
	switch spec.Output {
	case SameRows, PassThrough:
		ok = out.N == in.N && isPrefix(in, out)
	case Prefix:
		ok = isPrefix(in, out)
	case Window:
		ok = isWindow(in, out)
	case Subset:
		ok = isSubsequence(in, out)
	case Permutation:
		ok = isPermutation(in, out, c.rowsDue(in.N))
	case Pick:
		ok = isPermutation(in, out, out.N)
	}
	if !ok {
		return contractf("output rows are not a %s of the input's rows", spec.Output)
	}
	return nil
}

// checkRows checks the list of active rows, so that later checks may index by it. The
// input's own list was checked when it was made.
func checkRows(c *Ctx, out rowset.RowSet) error {
	n := len(out.Batch.IDs)
	if out.N < 0 || out.N > n || out.Rows != nil && len(out.Rows) != out.N {
		return contractf("output has %d active rows, %d listed, of %d", out.N, len(out.Rows), n)
	}
	if len(c.Inputs) > 0 && len(out.Rows) > 0 && len(c.Inputs[0].Rows) > 0 && out.Batch == c.Inputs[0].Batch && &out.Rows[0] == &c.Inputs[0].Rows[0] {
		return nil
	}
	for _, row := range out.Rows {
		if uint(row) >= uint(n) {
			return contractf("output lists row %d of %d", row, n)
		}
	}
	return nil
}

// checkBatch checks that a new batch is sound. Columns of the input's batch were checked when they were made.
func checkBatch(c *Ctx, b *rowset.Batch) error {
	var in *rowset.Batch
	if len(c.Inputs) > 0 {
		in = c.Inputs[0].Batch
	}
	if err := b.Check(in); err != nil {
		return contractf("output is unsound: %w", err)
	}
	return nil
}

func checkDense(out rowset.RowSet, rows int) error {
	if out.Rows != nil || out.N != len(out.Batch.IDs) {
		return contractf("output must be dense")
	}
	if out.N != rows {
		return contractf("output has %d rows, want %d", out.N, rows)
	}
	return nil
}

// checkAppended checks that ids equal the ids of the active rows of the input, then of
// each node reference. The caller has checked their number.
func checkAppended(c *Ctx, ids []int64) error {
	for _, sides := range [...][]rowset.RowSet{c.Inputs, c.Refs} {
		for _, in := range sides {
			part := ids[:in.N]
			ids = ids[in.N:]
			for i, id := range part {
				if id != in.ID(i) {
					return contractf("output has id %d where its inputs' rows in order have %d", id, in.ID(i))
				}
			}
		}
	}
	return nil
}

// checkMerged checks that the active rows are distinct, and that each id occurs among them at most as often as
// among the active rows of the inputs and node references together.
func checkMerged(c *Ctx, out rowset.RowSet) error {
	left := make(map[int64]int)
	for _, sides := range [...][]rowset.RowSet{c.Inputs, c.Refs} {
		for _, in := range sides {
			for i := range in.N {
				left[in.ID(i)]++
			}
		}
	}
	if !isPermutation(rowset.Dense(out.Batch), out, out.N) {
		return contractf("output lists a row twice")
	}
	for i := range out.N {
		id := out.ID(i)
		if left[id]--; left[id] < 0 {
			return contractf("output has id %d more often than its inputs' rows", id)
		}
	}
	return nil
}

// checkColumns refuses a column that is neither in Writes nor inherited, and one of another type than its key has in
// the registry. A nil inherited means that no column is.
func checkColumns(spec *Spec, c *Ctx, out rowset.RowSet, inherited func(registry.KeyID) bool) error {
	var few [16]registry.KeyID
	for _, key := range out.Batch.AppendKeys(few[:0]) {
		if (inherited == nil || !inherited(key)) && !c.writes(spec, key) {
			return contractf("output has %s column %d, which the task does not declare", out.Batch.TypeOf(key), key)
		}
	}
	return checkTypes(c, "output", out)
}

// checkTypes refuses a column whose type is not that of its key in the registry. It passes columns over that have no
// key there.
func checkTypes(c *Ctx, what string, rows rowset.RowSet) error {
	if rows.Batch == nil {
		return nil
	}
	var few [16]registry.KeyID
	for _, id := range rows.Batch.AppendKeys(few[:0]) {
		has := rows.Batch.TypeOf(id)
		if key, ok := c.Registry.Key(id); ok && key.Type != has {
			return contractf("%s has %s column %d (%s), which is %s in the registry", what, has, id, key.Name, key.Type)
		}
	}
	return nil
}

// hasColumn reports whether some input or node reference has that column.
func (c *Ctx) hasColumn(key registry.KeyID) bool {
	has := func(in rowset.RowSet) bool { return in.Batch.TypeOf(key) != 0 }
	return slices.ContainsFunc(c.Inputs, has) || slices.ContainsFunc(c.Refs, has)
}

// sameIDs reports whether a and b are the same memory.
func sameIDs(a, b []int64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// isWindow reports whether out's rows are some of in's that follow each other.
func isWindow(in, out rowset.RowSet) bool {
	if out.N == 0 {
		return true
	}
	from := 0
	for from < in.N && in.Row(from) != out.Row(0) {
		from++
	}
	if from+out.N > in.N {
		return false
	}
	for i := range out.N {
		if in.Row(from+i) != out.Row(i) {
			return false
		}
	}
	return true
}

func isPrefix(in, out rowset.RowSet) bool {
	if out.N > in.N {
		return false
	}
	if in.Rows == nil && out.Rows == nil {
		return true
	}
	if in.Rows != nil && out.Rows != nil && out.N > 0 && &in.Rows[0] == &out.Rows[0] {
		return true // the usual case: a reslice of the same list
	}
	for i := range out.N {
		if in.Row(i) != out.Row(i) {
			return false
		}
	}
	return true
}

func isSubsequence(in, out rowset.RowSet) bool {
	if in.Rows == nil && out.Rows != nil {
		// The input's rows ascend, so the output's must ascend. Unlike the walk below this
		// has no data-dependent branch, and is three times as fast on a million rows.
		last := int32(-1)
		for _, row := range out.Rows {
			if row <= last {
				return false
			}
			last = row
		}
		return int(last) < in.N
	}
	i := 0
	for o := range out.N {
		row := out.Row(o)
		for i < in.N && in.Row(i) != row {
			i++
		}
		if i == in.N {
			return false
		}
		i++
	}
	return true
}

// rowsDue returns how many rows a permutation of n rows has: all, or as many as will be read.
func (c *Ctx) rowsDue(n int) int {
	if c.Limit > 0 {
		return min(n, c.Limit)
	}
	return n
}

// isPermutation reports whether out lists that many rows of in, each at most once.
func isPermutation(in, out rowset.RowSet, rows int) bool {
	if out.N != rows {
		return false
	}
	// One bit per batch row: the input sets it, the output clears it. A row that is
	// listed twice, or was not active, finds its bit clear.
	var small [16]uint64
	marks := small[:]
	if words := (len(in.Batch.IDs) + 63) / 64; words > len(small) {
		marks = make([]uint64, words)
	}
	for i := range in.N {
		row := in.Row(i)
		marks[row>>6] |= 1 << (row & 63)
	}
	for o := range out.N {
		row := out.Row(o)
		if marks[row>>6]&(1<<(row&63)) == 0 {
			return false
		}
		marks[row>>6] &^= 1 << (row & 63)
	}
	return true
}
