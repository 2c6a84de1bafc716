package builtin

import (
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The bounds of a blend's lists.
const (
	blendRatioMax = 1000 // of one number, and of their sum: the turns of a ratio are a list of that length
	blendListMax  = 1024
	blendPosition = 1_000_000 // the last position that can be fixed
)

// blend mixes the rows of several inputs.
func blend() task.Spec {
	one, ratioMax, positionMax := int64(1), int64(blendRatioMax), int64(blendPosition)
	params := append(provenanceParams(),
		plan.ParamSchema{Name: "ratio", Type: plan.Int, List: true, MaxItems: task.InputsLimit, Source: plan.SourceRule{Min: &one, Max: &ratioMax},
			Doc: "One number per input: how many of each round's rows come from it. The round's length is the sum, at most 1,000."},
		plan.ParamSchema{Name: "pattern", Type: plan.String, List: true, MaxItems: blendListMax,
			Doc: "The names of the inputs that give the first, second, … row; after the last it begins again. Each input occurs."},
		plan.ParamSchema{Name: "positions", Type: plan.Int, List: true, MaxItems: blendListMax, Source: plan.SourceRule{Min: &one, Max: &positionMax},
			Doc: "Positions in the result, from 1, ascending, that belong to the inputs in `fixed`."},
		plan.ParamSchema{Name: "fixed", Type: plan.String, List: true, MaxItems: blendListMax,
			Doc: "For each of the `positions` the name of the input that gives its row. At least one input does not occur: it fills the other positions."},
		plan.ParamSchema{Name: "unique", Type: plan.Bool,
			Doc: "Whether a row whose id the result has already is passed over. The input gives its next row in that place, so ratio, pattern and positions hold."},
	)
	return task.Spec{
		Op:  "core::blend",
		Doc: "Mixes the rows of several inputs by a ratio, a pattern or fixed positions.",
		Reference: task.Reference{
			Text: "`blend` takes the rows of its inputs in turn, from each input in its order. A node says in one of three ways whose turn it is.\n\n" +
				"- `ratio`: `[3, 1]` takes three rows of the first input for one of the second, spread evenly: A A B A. Any four consecutive rows have exactly that ratio. The turn with which " +
				"the list begins depends on the request's id, so that over many requests the second input is as often first as the ratio says. The same id gives the same blend.\n" +
				"- `pattern`: `[\"follow\", \"follow\", \"popular\"]` is repeated as it stands.\n" +
				"- `positions` and `fixed`: `[3, 8]` and `[\"ads\", \"ads\"]` put the first two rows of the input `ads` at positions 3 and 8. The inputs that do not occur in `fixed` fill the other positions, " +
				"the next of them when one is used up.\n\n" +
				"An input without further rows is skipped, and the turns of the others go on. With `ratio` and `pattern` all rows of all inputs are in the result. " +
				"An input in `fixed` gives only as many rows as it has positions. A fixed position behind the end of all other rows moves up, so that no position stays empty.\n\n" +
				"`names` names the inputs for `pattern`, `fixed` and `source`, and must be given with them. `source` and `rank` are the columns of [union](union.md).",
			Writes: "The columns of `source` and `rank`, if given.",
			Order:  "As the turns say. Rows of one input keep their order.",
			Nulls:  "A column that an input lacks is null in the rows of that input.",
			Empty:  "An input without rows has no turn, and adds its columns. If no input has rows, the result has none.",
			Duplicates: "Rows with the same id stay. With `unique` only the first of them in the result does. A [dedupe](dedupe.md) behind the blend would move " +
				"the rows after it up, off their positions.",
			Failures: "The node does not fail.",
			Example: task.Example{
				Plan: "const me = ctx.viewer({ endpoint: redis });\n" +
					"return me.follow({ endpoint: redis, fanout: 4 }).blend({\n" +
					"  with: [me.recommendation({ endpoint: redis, fanout: 4 })],\n" +
					"  names: [\"follow\", \"recommended\"], pattern: [\"follow\", \"follow\", \"recommended\"], source: Key.source,\n});",
			},
		},
		Params:    params,
		Inputs:    1,
		InputsMax: task.InputsLimit,
		IDs:       plan.MovesTextIDs,
		Output:    task.Merge,
		Writes:    task.KeyParams("source", "rank"),
		Strict:    true,
		Cheap:     true,
		Forgets:   true,
		Prepare:   prepareBlend,
		Run:       runBlend,
		Explain:   explainBlend,
	}
}

// blendNode is a blend's prepared node: either turns or slots. Immutable; any goroutine.
type blendNode struct {
	*provenance
	turns   []int32 // the number of the input that has each turn
	shifted bool    // the request's id chooses the first turn
	slots   []rowset.Slot
}

func prepareBlend(n *plan.Node, _ *registry.Registry) (any, error) {
	p, err := prepareProvenance(n)
	if err != nil {
		return nil, err
	}
	ratio, pattern, positions, fixed := n.Params.Ints("ratio"), n.Params.Strings("pattern"), n.Params.Ints("positions"), n.Params.Strings("fixed")
	ways := 0
	for _, items := range []int{len(ratio), len(pattern), len(positions)} {
		if items > 0 {
			ways++
		}
	}
	switch {
	case ways != 1:
		return nil, plan.ParamErrorf("ratio", "or pattern, or positions must be given, and only one of them")
	case len(positions) != len(fixed):
		return nil, plan.ParamErrorf("fixed", "has %d names for %d positions", len(fixed), len(positions))
	case p.names == nil && len(ratio) == 0:
		return nil, plan.ParamErrorf("names", "is missing: pattern and fixed name inputs")
	case p.names != nil && p.source == 0 && len(ratio) > 0:
		return nil, plan.ParamErrorf("names", "has no effect with ratio and without source")
	}
	b := &blendNode{provenance: p}
	switch {
	case len(ratio) > 0:
		b.shifted = true
		b.turns, err = ratioTurns(ratio, len(n.Inputs))
	case len(pattern) > 0:
		b.turns, err = patternTurns(pattern, p.names.Strings.Values)
	default:
		b.slots, err = fixedSlots(positions, fixed, p.names.Strings.Values)
	}
	return b, err
}

// ratioTurns spreads the turns of a ratio evenly. It is smooth weighted round-robin, as in nginx: at each turn every
// input gains its number, and the input with the most takes the turn and pays the sum.
func ratioTurns(ratio []int64, inputs int) ([]int32, error) {
	if len(ratio) != inputs {
		return nil, plan.ParamErrorf("ratio", "has %d numbers, and the node has %d inputs", len(ratio), inputs)
	}
	sum := int64(0)
	for _, n := range ratio {
		sum += n
	}
	if sum > blendRatioMax {
		return nil, plan.ParamErrorf("ratio", "adds up to %d, must be at most %d", sum, blendRatioMax)
	}
	turns, gained := make([]int32, sum), make([]int64, inputs)
	for turn := range turns {
		most := 0
		for i, n := range ratio {
			if gained[i] += n; gained[i] > gained[most] {
				most = i
			}
		}
		gained[most] -= sum
		turns[turn] = int32(most)
	}
	return turns, nil
}

// patternTurns translates the names of a pattern.
func patternTurns(pattern, names []string) ([]int32, error) {
	turns := make([]int32, len(pattern))
	for i, name := range pattern {
		input, err := inputNamed(name, names, "pattern", i)
		if err != nil {
			return nil, err
		}
		turns[i] = input
	}
	for input, name := range names {
		if !slices.Contains(turns, int32(input)) {
			return nil, plan.ParamErrorf("pattern", "does not name %s, whose rows would never come", task.Quote(name))
		}
	}
	return turns, nil
}

// fixedSlots pairs positions with the inputs that have them.
func fixedSlots(positions []int64, fixed, names []string) ([]rowset.Slot, error) {
	slots := make([]rowset.Slot, len(positions))
	isFixed := make([]bool, len(names))
	for i, position := range positions {
		if i > 0 && position <= positions[i-1] {
			return nil, plan.ParamErrorf(plan.ItemPath("positions", i), "is %d, must be above %d: positions ascend", position, positions[i-1])
		}
		input, err := inputNamed(fixed[i], names, "fixed", i)
		if err != nil {
			return nil, err
		}
		slots[i] = rowset.Slot{Position: position, Side: input}
		isFixed[input] = true
	}
	if !slices.Contains(isFixed, false) {
		return nil, plan.ParamErrorf("fixed", "names all inputs, so that none fills the other positions")
	}
	return slots, nil
}

// inputNamed returns the number of the input that element i of a list names.
func inputNamed(name string, names []string, list string, i int) (int32, error) {
	input := slices.Index(names, name)
	if input < 0 {
		return 0, plan.ParamErrorf(plan.ItemPath(list, i), "is %s, which is not among names", task.Quote(name))
	}
	return int32(input), nil
}

func runBlend(c *task.Ctx) (rowset.RowSet, error) {
	b := c.Node.Prepared.(*blendNode)
	out, err := b.unite(c)
	if err != nil {
		return rowset.RowSet{}, err
	}
	counts := make([]int, len(c.Inputs))
	for i, in := range c.Inputs {
		counts[i] = in.Len()
	}
	var groups []int32
	if c.Node.Params.Bool("unique") {
		if groups, _, err = rowset.Groups(c, c.Memory, out, registry.IDKey); err != nil {
			return rowset.RowSet{}, err
		}
	}
	if b.slots != nil {
		out.Rows = rowset.FillSlots(c.Memory, counts, groups, b.slots)
	} else {
		out.Rows = rowset.Interleave(c.Memory, counts, groups, b.turns, b.first(c))
	}
	out.N = len(out.Rows)
	return out, nil
}

// first returns the turn with which the list begins: a pattern begins with its first turn, a ratio with a turn chosen
// by the ids of request and node.
func (b *blendNode) first(c *task.Ctx) int {
	if !b.shifted {
		return 0
	}
	return int(requestSeed(c) % uint64(len(b.turns)))
}

// explainBlend finds the input of a row, and says that the pattern left a row out. The batch has the rows of the inputs
// one after the other.
func explainBlend(c *task.Ctx, out rowset.RowSet) task.Account {
	taken := make(map[int64]bool) // the ids of the result, if each occurs once
	for i := range out.Len() {
		taken[out.ID(i)] = c.Node.Params.Bool("unique")
	}
	return task.Account{
		From: func(pos int) []task.RowAt {
			row := int(out.Row(pos))
			for side, in := range c.Inputs {
				if row < in.Len() {
					return []task.RowAt{{Side: side, Pos: row}}
				}
				row -= in.Len()
			}
			return nil
		},
		Reason: func(at task.RowAt) task.Reason {
			if at.Side == task.InResult {
				return task.Reason{}
			}
			if in := c.Inputs[at.Side]; taken[in.ID(at.Pos)] {
				return task.Reason{Kind: task.Deduplicated, Text: "a row with its id stands before it", Rank: at.Pos + 1, Of: in.Len()}
			}
			return task.Reason{Kind: task.Cut, Text: "the pattern takes no more rows of this input", Rank: at.Pos + 1, Of: c.Inputs[at.Side].Len()}
		},
	}
}
