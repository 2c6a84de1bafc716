package drift

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
)

// count counts a request that has ended: each column where a node reads it first, by the order of the plan; the numbers of one that only
// plans write, as the last node that writes it leaves them; and what nodes had from memory. It keeps nothing of the plan.
func (s *Series) count(g *plan.Graph, rows []scheduler.NodeRows) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted++
	seen, wrote := map[registry.KeyID]bool{}, map[*registry.Key]rowset.RowSet{}
	for i, n := range g.Nodes[:min(len(g.Nodes), len(rows))] { // A run that broke off has no rows.
		each := func(of plan.ColumnsOf, do func(*registry.Key)) {
			if of == nil {
				return
			}
			for _, id := range of(n, g.Registry) {
				if key, ok := g.Registry.Key(id); ok && id != registry.IDKey {
					do(key)
				}
			}
		}
		read := func(of plan.ColumnsOf, from []rowset.RowSet) {
			each(of, func(key *registry.Key) {
				for _, in := range from {
					if !seen[key.ID] {
						s.column(key).read(in, key)
					}
				}
				seen[key.ID] = true
			})
		}
		read(n.Schema.Reads, rows[i].Inputs)
		read(n.Schema.RefReads, rows[i].Refs)
		each(n.Schema.Writes, func(key *registry.Key) {
			if n.Endpoint == nil || n.Endpoint.Kind != registry.Redis {
				if key.Writable && (key.Type == registry.Float || key.Type == registry.Int) {
					wrote[key] = rows[i].Out
				}
			} else if use := rows[i].Cached; use.Values > 0 {
				c := s.column(key)
				c.Memory += uint64(use.Values)
				c.Old += uint64(use.Old)
			}
		})
	}
	now := s.watch.Clock.Now()
	for key, out := range wrote {
		c := s.column(key)
		if c.scores == nil {
			c.scores = new(scores)
		}
		eachValue(out, key, func(column rowset.Column, row int) {
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
