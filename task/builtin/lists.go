package builtin

import (
	"strconv"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

var endpointParam = plan.ParamSchema{
	Name: "endpoint", Type: plan.Endpoint, Required: true,
	Doc: "The Redis that the node reads, by its id in the registry.",
}

// fanoutParam returns the parameter that bounds how many entries a task reads of each list. An
// artifact states it; the source of a plan may leave it out.
func fanoutParam(most int64) plan.ParamSchema {
	ifAbsent := int64(100)
	rule := between(1, most)
	rule.Default = &ifAbsent
	return plan.ParamSchema{Name: "fanout", Type: plan.Int, Required: true, Source: rule,
		Doc: "The most entries that the node reads of each list. Entries without an id count, too."}
}

// perRow returns the RowsMax of a task that makes as many rows as a parameter says of each row, or at all without an input.
func perRow(param string) func(n *plan.Node, in int64) int64 {
	return func(n *plan.Node, in int64) int64 {
		if len(n.Inputs) == 0 {
			in = 1
		}
		return plan.MulRows(in, max(0, n.Params.Int(param)))
	}
}

// atMost returns the RowsMax of a task that keeps as many rows as a parameter says.
func atMost(param string) func(n *plan.Node, in int64) int64 {
	return func(n *plan.Node, in int64) int64 { return min(in, max(0, n.Params.Int(param))) }
}

// listText says which ids come from a list.
const listText = "An id is an optional minus and at least one digit at the start of an entry. The node ignores the rest of the entry, " +
	"and drops entries that do not start so or do not fit 64 bits. It takes the first `fanout` entries before it drops any. The answer's `completeness` says how many it dropped, with the first of them and its key."

// listReference documents a task that expands each row to the list at a key with this prefix.
func listReference(prefix, more string) task.Reference {
	return task.Reference{
		Text: "The node reads the list at `" + prefix + "{id}` for each row. The new rows take the place of the rows of the input, " +
			"whose columns are lost.\n\n" + listText,
		Redis: "One `LRANGE` for each row of the input, all in one round trip. Very many rows or entries take more. " + more,
		Order: "The rows follow the order of the input, and for each row the order of its list.",
		Empty: "A key that does not exist is an empty list. An input without rows gives no rows.",
		Duplicates: "Rows with the same id each read the list, and give its entries again. An entry that is there twice gives two rows. " +
			"Equal reads in flight travel to Redis once.",
		Failures: "A key of another type than list fails the node. So do an error of Redis, a `fanout` out of its range, and more rows " +
			"than the request may make (`--max_rows`).",
	}
}

// preparedLists is what a node reads from lists. Immutable once built; any goroutine.
type preparedLists struct {
	key    task.RedisKey
	recall task.Recall
}

// prepareLists prepares a node that reads the first "fanout" entries of the list at prefix+id for each row.
func prepareLists(n *plan.Node, prefix string) preparedLists {
	return preparedLists{tasks.RowKey(prefix), recallRule(n, "LRANGE "+strconv.FormatInt(n.Params.Int("fanout"), 10), prefix)}
}

// ask adds the read of the lists of the active rows of the input.
func (p *preparedLists) ask(c *task.Ctx, reads *task.Reads, fanoutMax int64) error {
	fanout := c.Node.Params.Int("fanout")
	if fanout < 1 || fanout > fanoutMax {
		return task.Invalidf("fanout is %d, must be between 1 and %d", fanout, fanoutMax)
	}
	r := task.NewRead[entriesRead](reads)
	r.c, r.key, r.kind, r.fansOut, r.limit = c, p.key, kindList, true, int(fanout)
	r.begin(c, reads, &p.recall)
	return nil
}
