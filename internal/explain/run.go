package explain

import (
	"slices"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
)

// tasks is the view that engines have of package task.
var tasks = task.Engine(taskrun.Key{})

// Run is a run of a plan that is over, with the rows of each node. One goroutine at a time.
type Run struct {
	Graph  *plan.Graph
	Rows   []scheduler.NodeRows // by node
	UserID int64
	Params expr.Params

	positions map[side]map[int32]int
	accounts  map[int]task.Account // by node: what the second runs tell
}

// side names the rows of one side of a node.
type side struct{ node, side int }

// node returns the arguments and the result of a node's run, as Spec.Explain takes them.
func (r *Run) node(i int) (*task.Ctx, rowset.RowSet) {
	rows := &r.Rows[i]
	return &task.Ctx{
		Node: r.Graph.Nodes[i], Inputs: rows.Inputs, Refs: rows.Refs, UserID: r.UserID, Params: &r.Params,
		Registry: r.Graph.Registry,
	}, rows.Out
}

// account runs a node a second time, unless it has done so before, and returns what that run reports about its rows.
// A failed node reports nothing.
func (r *Run) account(i int) task.Account {
	account, ok := r.accounts[i]
	if ok {
		return account
	}
	c, out := r.node(i)
	if explain := tasks.SpecOf(c.Node).Explain; explain != nil && !r.Rows[i].StoodIn {
		account = explain(c, out)
	}
	if r.accounts == nil {
		r.accounts = make(map[int]task.Account)
	}
	r.accounts[i] = account
	return account
}

// reason returns what a node did to a row, as its task reports.
func (r *Run) reason(node int, row task.RowAt) task.Reason {
	if tell := r.account(node).Reason; tell != nil {
		return tell(row)
	}
	return task.Reason{}
}

// before returns the node whose result is a side of another one.
func (r *Run) before(node, side int) int {
	n := r.Graph.Nodes[node]
	if side < len(n.Inputs) {
		return n.Inputs[side]
	}
	return n.Refs[side-len(n.Inputs)]
}

// at is a row of a node's result.
type at struct{ node, pos int }

// from returns the rows of other nodes' results from which a row comes. The first one gave it its id. joined are rows
// that gave it columns, but neither its id nor its place: a node that keeps the rows of its input gets them from its
// node references.
func (r *Run) from(here at) (rows, joined []at) {
	n := r.Graph.Nodes[here.node]
	if r.Rows[here.node].StoodIn {
		return standIn(n, here.pos), nil
	}
	for _, row := range r.sides(here.node, here.pos) {
		before := at{r.before(here.node, row.Side), row.Pos}
		if !passes(n, row.Side) {
			joined = append(joined, before)
		} else {
			rows = append(rows, before)
		}
	}
	return rows, joined
}

// passes reports whether rows of a side of a node may become rows of its result. A node that keeps the rows of its
// input only looks up those of its node references, as a join does with its right side.
func passes(n *plan.Node, side int) bool {
	shape := tasks.SpecOf(n).Output
	return side < len(n.Inputs) || shape != task.Pick && shape != task.SameRows
}

// standIn returns the row that replaces a row of a failed node.
func standIn(n *plan.Node, pos int) []at {
	switch n.OnError {
	case plan.OnErrorFallback:
		return []at{{n.Fallback.Index, pos}}
	case plan.OnErrorSkip, plan.OnErrorNull:
		return []at{{n.Inputs[0], pos}}
	default:
		return nil
	}
}

// sides returns the rows of a node's inputs and references from which a row of its result comes.
func (r *Run) sides(node, pos int) []task.RowAt {
	c, out := r.node(node)
	spec := tasks.SpecOf(c.Node)
	if from := r.account(node).From; from != nil {
		return slices.DeleteFunc(from(pos), func(at task.RowAt) bool {
			return at.Side < 0 || at.Side >= c.Sides() || at.Pos < 0 || at.Pos >= c.SideRows(out, at.Side).Len()
		})
	}
	switch spec.Output {
	case task.Source, task.Expand:
		return nil
	case task.SameRows, task.PassThrough, task.Prefix:
		return []task.RowAt{{Side: 0, Pos: pos}}
	case task.Subset, task.Permutation, task.Pick, task.Window:
		if at, ok := r.positionOf(node, 0, c.Inputs[0], out.Row(pos)); ok {
			return []task.RowAt{{Side: 0, Pos: at}}
		}
		return nil
	case task.Append:
		for s := range c.Sides() {
			n := c.SideRows(out, s).Len()
			if pos < n {
				return []task.RowAt{{Side: s, Pos: pos}}
			}
			pos -= n
		}
		return nil
	default:
		return r.sameID(c, out, out.ID(pos))
	}
}

// positionOf returns the position of a row of the batch among the active rows of a side.
func (r *Run) positionOf(node, s int, rows rowset.RowSet, row int32) (int, bool) {
	if rows.Rows == nil {
		return int(row), int(row) < rows.N
	}
	key := side{node, s}
	positions, ok := r.positions[key]
	if !ok {
		positions = make(map[int32]int, rows.N)
		for i, row := range rows.Rows {
			positions[row] = i
		}
		if r.positions == nil {
			r.positions = make(map[side]map[int32]int)
		}
		r.positions[key] = positions
	}
	at, ok := positions[row]
	return at, ok
}

// sameID returns the first row of an id on each side that has one.
func (r *Run) sameID(c *task.Ctx, out rowset.RowSet, id int64) (from []task.RowAt) {
	for s := range c.Sides() {
		if at := find(c.SideRows(out, s), id); at >= 0 && r.Graph.Nodes[r.before(c.Node.Index, s)].Entity.TextIDs() == c.Node.Entity.TextIDs() {
			from = append(from, task.RowAt{Side: s, Pos: at})
		}
	}
	return from
}

// find returns the position of the first active row with that id, or -1.
func find(rows rowset.RowSet, id int64) int {
	for i := range rows.Len() {
		if rows.ID(i) == id {
			return i
		}
	}
	return -1
}

// name returns the name of a key, or "" for none.
func (r *Run) name(key registry.KeyID) string {
	if k, ok := r.Graph.Registry.Key(key); ok {
		return k.Name
	}
	return ""
}
