package builtin

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The id tells rows apart unless a node says otherwise, though it is not a column.
func TestSourcesSayWhyByID(t *testing.T) {
	in, id := rankdtest.Rows(7, 8, 7), task.Value{Name: "id", Value: int64(7)}
	run := func(prepared any, refs ...rowset.RowSet) *task.Ctx {
		return &task.Ctx{Node: &plan.Node{Prepared: prepared}, Inputs: []rowset.RowSet{in}, Refs: refs, Params: new(expr.Params), Registry: testRegistry(t)}
	}
	kept, last := rowset.Take(in, 2), task.RowAt{Pos: 2}

	dedupe := run(&rowset.Distinction{By: registry.IDKey, Sets: 5201})
	why := explainDedupe(dedupe, kept, last)
	assert.Equal(t, task.Reason{Kind: task.Deduplicated, Instead: []int64{7}, Values: []task.Value{id}}, why)
	assert.Equal(t, []task.RowAt{{Pos: 0}, {Pos: 2}}, fromDedupe(dedupe, kept, 0))

	params := new(expr.Params)
	params.SetIntList(9, []int64{7})
	exclude := run(&excludeNode{by: registry.IDKey, context: &registry.Param{ID: 9, Name: "seen", Type: registry.IntList}})
	exclude.Params = params
	why = explainExclude(exclude, kept, last)
	assert.Equal(t, task.Reason{Kind: task.Excluded, Text: "it is in seen of the request's context", Values: []task.Value{id}}, why)

	join := run(&joinNode{how: "anti", on: registry.IDKey, rightOn: registry.IDKey}, rankdtest.Rows(7))
	why = explainJoin(join, kept, last)
	assert.Equal(t, task.Reason{Kind: task.Unmatched, Text: "the right side has it", Values: []task.Value{id}}, why)
}
