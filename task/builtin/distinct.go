package builtin

import (
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// distinctIDs are the ids by which rows are looked up, each once. An id is an integer, or the number of a text. Only the body uses it.
type distinctIDs struct {
	values []int64         // in the order in which rows first have them
	texts  *rowset.IDTexts // by value; nil: the values are the integers themselves
	// at has, per position of the active rows, the index of its id in values; len(values) means a row without an id.
	// Nil: position i has index i.
	at     []int32
	absent bool // some row has no id
}

// indexOf returns the index in values of the id of an active row, by its position.
func (d *distinctIDs) indexOf(pos int) int {
	if d.at == nil {
		return pos
	}
	return int(d.at[pos])
}

// distinctOf returns the values that the active rows of in fill into a key.
func (l *preparedLookup) distinctOf(c *task.Ctx, in rowset.RowSet, key task.RedisKey) distinctIDs {
	switch {
	case len(l.row) == 0:
		return oneID(c, in)
	case len(l.row) > 1:
		return distinctValues(c, rowset.RowSet{N: in.N}, l.rowTexts(c, in, key))
	case l.row[0].Column.ID == registry.IDKey:
		return distinctRows(c, in)
	}
	return distinctValues(c, in, in.Batch.Column(l.row[0].Column.ID))
}

// rowTexts returns what the active rows of in fill into a key with several marks of theirs: a column with a row for each. Where a mark is
// null, so is the text.
func (l *preparedLookup) rowTexts(c *task.Ctx, in rowset.RowSet, key task.RedisKey) rowset.Column {
	marks := make([]rowset.Column, 0, len(key.Between))
	for _, part := range l.row {
		switch {
		case part.Column == nil:
		case part.Column.ID == registry.IDKey:
			marks = append(marks, idColumn(c, in.Batch))
		default:
			marks = append(marks, in.Batch.Column(part.Column.ID))
		}
	}
	texts := rowset.NewStringBuilderIn(c.Memory, registry.IDKey, in.N)
	var text []byte
	for i := range in.N {
		there := true
		text = text[:0]
		for k, mark := range marks {
			ok := false
			switch text = append(text, key.Between[k]...); mark := mark.(type) {
			case *rowset.IntColumn:
				text, ok = mark.AppendJSON(text, int(in.Row(i)))
			case *rowset.StringColumn:
				var value string
				value, ok = mark.Value(int(in.Row(i)))
				text = append(text, value...)
			}
			there = there && ok
		}
		if there {
			texts.Append(text)
		} else {
			texts.AppendNull()
		}
	}
	return texts.Column()
}

// idColumn returns the ids of a batch as a column.
func idColumn(c *task.Ctx, b *rowset.Batch) rowset.Column {
	texts := c.IDTexts()
	if texts == nil {
		return &rowset.IntColumn{Key: registry.IDKey, Values: b.IDs}
	}
	return texts.Column(b.IDs)
}

// distinctValues returns the values of the active rows of in in a column of integers or texts, or nil.
func distinctValues(c *task.Ctx, in rowset.RowSet, column rowset.Column) (ids distinctIDs) {
	values, at := c.Memory.IDs(in.N)[:0], c.Memory.Rows(in.N)
	switch column := column.(type) {
	case *rowset.IntColumn:
		for i := range in.N {
			at[i] = -1
			if value, ok := column.Value(int(in.Row(i))); ok {
				at[i] = int32(len(values))
				values = append(values, value)
			}
		}
	case *rowset.StringColumn:
		ids.texts = rowset.TextsOf(column.Dict.Values)
		codes := column.Codes(c.Memory, in)
		for i := range in.N {
			at[i] = -1
			if code := rowset.CodeAt(codes, column.Places[in.Row(i)]); code != rowset.NullCode {
				at[i] = int32(len(values))
				values = append(values, int64(code))
			}
		}
	default:
		return noIDs(c, in)
	}
	distinct, of := rowset.Distinct(c.Memory, values)
	ids.values, ids.absent = distinct, len(values) < in.N
	if !ids.absent {
		ids.at = of
		return ids
	}
	for i, position := range at {
		switch {
		case position < 0:
			at[i] = int32(len(distinct))
		case of != nil:
			at[i] = of[position]
		}
	}
	ids.at = at
	return ids
}

// distinctRows returns the ids of the rows themselves.
func distinctRows(c *task.Ctx, in rowset.RowSet) (ids distinctIDs) {
	ids.texts = c.IDTexts()
	values := in.Batch.IDs[:in.N]
	if in.Rows != nil {
		values = c.Memory.IDs(in.N)
		for i, row := range in.Rows {
			values[i] = in.Batch.IDs[row]
		}
	}
	ids.values, ids.at = rowset.Distinct(c.Memory, values)
	return ids
}

// nothing is the value that rows fill into a key without a mark for rows.
var nothing = rowset.TextsOf([]string{""})

// oneID returns the id for rows that all have the same key.
func oneID(c *task.Ctx, in rowset.RowSet) distinctIDs {
	if in.N == 0 {
		return distinctIDs{}
	}
	at := c.Memory.Rows(in.N)
	clear(at)
	return distinctIDs{values: []int64{0}, texts: nothing, at: at}
}

// noIDs returns the ids of rows that have none.
func noIDs(c *task.Ctx, in rowset.RowSet) distinctIDs {
	at := c.Memory.Rows(in.N)
	clear(at)
	return distinctIDs{at: at, absent: in.N > 0}
}
