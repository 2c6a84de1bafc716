package explain

import (
	"slices"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Asked says what to explain. Immutable; any goroutine.
type Asked struct {
	All bool    // the returned rows
	IDs []int64 // the returned rows with these ids, and why the other ids are missing; for rows whose ids are integers
	// Items are ids, too: of an entity, as in "product:7" or "product:sku-1", or of any entity whose ids are strings, as in "sku-1".
	Items []string
}

// An item is an id that was asked for. Immutable.
type item struct {
	id     int64
	text   string           // as it was asked for; "": it was asked for by an integer
	entity *registry.Entity // nil: any whose ids are of its type
	texts  bool             // it is a text, and id is its number
	known  bool             // some row may have it
}

// item returns the item that a text names.
func (r *Run) item(text string) item {
	it, id := item{text: text, texts: true}, text
	if name, rest, ok := strings.Cut(text, ":"); ok {
		if e, ok := r.Graph.Registry.Entity(name); ok {
			it.entity, it.texts, id = e, e.TextIDs(), rest
		}
	}
	if it.texts {
		if ids := r.Params.IDs(); ids != nil {
			it.id, it.known = ids.Find(id)
		}
		return it
	}
	it.id, it.known = rowset.ParseInt([]byte(id))
	return it
}

// in returns the position of the first active row of a node's result that is the item, or -1.
func (it *item) in(n *plan.Node, rows rowset.RowSet) int {
	if !it.of(n) {
		return -1
	}
	return find(rows, it.id)
}

// of reports whether the rows of a node have the item's entity.
func (it *item) of(n *plan.Node) bool {
	if it.entity != nil {
		return it.known && n.Entity == it.entity
	}
	return it.known && n.Entity.TextIDs() == it.texts
}

// idText returns the id of a row of a node as text, or "" if it is an integer.
func (r *Run) idText(n *plan.Node, id int64) string {
	if ids := r.Params.IDs(); ids != nil && n.Entity.TextIDs() {
		if texts := ids.Texts(); id < int64(texts.Len()) {
			return texts.At(id)
		}
	}
	return ""
}

// Bounds of one explanation.
const (
	RowsMax = 100 // returned rows that are explained
	IDsMax  = 100 // ids that a request may ask for
)

// Of explains the answer of a run.
func (r *Run) Of(asked Asked) *Explanation {
	e := &Explanation{Rows: []Row{}}
	items := make([]item, 0, len(asked.IDs)+len(asked.Items))
	for _, id := range asked.IDs {
		items = append(items, item{id: id, known: true})
	}
	for _, text := range asked.Items {
		items = append(items, r.item(text))
	}
	returned := make([]bool, len(items))
	for i, output := range r.Graph.Outputs {
		out := r.Rows[output].Out
		for pos := range out.Len() {
			wanted := false
			for k := range items {
				if it := &items[k]; it.id == out.ID(pos) && it.of(r.Graph.Nodes[output]) {
					wanted, returned[k] = true, true
				}
			}
			switch {
			case !wanted && !asked.All:
			case len(e.Rows) == RowsMax:
				e.LeftOut++
			default:
				e.Rows = append(e.Rows, r.row(i, pos))
			}
		}
	}
	for i := range items {
		if !returned[i] && !slices.Contains(items[:i], items[i]) {
			e.Missing = append(e.Missing, r.missing(&items[i]))
		}
	}
	return e
}

// row explains one row of the i-th output.
func (r *Run) row(i, pos int) Row {
	end := at{r.Graph.Outputs[i], pos}
	n, out := r.Graph.Nodes[end.node], r.Rows[end.node].Out
	row := Row{
		ID: out.ID(pos), Text: r.idText(n, out.ID(pos)), Output: n.ID, Label: n.Trace, Rank: pos + 1, Of: out.Len(),
		Sources: r.sources(end), Columns: r.columns(end), Steps: r.steps(end),
	}
	if r.Graph.OutputNames != nil {
		row.Name = r.Graph.OutputNames[i]
	}
	return row
}

// way returns the rows that became this row, from the node that made it to end.
func (r *Run) way(end at) []at {
	way := []at{end}
	for here := end; ; {
		from, _ := r.from(here)
		if len(from) == 0 {
			break
		}
		here = from[0]
		way = append(way, here)
	}
	slices.Reverse(way)
	return way
}

// sourcesMax bounds the sources of a row.
const sourcesMax = 64

// sources returns the nodes that made the row, over all rows that were merged into it.
func (r *Run) sources(end at) []Source {
	sources := []Source{}
	seen := map[at]bool{end: true}
	for todo := []at{end}; len(todo) > 0 && len(sources) < sourcesMax; {
		here := todo[0]
		todo = todo[1:]
		from, _ := r.from(here)
		if len(from) == 0 {
			n := r.Graph.Nodes[here.node]
			sources = append(sources, Source{Node: n.ID, Op: n.Op, Label: n.Trace, Rank: here.pos + 1, Of: r.Rows[here.node].Out.Len(), Cached: r.cached(here.node)})
		}
		for _, next := range from {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return sources
}

// columns returns the columns of a row that are not null, with the node that wrote each.
func (r *Run) columns(end at) (columns []Column) {
	out := r.Rows[end.node].Out
	for _, key := range out.Batch.AppendKeys(nil) {
		value := valueOf(out, end.pos, key)
		if value == nil {
			continue
		}
		writer := r.writer(end, key)
		n := r.Graph.Nodes[writer]
		columns = append(columns, Column{Name: r.name(key), Value: Value{value}, Node: n.ID, Op: n.Op, Label: n.Trace, Cached: r.cached(writer)})
	}
	return columns
}

// cached returns what a node took from the engine's memory, or nil.
func (r *Run) cached(node int) *Cached {
	use := r.Rows[node].Cached
	if use.Values == 0 {
		return nil
	}
	return &Cached{Values: use.Values, Age: use.Age.Milliseconds()}
}

// writer returns the node that wrote a column of a row. A node that took the column from a row of another node did not
// write it.
func (r *Run) writer(here at, key registry.KeyID) int {
	for {
		from, joined := r.from(here)
		if r.writes(here.node, key) {
			if !slices.Contains(columnsOf(r.Graph, here.node, tasks.SpecOf(r.Graph.Nodes[here.node]).RefReads), key) {
				return here.node
			}
			from = joined
		}
		i := slices.IndexFunc(from, func(before at) bool { return has(r.Rows[before.node].Out, key) })
		if i < 0 {
			return here.node
		}
		here = from[i]
	}
}

// writes reports whether a node has written a column, as its task says.
func (r *Run) writes(node int, key registry.KeyID) bool {
	if r.Rows[node].StoodIn {
		return false
	}
	return slices.Contains(columnsOf(r.Graph, node, tasks.SpecOf(r.Graph.Nodes[node]).Writes), key)
}

// columnsOf returns the columns that a Reads, RefReads or Writes names for a node.
func columnsOf(g *plan.Graph, node int, columns plan.ColumnsOf) []registry.KeyID {
	if columns == nil {
		return nil
	}
	return columns(g.Nodes[node], g.Registry)
}

func has(rows rowset.RowSet, key registry.KeyID) bool {
	return rows.Batch != nil && rows.Batch.Has(key)
}

// valueOf returns the value of a row in a column, nil for null.
func valueOf(rows rowset.RowSet, pos int, key registry.KeyID) any {
	row := int(rows.Row(pos))
	if key == registry.IDKey {
		return rows.Batch.IDs[row]
	}
	if c := rows.Batch.Column(key); c != nil {
		return c.Any(row)
	}
	return nil
}
