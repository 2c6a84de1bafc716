package builtin

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// featureTypes are the types of columns that a model reads.
var featureTypes = []registry.Type{registry.Int, registry.Float, registry.Bool}

// model scores rows by a gradient-boosted tree model of a set.
func model(models *gbdt.Set) task.Spec {
	return task.Spec{
		Op:  "core::model",
		Doc: "Scores the rows by a gradient-boosted tree model that XGBoost or LightGBM saved.",
		Params: []plan.ParamSchema{
			{Name: "model", Type: plan.String, Required: true, Doc: "The name of the model: `clicks` is the file `clicks.json` of XGBoost or `clicks.lightgbm` of LightGBM in the folder of models."},
			outKeyParam("The column for the prediction."),
			{Name: "features", Type: plan.Key, List: true, MaxItems: gbdt.MaxFeatures, Source: plan.SourceRule{KeyTypes: featureTypes},
				Doc: "The columns of the model's features, in the order of training. Without it they have the names that the file gives the features."},
			{Name: "output", Type: plan.Enum, StrValue: "prediction", Source: plan.SourceRule{OneOf: []string{"prediction", "margin"}},
				Doc: "`prediction`: the value that the library's `predict` returns. `margin`: the value before the objective's link, such as the logarithm of the odds."},
		},
		Strict: true,
		Inputs: 1,
		IDs:    plan.MovesTextIDs,
		Output: task.SameRows,
		Scores: true,
		Reads: func(n *plan.Node, _ *registry.Registry) []registry.KeyID {
			return n.Prepared.(*scorer).reads()
		},
		Writes: task.KeyParams("out_key"),
		Prepare: func(n *plan.Node, reg *registry.Registry) (any, error) {
			return newScorer(models, n, reg)
		},
		Reference: task.Reference{
			Text: "Every row gets the prediction of the model for its columns, in the arithmetic of its library: XGBoost compares and adds in float32, LightGBM in float64. The engine " +
				"loads the folder of models as it opens (`--model_dir`); [Scores of a model](../../models.md) says which models it takes.",
			Reads:      "A column of int, float or bool for each feature that some split of the model reads.",
			Writes:     "The column of `out_key`.",
			Order:      "The rows keep their order.",
			Nulls:      "A null is a missing value: it takes the default direction of each split, or what LightGBM's split says of missing values. So does every row if the rows have no such column. The prediction is never null.",
			Empty:      "No rows give no rows.",
			Duplicates: "Each row has its own prediction, also those with the same id.",
			Failures: "A prediction that is not finite fails the node. A plan does not load if there is no such model, if the registry has no key for a feature, " +
				"or if nothing writes its column.",
			Example: task.Example{
				Plan: `ctx.viewer({ endpoint: redis }).follow({ endpoint: redis, fanout: 4 })
  .vm({ outKey: Key.score, expr: Key.id * 0.01 })
  .model({ model: "example", features: [Key.id, Key.score], outKey: Key.final_score })`,
			},
		},
		Expensive: true,
		Forgets:   true,
		Run:       runModel,
		Explain:   explainModel,
	}
}

// A scorer is a model and the keys of its features. Immutable; any goroutine.
type scorer struct {
	model  *gbdt.Model
	keys   []registry.KeyID // by feature; 0: no split reads it
	output gbdt.Output
}

// newScorer finds the model of a node and a key for each of its features.
func newScorer(models *gbdt.Set, n *plan.Node, reg *registry.Registry) (*scorer, error) {
	p := &n.Params
	m, err := models.Get(p.String("model"))
	if err != nil {
		return nil, plan.ParamErrorf("model", "%v", err)
	}
	s := &scorer{model: m, keys: make([]registry.KeyID, m.Features())}
	if p.String("output") == "margin" {
		s.output = gbdt.Margin
	}
	listed, names := p.Keys("features"), m.Names()
	switch {
	case p.Given("features") && len(listed) != m.Features():
		return nil, plan.ParamErrorf("features", "lists %d columns, and the model has %d features", len(listed), m.Features())
	case !p.Given("features") && names == nil:
		return nil, plan.ParamErrorf("features", "is missing: the model does not name its %d features", m.Features())
	}
	for f := range s.keys {
		if !m.Uses(f) {
			continue
		}
		if p.Given("features") {
			s.keys[f] = listed[f].ID
			continue
		}
		key, ok := reg.KeyByName(names[f])
		switch {
		case !ok:
			return nil, plan.ParamErrorf("model", "feature %s is not a registered key; features can list the columns", errtext.Quote(names[f]))
		case !slices.Contains(featureTypes, key.Type):
			return nil, plan.ParamErrorf("model", "feature %s is a key of type %s, must be int, float or bool", errtext.Quote(names[f]), key.Type)
		}
		s.keys[f] = key.ID
	}
	return s, nil
}

