package builtin

import (
	"slices"
	"strconv"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// This file has what the tasks that put candidates together say of one row of a run: see task.Spec.From and
// task.Spec.Explain.

// keyValue returns the value by which a row is told apart, nil for null. Equal values are equal, 0.0 and -0.0 too.
func keyValue(rows rowset.RowSet, pos int, key registry.KeyID) any {
	row, b := int(rows.Row(pos)), rows.Batch
	if key == registry.IDKey {
		return b.IDs[row]
	}
	switch b.TypeOf(key) {
	case registry.Float:
		if c := b.Float(key); c.Valid.Get(row) {
			return c.Values[row]
		}
	case registry.String:
		if s, ok := b.String(key).Value(row); ok {
			return s
		}
	case registry.Bool:
		if c := b.Bool(key); c.Valid.Get(row) {
			return c.Values.Get(row)
		}
	case registry.Int:
		if c := b.Int(key); c.Valid.Get(row) {
			return c.Values[row]
		}
	}
	return nil
}

// withValue returns the positions of the rows with a value, which is not null.
func withValue(rows rowset.RowSet, key registry.KeyID, value any) (at []int) {
	id, isID := value.(int64)
	isID = isID && key == registry.IDKey // the usual key, which many rows are compared by
	for i := range rows.Len() {
		if isID && rows.ID(i) == id || !isID && value != nil && keyValue(rows, i, key) == value {
			at = append(at, i)
		}
	}
	return at
}

// named returns a value of a Reason with the name of its key.
func named(c *task.Ctx, key registry.KeyID, value any) []task.Value {
	k, ok := c.Registry.Key(key)
	if !ok {
		return nil
	}
	return []task.Value{{Name: k.Name, Value: value}}
}

// fromDedupe returns the row itself, then those whose sets it has got.
func fromDedupe(c *task.Ctx, out rowset.RowSet, pos int) []task.RowAt {
	d, in := c.Node.Prepared.(*rowset.Distinction), c.Inputs[0]
	from := []task.RowAt{{Pos: positionIn(in, out.Row(pos))}}
	if d.Sets == 0 {
		return from
	}
	for _, at := range withValue(in, d.By, keyValue(out, pos, d.By)) {
		if at != from[0].Pos {
			from = append(from, task.RowAt{Pos: at})
		}
	}
	return from
}

// explainDedupe names the row that stands for a duplicate, and says of a row that stands for others how many there are.
func explainDedupe(c *task.Ctx, out rowset.RowSet, at task.RowAt) task.Reason {
	d, in := c.Node.Prepared.(*rowset.Distinction), c.Inputs[0]
	rows := c.SideRows(out, at.Side)
	value := keyValue(rows, at.Pos, d.By)
	if at.Side == task.InResult {
		if n := len(withValue(in, d.By, value)); n > 1 {
			return task.Reason{Kind: task.Merged, Text: strconv.Itoa(n) + " rows had this value", Values: named(c, d.By, value)}
		}
		return task.Reason{}
	}
	why := task.Reason{Kind: task.Deduplicated, Values: named(c, d.By, value)}
	for _, kept := range withValue(out, d.By, value) {
		why.Instead = append(why.Instead, out.ID(kept))
	}
	return why
}

// explainExclude says which list or set a row was in.
func explainExclude(c *task.Ctx, _ rowset.RowSet, at task.RowAt) task.Reason {
	if at.Side == task.InResult {
		return task.Reason{}
	}
	e := c.Node.Prepared.(*excludeNode)
	value := keyValue(c.Inputs[0], at.Pos, e.by)
	why := task.Reason{Kind: task.Excluded, Values: named(c, e.by, value)}
	listed := false
	if e.context != nil {
		switch v := value.(type) {
		case int64:
			ids, _ := c.Params.IntList(e.context.ID)
			listed = slices.Contains(ids, v)
		case string:
			texts, _ := c.Params.StringList(e.context.ID)
			listed = slices.Contains(texts, v)
		}
	}
	if listed {
		why.Text = "it is in " + e.context.Name + " of the request's context"
	} else if e.key != nil {
		if key, ok, err := c.RedisKey(e.key); ok && err == nil {
			why.Text = "it is in " + excerpt.Text(key.Prefix) + " in Redis"
		}
	}
	return why
}

// fromJoin returns the left row, then the right one whose columns it has got.
func fromJoin(c *task.Ctx, out rowset.RowSet, pos int) []task.RowAt {
	j, in := c.Node.Prepared.(*joinNode), c.Inputs[0]
	left := positionIn(in, out.Row(pos))
	from := []task.RowAt{{Pos: left}}
	if len(j.columns) > 0 {
		if match := withValue(c.Refs[0], j.rightOn, keyValue(in, left, j.on)); len(match) > 0 {
			from = append(from, task.RowAt{Side: 1, Pos: match[0]})
		}
	}
	return from
}

// explainJoin says which row of the right side a row met, or that there was none.
func explainJoin(c *task.Ctx, out rowset.RowSet, at task.RowAt) task.Reason {
	j := c.Node.Prepared.(*joinNode)
	if at.Side == 1 {
		return task.Reason{Kind: task.Unmatched, Text: "only the right side has it, and a join brings no rows of that side"}
	}
	rows := c.SideRows(out, at.Side)
	value := keyValue(rows, at.Pos, j.on)
	match := withValue(c.Refs[0], j.rightOn, value)
	why := task.Reason{Kind: task.Unmatched, Values: named(c, j.on, value)}
	switch {
	case at.Side == task.InResult && len(match) == 0:
		return task.Reason{}
	case at.Side == task.InResult:
		why.Kind, why.Text = task.Joined, "it got its columns from row "+strconv.Itoa(match[0]+1)+" of the right side"
	case len(match) > 0:
		why.Text = "the right side has it"
	default:
		why.Text = "the right side does not have it"
	}
	return why
}

// fromBlend returns the row of the input: the batch has the rows of the inputs one after the other.
func fromBlend(c *task.Ctx, out rowset.RowSet, pos int) []task.RowAt {
	row := int(out.Row(pos))
	for side, in := range c.Inputs {
		if row < in.Len() {
			return []task.RowAt{{Side: side, Pos: row}}
		}
		row -= in.Len()
	}
	return nil
}

// explainBlend says that the pattern left a row out.
func explainBlend(c *task.Ctx, out rowset.RowSet, at task.RowAt) task.Reason {
	if at.Side == task.InResult {
		return task.Reason{}
	}
	in := c.Inputs[at.Side]
	return task.Reason{Kind: task.Cut, Text: "the pattern takes no more rows of this input", Rank: at.Pos + 1, Of: in.Len()}
}
