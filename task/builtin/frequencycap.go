package builtin

import (
	"fmt"
	"math"
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// frequencyCap drops rows whose counters in Redis are full.
func frequencyCap() task.Spec {
	return task.Spec{
		Op:  "core::frequency_cap",
		Doc: "Drops the rows that were shown so many times already, by a counter of each in Redis.",
		Params: freshByDefault(withRecallParams(
			plan.ParamSchema{Name: "endpoint", Type: plan.Endpoint, Required: true, Doc: "The Redis that has the counters."},
			plan.ParamSchema{Name: "key", Type: plan.Template, Required: true, Columns: true,
				Doc: "The key of a row's counter, with the marks of [lookup](lookup.md): `seen:{user}:{id}`, `shown:{user}:{campaign}`."},
			plan.ParamSchema{Name: "max", Type: plan.Int, Required: true, PerRequest: true, Source: between(1, math.MaxInt32),
				Doc: "The count from which on a row is dropped."},
			plan.ParamSchema{Name: "fail_open", Type: plan.Bool, Doc: "Whether a failure of Redis lets the rows pass."},
		)),
		Inputs: 1,
		Output: task.Subset,
		Reads: func(n *plan.Node, reg *registry.Registry) []registry.KeyID {
			return without(task.KeyParams("key")(n, reg), registry.IDKey) // A text takes its place, as in lookup.
		},
		IDs:     plan.MovesTextIDs,
		Place:   task.Waits,
		Strict:  true,
		Forgets: true,
		Prepare: prepareFrequencyCap,
		Ask:     askFrequencyCap,
		Make:    makeFrequencyCap,
		AsksOf:  asksOfLookup,
		Explain: explainFrequencyCap,
		Reference: task.Reference{
			Text: "`frequencyCap` drops a row if the number in the string at its `key` is `max` or more. A key that does not exist counts as 0.\n\n" +
				"rankd only reads the counters. What shows the rows counts them, and says by the expiry of the keys for how long: " +
				"`INCR seen:1:11`, then `EXPIRE seen:1:11 86400 NX` for a cap of a day. `max` has the unit of the counter. Rows of the same answer do not count: " +
				"[cap](cap.md) bounds these, best after the rows were ranked.\n\n" +
				"Counters change often, so each request reads them anew, unless `fresh` is false: then they may come from " +
				"[the engine's memory](../../cache.md), at most `cache_age` old. `fail_open` is that of [exclude](exclude.md).",
			Reads:      "The columns in `key`.",
			Redis:      "`GET` for each distinct key: up to 4,096 in one round trip. Without rows it sends no command. Equal reads of several requests become one. A lookup of the same rows before it may ask for it, too: see [Redis](../../redis.md#lookups-of-a-chain-leave-together).",
			Order:      "The rows that stay keep their order.",
			Nulls:      "A row stays if a column in its `key` is null.",
			Empty:      "The result of an input without rows has none.",
			Duplicates: "Rows with the same key are all dropped or all stay.",
			Failures: "The node fails if Redis does, or if a key has another type than string, unless `fail_open` is true. It also fails if the request lacks a field of the context in the `key`. " +
				"A text that is not a finite decimal number counts as 0. It is counted: `malformed` of `--metrics`.",
			Example: task.Example{
				Plan: "return ctx.candidates({ endpoint: redis, key: \"inbox:{user}\" })\n" +
					"  .frequencyCap({ endpoint: redis, key: \"seen:{user}:{id}\", max: 3 });",
				Redis: []string{"RPUSH inbox:1 11 12 13 14", "SET seen:1:11 3", "SET seen:1:12 2", "SET seen:1:14 7"},
			},
		},
	}
}

// prepareFrequencyCap returns the *preparedLookup that reads the counters. They are doubles, since INCRBYFLOAT also
// makes counters.
func prepareFrequencyCap(n *plan.Node, _ *registry.Registry) (any, error) {
	template := n.Params.Template("key")
	if n.Params.Given("cache_age") && n.Params.Bool("fresh") {
		return nil, plan.ParamErrorf("cache_age", "has no effect: fresh is true")
	}
	l := &preparedLookup{template: template, keys: []*registry.Key{{Name: "counter", Type: registry.Float, Default: 0.0}}, missing: missingDefault, row: slices.Clone(template.Row)}
	l.kind = &lookupKinds[slices.Index(lookupKindNames(), "counter")]
	l.recall = recallRule(n, l.kind.shape(l.keys), template.Start())
	l.asks = l.asksOf(template)
	if prefix, suffix, ok := template.Literal(); ok {
		l.command = l.kind.keyCommand(prefix, suffix, nil)
	}
	return l, nil
}

func askFrequencyCap(c *task.Ctx, r *task.Reads, _ int) error {
	if c.Inputs[0].Len() == 0 {
		return nil
	}
	d, err := c.Node.Prepared.(*preparedLookup).decoder(c, r)
	if err != nil {
		return err
	}
	counters := task.NewRead[counterRead](r)
	counters.lookupDecoder = d
	d.memo = r.Add(c, c.Node.Endpoint, &d.recall, counters)
	return nil
}

// counterRead reads counters, or goes on without them. Only its body uses it.
type counterRead struct {
	*lookupDecoder
	open bool // they could not be read
}

// Failed implements task.FallibleRead.
func (r *counterRead) Failed(err error) error {
	if r.open = failsOpen(r.c, err); r.open {
		return nil
	}
	return err
}

func makeFrequencyCap(c *task.Ctx, r *task.Reads) (rowset.RowSet, error) {
	in := c.Inputs[0]
	most, err := c.Int("max")
	if err != nil || r.Len() == 0 {
		return in, err
	}
	read := r.At(0).(*counterRead)
	if read.open {
		return in, nil
	}
	columns, err := read.end()
	if err != nil {
		return rowset.RowSet{}, err
	}
	read.count()
	counters, keep := columns[0].(*rowset.FloatColumn), rowset.NewBitmap(in.Len())
	for pos := range in.Len() {
		if counters.Values[read.ids.indexOf(pos)] < float64(most) {
			keep.Set(pos)
		}
	}
	return rowset.Where(c.Memory, in, keep), nil
}

// explainFrequencyCap names the counter of a dropped row.
func explainFrequencyCap(c *task.Ctx, _ rowset.RowSet) task.Account {
	l, in := c.Node.Prepared.(*preparedLookup), c.Inputs[0]
	most, err := c.Int("max")
	if err != nil {
		return task.Account{}
	}
	key, err := c.RedisKey(c.Node.Params.Template("key"))
	if err != nil {
		return task.Account{}
	}
	ids := l.distinctOf(c, in, key)
	key = key.OfTexts(ids.texts)
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		if at.Side == task.InResult {
			return task.Reason{}
		}
		name := errtext.Text(string(key.Append(nil, ids.values[ids.indexOf(at.Pos)])))
		return task.Reason{Kind: task.Capped, Text: fmt.Sprintf("its counter %s in Redis was at %d or more", name, most)}
	}}
}