// reads returns the keys of the features that the model reads.
func (s *scorer) reads() []registry.KeyID {
	keys := slices.DeleteFunc(slices.Clone(s.keys), func(key registry.KeyID) bool { return key == 0 })
	slices.Sort(keys)
	return slices.Compact(keys)
}

// columns returns how the model reads the active rows.
func (s *scorer) columns(in rowset.RowSet) []gbdt.Column {
	columns := make([]gbdt.Column, len(s.keys))
	for f, key := range s.keys {
		if key != 0 {
			columns[f] = featureColumn(in, key)
		}
	}
	return columns
}

func runModel(c *task.Ctx) (rowset.RowSet, error) {
	in, s := c.Inputs[0], c.Node.Prepared.(*scorer)
	out, err := newScores(c, in.Batch)
	if err != nil {
		return rowset.RowSet{}, err
	}
	predictions := out.values
	dense := in.Rows == nil
	if !dense {
		predictions = c.Memory.Floats(in.Len())
	}
	predictions = predictions[:in.Len()]
	if !s.model.Predict(c, s.columns(in), s.output, predictions) {
		return rowset.RowSet{}, task.ErrCancelled
	}
	for i, v := range predictions {
		if math.IsInf(v, 0) || v != v {
			return rowset.RowSet{}, task.Invalidf("model: the prediction of row %d, id %s, is not finite", i, c.IDText(in.ID(i)))
		}
		out.set(in.Row(i), v)
	}
	return out.finish(in, c.Node.Params.Key("out_key"))
}

// featureColumn returns how the model reads a column of the active rows. A null becomes a NaN, which means a missing
// value.
func featureColumn(in rowset.RowSet, key registry.KeyID) gbdt.Column {
	if b := in.Batch.Bool(key); b != nil {
		return func(values []float64, from int) {
			for i := range values {
				switch row := int(in.Row(from + i)); {
				case !b.Valid.Get(row):
					values[i] = math.NaN()
				case b.Values.Get(row):
					values[i] = 1
				default:
					values[i] = 0
				}
			}
		}
	}
	n := numbersOf(in.Batch, key)
	switch {
	case n.ints != nil:
		return numberColumn(in, n.ints, n.valid)
	case n.floats != nil:
		return numberColumn(in, n.floats, n.valid)
	}
	return func(values []float64, _ int) {
		for i := range values {
			values[i] = math.NaN()
		}
	}
}

func numberColumn[T int64 | float64](in rowset.RowSet, column []T, valid rowset.Bitmap) gbdt.Column {
	return func(values []float64, from int) {
		for i := range values {
			values[i] = math.NaN()
			if row := int(in.Row(from + i)); valid.Get(row) {
				values[i] = float64(column[row])
			}
		}
	}
}

// featuresShown is how many features an explanation names, of those that add something.
const featuresShown = 20

// explainModel says for which values of its features a model scored a row, and what each adds to the margin.
func explainModel(c *task.Ctx, _ rowset.RowSet) task.Account {
	s, in := c.Node.Prepared.(*scorer), c.Inputs[0]
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		why := task.Reason{Kind: task.Computed, Column: c.Node.Params.Key("out_key").ID,
			Text: fmt.Sprintf("model %s (%s), %d trees", task.Quote(c.Node.Params.String("model")), s.model.Objective(), s.model.Trees())}
		one := rowset.RowSet{Batch: in.Batch, Rows: []int32{in.Row(at.Pos)}, N: 1}
		columns, margin, adds := s.columns(one), make([]float64, 1), make([]float64, len(s.keys))
		s.model.Predict(nil, columns, gbdt.Margin, margin)
		base, told := s.model.Contributions(columns, adds)
		for f, id := range s.keys {
			key, ok := c.Registry.Key(id)
			if !ok || id == 0 {
				continue
			}
			var value [1]float64
			featureColumn(one, id)(value[:], 0)
			v := task.Value{Name: key.Name}
			if value[0] == value[0] {
				v.Value = value[0]
			}
			if told {
				v.Adds = &adds[f]
			}
			why.Values = append(why.Values, v)
		}
		if told {
			why.Values = append(largest(why.Values), task.Value{Name: "base", Value: base})
		}
		why.Values = append(why.Values, task.Value{Name: "margin", Value: margin[0]})
		return why
	}}
}

// largest returns the values that add most, of either sign, and one for the others together.
func largest(values []task.Value) []task.Value {
	slices.SortStableFunc(values, func(a, b task.Value) int { return cmp.Compare(math.Abs(*b.Adds), math.Abs(*a.Adds)) })
	if len(values) <= featuresShown+1 {
		return values
	}
	rest := 0.0
	for _, v := range values[featuresShown:] {
		rest += *v.Adds
	}
	others := task.Value{Name: fmt.Sprintf("%d other features", len(values)-featuresShown), Adds: &rest}
	return append(values[:featuresShown:featuresShown], others)
}
