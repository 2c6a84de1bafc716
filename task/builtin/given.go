package builtin

import (
	"fmt"
	"math"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// given makes rows of the ids that a request brings.
func given() task.Spec {
	lists := plan.SourceRule{ParamTypes: []registry.Type{registry.IntList, registry.StringList}}
	floats := plan.SourceRule{ParamTypes: []registry.Type{registry.FloatList}}
	return task.Spec{
		Op:  "core::given",
		Doc: "Makes rows of the ids that the request brings, with their scores.",
		Params: []plan.ParamSchema{
			{Name: "ids_param_id", Type: plan.Int, Required: true, IsParam: true, Source: lists,
				Doc: "The list of ids: of integers, or of strings if the ids of `entity` are strings."},
			{Name: "scores_param_id", Type: plan.Int, IsParam: true, Source: floats,
				Doc: "A list of numbers, one for each id. Without it the rows have no column."},
			{Name: "out_key", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true},
				Doc: "The column for the scores. Without it the key is `score`."},
			entityParam,
		},
		Strict:    true,
		Prepare:   prepareGiven,
		Output:    task.Source,
		RowsMax:   func(*plan.Node, int64) int64 { return registry.ListItemsMax },
		Writes:    givenWrites,
		IDs:       plan.ReadsTextIDs,
		OfRequest: true,
		Inline:    true,
		Forgets:   true,
		Run:       runGiven,
		Reference: givenReference(),
	}
}

func givenReference() task.Reference {
	return task.Reference{
		Text: "`given` is the source of a plan that ranks what the caller has: the results of a search engine, the items of a slate. " +
			"The request brings the ids, and perhaps a number for each, such as the score of the search. Both are [parameters](../../data.md#parameters) of the registry, of its context or of `param_overrides`.",
		Writes:     "The column of `out_key` if the node has `scores`.",
		Order:      "The rows follow the list.",
		Nulls:      "A `null` among the scores is a null of the column.",
		Empty:      "An empty list gives no rows.",
		Duplicates: "An id that is there twice makes one row: its first place and the score of that place.",
		Failures: "A request without the list of ids gets status 400, and so does one without the scores that the plan asks for, or with more or fewer scores than ids. " +
			"A list has at most 65,536 items. A text is an id of 1 to 256 bytes, or the status is 400. The node fails if the request may not make so many rows (`--max_rows`).",
		Example: task.Example{
			Plan:    "ctx.given({ ids: P.ids, scores: P.bm25 })\n  .sort({ by: Key.score, order: \"desc\" })",
			Request: `{"user_id": 1, "context": {"ids": [7, 8], "bm25": [0.5, 2]}}`,
		},
	}
}

// givenNode is a given's prepared node. Immutable; any goroutine.
type givenNode struct {
	ids    *registry.Param
	scores *registry.Param // nil: no column
	out    *registry.Key   // of the column
}

func prepareGiven(n *plan.Node, reg *registry.Registry) (any, error) {
	g, p := new(givenNode), &n.Params
	g.ids, _ = reg.Param(registry.ParamID(p.Int("ids_param_id")))
	entity, _ := reg.Entity(p.String("entity"))
	switch texts := g.ids.Type == registry.StringList; {
	case texts && !entity.TextIDs():
		return nil, plan.ParamErrorf("ids_param_id", "is %s of type %s, and the ids are integers; ids that are strings need an entity with such ids", g.ids.Name, g.ids.Type)
	case !texts && entity.TextIDs():
		return nil, plan.ParamErrorf("ids_param_id", "is %s of type %s, and the ids of entity %s are strings", g.ids.Name, g.ids.Type, entity.Name)
	case !p.Given("scores_param_id") && p.Given("out_key"):
		return nil, plan.ParamErrorf("out_key", "has no effect without scores")
	case !p.Given("scores_param_id"):
		return g, nil
	}
	g.scores, _ = reg.Param(registry.ParamID(p.Int("scores_param_id")))
	if g.out = p.Key("out_key"); g.out == nil {
		score, ok := reg.KeyByName("score")
		if !ok || score.Type != registry.Float || !score.Writable {
			return nil, plan.ParamErrorf("out_key", "is missing: the registry has no key score of type float that plans may write")
		}
		g.out = score
	}
	return g, nil
}

func givenWrites(n *plan.Node, _ *registry.Registry) []registry.KeyID {
	if out := n.Prepared.(*givenNode).out; out != nil {
		return []registry.KeyID{out.ID}
	}
	return nil
}

// Parameter implements plan.RequestRule.
func (g *givenNode) Parameter() *registry.Param { return g.ids }

// Check implements plan.RequestRule.
func (g *givenNode) Check(params *expr.Params) error {
	ids, there := params.IntList(g.ids.ID)
	texts, isTexts := params.StringList(g.ids.ID)
	count := len(ids) + len(texts)
	if !there && !isTexts {
		return fmt.Errorf("%s is missing, and has the ids of the rows", plan.Noun(g.ids))
	}
	for i, text := range texts {
		if !rowset.ValidID(text) {
			return fmt.Errorf("%s must have ids of 1 to %d bytes, but item %d is %s", plan.Noun(g.ids), rowset.IDBytesMax, i+1, errtext.Quote(text))
		}
	}
	if g.scores == nil {
		return nil
	}
	switch scores, there := params.FloatList(g.scores.ID); {
	case !there:
		return fmt.Errorf("%s is missing, and has the scores of the %d ids of %s", plan.Noun(g.scores), count, errtext.Quote(g.ids.Name))
	case len(scores) != count:
		return fmt.Errorf("%s must have a score for each of the %d ids of %s, got %d", plan.Noun(g.scores), count, errtext.Quote(g.ids.Name), len(scores))
	}
	return nil
}

func runGiven(c *task.Ctx) (rowset.RowSet, error) {
	g := c.Node.Prepared.(*givenNode)
	if err := g.Check(c.Params); err != nil {
		return rowset.RowSet{}, task.Invalidf("%v", err)
	}
	ints, _ := c.Params.IntList(g.ids.ID)
	texts, _ := c.Params.StringList(g.ids.ID)
	count := len(ints) + len(texts)
	if err := c.MakeRows(int64(count)); err != nil {
		return rowset.RowSet{}, err
	}
	ids := append(c.Memory.IDs(count)[:0], ints...)
	if len(texts) > 0 {
		list, err := make([][]byte, len(texts)), error(nil)
		for i, text := range texts {
			list[i] = []byte(text)
		}
		if ids, err = c.NumberIDs(ids, list...); err != nil {
			return rowset.RowSet{}, err
		}
	}
	batch := rowset.NewBatch(ids)
	if g.scores != nil {
		scores, _ := c.Params.FloatList(g.scores.ID)
		batch = rowset.NewBatch(ids, scoreColumn(c, g.out.ID, scores))
	}
	return rowset.Dedupe(c, c.Memory, rowset.Dense(batch), rowset.Distinction{By: registry.IDKey, Keep: rowset.KeepFirst})
}

// scoreColumn returns a column of these numbers, of which NaN stands for null.
func scoreColumn(c *task.Ctx, key registry.KeyID, scores []float64) *rowset.FloatColumn {
	column := &rowset.FloatColumn{Key: key, Values: c.Memory.Floats(len(scores))}
	copy(column.Values, scores)
	for i, score := range scores {
		if !math.IsNaN(score) {
			continue
		}
		if column.Valid == nil {
			column.Valid = rowset.NewBitmap(len(scores))
			column.Valid.SetRange(0, len(scores))
		}
		column.Valid.Clear(i)
	}
	return column
}
