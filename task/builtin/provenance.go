package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// provenance makes the columns that say which input a row comes from, and at which rank. It is prepared
// once per node. Immutable; any goroutine.
type provenance struct {
	source, rank registry.KeyID  // 0: not wanted
	names        *rowset.SetDict // one set per input: its name
}

// provenanceParams are the parameters of the tasks that write these columns.
func provenanceParams() []plan.ParamSchema {
	return []plan.ParamSchema{
		{Name: "source", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.StringSet}, Writes: true},
			Doc: "The column for the name of the input that a row comes from, as a set of one string. A column of that key that an input has is replaced."},
		{Name: "rank", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Int}, Writes: true},
			Doc: "The column for the rank of a row within its input: 1 for the first row. A column of that key that an input has is replaced."},
		{Name: "names", Type: plan.String, List: true, MaxItems: task.InputsLimit,
			Doc: "The names of the inputs, in their order, all different."},
	}
}

// prepareProvenance checks the parameters of a node.
func prepareProvenance(n *plan.Node) (*provenance, error) {
	p := new(provenance)
	if key := n.Params.Key("source"); key != nil {
		p.source = key.ID
	}
	if key := n.Params.Key("rank"); key != nil {
		p.rank = key.ID
	}
	names := n.Params.Strings("names")
	if len(names) == 0 && p.source == 0 {
		return p, nil
	}
	if len(names) != len(n.Inputs) {
		return nil, plan.ParamErrorf("names", "has %d names, and the node has %d inputs", len(names), len(n.Inputs))
	}
	if err := distinctNames(names); err != nil {
		return nil, err
	}
	p.names = &rowset.SetDict{Offsets: make([]int32, 1, len(names)+1), Strings: &rowset.Dict{Values: names}}
	for i := range names {
		p.names.Members = append(p.names.Members, int32(i))
		p.names.Offsets = append(p.names.Offsets, int32(i)+1)
	}
	return p, nil
}

func distinctNames(names []string) error {
	first := make(map[string]int)
	for i, name := range names {
		if name == "" {
			return plan.ParamErrorf(plan.ItemPath("names", i), "is empty")
		}
		if before, taken := first[name]; taken {
			return plan.ParamErrorf(plan.ItemPath("names", i), "is %s, and so is names[%d]", task.Quote(name), before)
		}
		first[name] = i
	}
	return nil
}

// unite returns all rows of the inputs, one input after the other, with the columns that p wants.
func (p *provenance) unite(c *task.Ctx) (rowset.RowSet, error) {
	rows := 0
	for _, in := range c.Inputs {
		rows += in.Len()
	}
	if err := c.MakeRows(int64(rows)); err != nil {
		return rowset.RowSet{}, err
	}
	out := rowset.Concat(c.Memory, c.Inputs...)
	if p.source != 0 {
		codes, at := c.Memory.Rows(rows), 0
		for input, in := range c.Inputs {
			fill(codes[at:at+in.Len()], int32(input))
			at += in.Len()
		}
		out.Batch = rowset.With(out.Batch, &rowset.SetColumn{Key: p.source, Codes: codes, Dict: p.names})
	}
	if p.rank != 0 {
		ranks, at := c.Memory.IDs(rows), 0
		for _, in := range c.Inputs {
			count(ranks[at : at+in.Len()])
			at += in.Len()
		}
		out.Batch = rowset.With(out.Batch, &rowset.IntColumn{Key: p.rank, Values: ranks})
	}
	return out, nil
}

// fill writes one code to all rows.
func fill(codes []int32, code int32) {
	for i := range codes {
		codes[i] = code
	}
}

// count writes the ranks 1, 2, 3 …
func count(ranks []int64) {
	for i := range ranks {
		ranks[i] = int64(i) + 1
	}
}
