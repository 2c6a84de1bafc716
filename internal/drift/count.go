package drift

import (
	"weak"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
)

// view says where the columns of a plan are counted. It keeps nothing of a generation that the engine has replaced. Immutable.
type view struct {
	graph weak.Pointer[plan.Graph]
	reads []place // where a node reads a column first, by the order of the plan
	wrote []place // where a column that only plans write has its last value
	asked []place // the columns that each node may take from memory
}

// place is a column at a node.
type place struct {
	node int
	key  registry.Key // a copy
	refs bool         // of the node's references, not of its inputs
}

func newView(g *plan.Graph) *view {
	v := &view{graph: weak.Make(g)}
	seen, last := map[registry.KeyID]bool{}, map[registry.KeyID]int{}
	for i, n := range g.Nodes {
		each := func(of plan.ColumnsOf, then func(*registry.Key)) {
			if of == nil {
				return
			}
			for _, id := range of(n, g.Registry) {
				if key, ok := g.Registry.Key(id); ok && id != registry.IDKey {
					then(key)
				}
			}
		}
		read := func(of plan.ColumnsOf, refs bool) {
			each(of, func(key *registry.Key) {
				if !seen[key.ID] {
					seen[key.ID] = true
					v.reads = append(v.reads, place{i, *key, refs})
				}
			})
		}
		read(n.Schema.Reads, false)
		read(n.Schema.RefReads, true)
		each(n.Schema.Writes, func(key *registry.Key) {
			if n.Endpoint != nil && n.Endpoint.Kind == registry.Redis {
				v.asked = append(v.asked, place{node: i, key: *key})
			} else if key.Writable && (key.Type == registry.Float || key.Type == registry.Int) {
				last[key.ID] = i
			}
		})
	}
	for id, node := range last {
		key, _ := g.Registry.Key(id)
		v.wrote = append(v.wrote, place{node: node, key: *key})
	}
	return v
}

// count counts a request that has ended.
func (s *Series) count(g *plan.Graph, rows []scheduler.NodeRows) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.watch.Clock.Now()
	s.counted++
	if s.view == nil || s.view.graph.Value() != g {
		s.view = newView(g)
	}
	for i := range s.view.reads {
		p := &s.view.reads[i]
		from := rows[p.node].Inputs
		if p.refs {
			from = rows[p.node].Refs
		}
		for _, in := range from {
			s.column(&p.key).read(in, &p.key)
		}
	}
	for i := range s.view.wrote {
		p := &s.view.wrote[i]
		c := s.column(&p.key)
		if c.scores == nil {
			c.scores = new(scores)
		}
		eachValue(rows[p.node].Out, &p.key, func(column rowset.Column, row int) {
			switch of := column.(type) {
			case *rowset.FloatColumn:
				if x, ok := of.Value(row); ok {
					c.scores.add(x, now)
				}
			case *rowset.IntColumn:
				if x, ok := of.Value(row); ok {
					c.scores.add(float64(x), now)
				}
			}
		})
	}
	for i := range s.view.asked {
		p := &s.view.asked[i]
		if use := rows[p.node].Cached; use.Values > 0 {
			c := s.column(&p.key)
			c.Memory += uint64(use.Values)
			c.Old += uint64(use.Old)
		}
	}
}

func (s *Series) column(key *registry.Key) *column {
	c := s.columns[key.Name]
	if c == nil {
		c = &column{Column: Column{Plan: s.plan, Alias: s.alias, Side: s.side, Name: key.Name}}
		s.columns[key.Name] = c
	}
	return c
}

// read counts the rows that a node has read the column of. Rows without the column have nulls.
func (c *column) read(in rowset.RowSet, key *registry.Key) {
	eachValue(in, key, func(column rowset.Column, row int) {
		c.Rows++
		switch {
		case column == nil || column.Any(row) == nil:
			c.Nulls++
		case key.Default != nil && rowset.HasValue(column, row, key.Default):
			c.Defaults++
		}
	})
}

// eachValue calls do for rows of a batch, RowsMax of them at most and evenly spread over the active ones. A nil column: rows do not have it.
func eachValue(in rowset.RowSet, key *registry.Key, do func(column rowset.Column, row int)) {
	if in.Batch == nil {
		return
	}
	column := in.Batch.Column(key.ID)
	for i := range min(in.N, RowsMax) {
		do(column, int(in.Row(i*in.N/min(in.N, RowsMax))))
	}
}
