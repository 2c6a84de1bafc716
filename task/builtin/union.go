package builtin

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// union joins the rows of any number of inputs, in order, and says where each row comes from.
func union() task.Spec {
	return task.Spec{
		Op:  "core::union",
		Doc: "Puts the rows of all inputs one after the other, with columns for the input and the rank of each.",
		Reference: task.Reference{
			Text: "`union` combines candidates from several sources. The rows of the first input come first, in their order, then the rows of the " +
				"second, and so on. The columns are those of all inputs. `source` and `rank` add two columns which later nodes use: a filter on the source, " +
				"a score from the rank, a [dedupe](dedupe.md) that collects all sources of an id.\n\n" +
				"`names` names the inputs for `source`, and must be given with it, one name per input. Without `source` it has no effect and is refused.",
			Writes:     "The columns of `source` and `rank`, if given.",
			Order:      "Input by input, and within an input in its order. Nothing is sorted.",
			Nulls:      "A column that an input lacks is null in the rows of that input. `source` and `rank` are never null.",
			Empty:      "An input without rows adds its columns and no rows. If no input has rows, the result has none.",
			Duplicates: "Rows with the same id stay, each with its own source and rank. A node that is an input twice gives its rows twice.",
			Failures:   "The node does not fail.",
			Example: task.Example{
				Plan: "const me = ctx.viewer({ endpoint: redis });\n" +
					"return me.follow({ endpoint: redis, fanout: 2 }).union({\n" +
					"  with: [me.recommendation({ endpoint: redis, fanout: 2 })],\n" +
					"  source: Key.source, rank: Key.source_rank, names: [\"follow\", \"recommended\"],\n});",
			},
		},
		Params:    provenanceParams(),
		Inputs:    1,
		InputsMax: task.InputsLimit,
		IDs:       plan.MovesTextIDs,
		Output:    task.Append,
		Writes:    task.KeyParams("source", "rank"),
		Strict:    true,
		Cheap:     true,
		Forgets:   true,
		Prepare: func(n *plan.Node, _ *registry.Registry) (any, error) {
			if n.Params.Given("names") && !n.Params.Given("source") {
				return nil, plan.ParamErrorf("names", "has no effect without source")
			}
			return prepareProvenance(n)
		},
		Run: func(c *task.Ctx) (rowset.RowSet, error) { return c.Node.Prepared.(*provenance).unite(c) },
	}
}
