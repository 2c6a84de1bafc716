package builtin

import (
	"time"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// residentRowsMax is the most rows that resident makes, and residentRows is the default.
const (
	residentRowsMax = 1_000_000
	residentRows    = 100_000
)

// residentOp is the op of resident.
const residentOp = "core::resident"

// resident makes rows from the result of another plan, which the engine keeps.
func resident() task.Spec {
	refresh := 0.1
	return task.Spec{
		Op:  residentOp,
		Doc: "Makes the rows of another plan, which the engine keeps in memory for all requests.",
		Params: []plan.ParamSchema{
			{Name: "plan", Type: plan.String, Required: true, IsPlan: true, Doc: "The name of the other plan."},
			{Name: "fields", Type: plan.Key, List: true, MaxItems: lookupFieldsMax, Source: plan.SourceRule{KeyTypes: lookupTypes, Writes: true},
				Doc: "The columns of that plan's rows that the result has."},
			{Name: "refresh", Type: plan.Float, FloatValue: 10, Source: plan.SourceRule{FloatMin: &refresh},
				Doc: "After how many seconds the engine runs that plan again. The least of all nodes that read its rows counts."},
			{Name: "limit", Type: plan.Int, IntValue: residentRows, Source: between(1, residentRowsMax), Doc: "How many of the rows the result has at most: the first ones."},
			entityParam,
		},
		Strict:    true,
		IDs:       plan.ReadsTextIDs,
		Output:    task.Source,
		RowsMax:   perRow("limit"),
		Writes:    task.KeyParams("fields"),
		Reference: residentReference(),
		Inline:    true,
		Forgets:   true,
		Run:       runResident,
	}
}

func residentReference() task.Reference {
	return task.Reference{
		Text: "`resident` is for what is the same for all users: all articles with their vectors, what is popular, the prices of a shop. Another plan of the folder reads, " +
			"computes and sorts it. The engine runs that plan once and keeps its rows. A request takes them as they are: it reads and copies nothing.\n\n" +
			"The engine runs that plan when a plan that reads its rows is loaded, and then every `refresh` seconds beside the requests. " +
			"With a [cache](../../cache.md) that Redis tells of changes such a run asks Redis for nothing but what has changed. A request ends with the rows that it began with. " +
			"If a run fails, the engine keeps the rows of the last one, and tries again.\n\n" +
			"That plan has one output, and must not depend on a request: no `viewer`, no service, no key with the user or a field of the context, no integer that [a request gives](../../writing-a-plan.md#integers-that-requests-give), and no `resident`. " +
			"Its parameters have their defaults. It is an ordinary plan otherwise, and may be asked for itself. See [resident rows](../../data.md#resident-rows).",
		Writes:     "The columns of `fields`. The other plan returns each of them.",
		Order:      "The rows of that plan, in its order.",
		Nulls:      "The nulls of that plan.",
		Empty:      "A plan that returns no rows gives none.",
		Duplicates: "As that plan returns them.",
		Failures: "The node fails if the first run of that plan has failed, or has not ended, with the reason. It fails if that plan returns no column of `fields`, or rows of another entity, " +
			"and if the request may not make so many rows (`--max_rows`).",
		Example: task.Example{
			Items: "ctx.candidates({ endpoint: redis, key: \"items\" })\n  .lookup({ endpoint: redis, key: \"article:{id}\", fields: [Key.title, Key.likes], missing: \"drop\" })",
			Plan:  "ctx.resident({ plan: \"items\", fields: [Key.title, Key.likes], refresh: 5 })\n  .sort({ by: Key.likes, order: \"desc\" })\n  .take({ count: 2 })",
			Redis: []string{"RPUSH items 11 12 13", "HSET article:11 title 'Rain in June' likes 12", "HSET article:12 title 'Snow in May' likes 7", "HSET article:13 title 'Sun' likes 40"},
		},
	}
}

// Resident returns the plan whose rows a node reads from memory, and how often that plan runs. ok is false for a node of another op.
func Resident(n *plan.Node) (name string, refresh time.Duration, ok bool) {
	if n.Op != residentOp {
		return "", 0, false
	}
	return n.Params.String("plan"), time.Duration(n.Params.Float("refresh") * float64(time.Second)), true
}

// CheckResident returns why the engine cannot keep the rows of a plan for all requests, or nil: what makes it depend on one.
func CheckResident(g *plan.Graph) error {
	switch {
	case len(g.Outputs) != 1:
		return task.Invalidf("plan %s has %d outputs, and only the rows of one can be kept", g.Name, len(g.Outputs))
	case len(g.Resident) > 0:
		return task.Invalidf("plan %s reads the rows of plan %s, and so its own cannot be kept", g.Name, g.Resident[0])
	case len(g.RequestRules) > 0:
		return task.Invalidf("plan %s takes %s from requests, and so its rows cannot be kept", g.Name, g.RequestRules[0].Parameter().Name)
	}
	for _, n := range g.Nodes {
		if what := dependsOn(n); what != "" {
			return task.Invalidf("node %s (%s) of plan %s depends on %s, and so the rows of the plan cannot be kept", n.ID, n.Op, g.Name, what)
		}
	}
	return nil
}

// CheckReader returns why a node of resident cannot read the rows of g, its plan, or nil. It finds what is known
// before g runs.
func CheckReader(n *plan.Node, g *plan.Graph) error {
	if err := CheckResident(g); err != nil {
		return err
	}
	if err := sameEntity(n, g.Name, g.Nodes[g.Outputs[0]].Entity); err != nil {
		return err
	}
	for _, key := range n.Params.Keys("fields") {
		if !g.Writes(0, key.ID) {
			return lacksColumn(g.Name, key)
		}
	}
	return nil
}

func sameEntity(n *plan.Node, name string, e *registry.Entity) error {
	if e == n.Entity {
		return nil
	}
	return task.Invalidf("plan %s returns rows of %s, and the node is for %s", name, entityName(e), entityName(n.Entity))
}

func lacksColumn(name string, key *registry.Key) error {
	return task.Invalidf("plan %s returns no column %s of type %s", name, key.Name, key.TypeName())
}

// dependsOn says on which part of a request a node depends, "" if on none.
func dependsOn(n *plan.Node) string {
	if n.Schema.OfRequest {
		return "the user"
	}
	for i := range n.Schema.Params {
		p := &n.Schema.Params[i]
		if p.Type != plan.Template {
			continue
		}
		templates := n.Params.Templates(p.Name)
		if t := n.Params.Template(p.Name); t != nil {
			templates = append(templates, t)
		}
		for _, t := range templates {
			for _, part := range t.AllParts() {
				switch {
				case part.User:
					return "the user"
				case part.Param != nil:
					return "the context of the request (" + part.Param.Name + ")"
				}
			}
		}
	}
	if s := statedOf(n); s != nil && s.order == drawn {
		return "a reply of " + s.name + ", which no two requests may share"
	}
	return ""
}

func runResident(c *task.Ctx) (rowset.RowSet, error) {
	p := &c.Node.Params
	kept, err := tasks.Resident(c, p.String("plan"))
	if err != nil {
		return rowset.RowSet{}, err
	}
	if err := sameEntity(c.Node, p.String("plan"), kept.Entity); err != nil {
		return rowset.RowSet{}, err
	}
	fields := p.Keys("fields")
	rows := kept.Rows
	for _, key := range fields {
		if column := rows.Batch.Column(key.ID); column == nil || column.Type() != key.Type {
			return rowset.RowSet{}, lacksColumn(p.String("plan"), key)
		}
	}
	if err := c.MakeRows(int64(rows.Batch.Len())); err != nil {
		return rowset.RowSet{}, err
	}
	rows.Batch = rowset.Project(rows.Batch, fields, false)
	rows.N = min(rows.N, int(p.Int("limit")))
	return rows, nil
}

func entityName(e *registry.Entity) string {
	if e == nil {
		return "no entity"
	}
	return "entity " + e.Name
}
