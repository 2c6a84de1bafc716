package builtin

import (
	"cmp"
	"fmt"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The kinds of Redis keys that candidates reads.
const (
	kindList      = "list"
	kindSet       = "set"
	kindSortedSet = "sorted_set"
)

// candidatesMax is the most entries that candidates takes of one key.
const candidatesMax = 100_000

// candidates makes rows of the ids in a list, a set or a sorted set.
func candidates() task.Spec {
	limit := between(1, candidatesMax)
	return task.Spec{
		Op:  "core::candidates",
		Doc: "Makes rows of the ids in a Redis list, set or sorted set, or in the reply to a command.",
		Params: withRecallParams(append([]plan.ParamSchema{
			{Name: "endpoint", Type: plan.Endpoint, Required: true, Doc: "The Redis that has the key."},
			{Name: "key", Type: plan.Template, Doc: "The key: `inbox:{user}` is one key for the request, `sim:{id}` one key for " +
				"each row of the input. Another name in braces is a field of the request's context."},
			{Name: "kind", Type: plan.Enum, StrValue: kindList, Source: plan.SourceRule{OneOf: []string{kindList, kindSet, kindSortedSet}},
				Doc: "The type of the key."},
			{Name: "limit", Type: plan.Int, PerRequest: true, IntValue: 100, Source: limit, Doc: "How many entries of each key become rows, at most."},
			{Name: "reverse", Type: plan.Bool, Doc: "Takes the entries from the other end: of a list the last first, of a sorted set the lowest score first."},
			entityParam,
			{Name: "min", Type: plan.ExprID, Added: true, Doc: "The least score of a sorted set. Without it there is no bound. The expression reads no columns."},
			{Name: "max", Type: plan.ExprID, Added: true, Doc: "The highest score of a sorted set, as `min`."},
			{Name: "min_member", Type: plan.Template, Added: true, Doc: "The first member of a sorted set whose members have the same score, by their bytes. Its marks are those of `key` without `{id}`."},
			{Name: "max_member", Type: plan.Template, Added: true, Doc: "The last member of such a sorted set, as `min_member`."},
			{Name: "exclusive", Type: plan.Enum, Added: true, StrValue: exclusiveNone,
				Source: plan.SourceRule{OneOf: []string{exclusiveNone, exclusiveMin, exclusiveMax, exclusiveBoth}},
				Doc:    "The bounds that are not in the range themselves."},
			{Name: "score", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true},
				Doc: "A column for the scores of a sorted set, or of a command: what it adds to each id, or what an entry of a stream or a document has in the field of this key. Without it there is none."},
			{Name: "id_field", Type: plan.String, Added: true, Doc: "The field of an entry of a stream, or of a document, that has the id of the row. Without it the key of a document is the id."},
			{Name: "id_prefix", Type: plan.String, Added: true, Doc: "What precedes the id in each entry of a command's reply: `shop:` of `shop:17`. An entry that does not begin so has no id."},
		}, commandParams(false, idsReply, idsScoresReply, streamReply, searchReply)...)...),
		InputsMax: 1,
		Strict:    true,
		Prepare:   prepareCandidates,
		Output:    task.Expand,
		RowsMax: func(n *plan.Node, in int64) int64 {
			if len(n.Inputs) == 0 {
				in = 1
			}
			return plan.MulRows(in, limitOf(n, statedOf(n)))
		},
		Writes:    task.KeyParams("score"),
		IDs:       plan.ReadsTextIDs,
		Place:     task.Waits,
		Partial:   true,
		Forgets:   true,
		Ask:       askCandidates,
		Make:      makeCandidates,
		Explain:   explainCandidates,
		Reference: candidatesReference(),
	}
}

// candidatesReference documents candidates.
func candidatesReference() task.Reference {
	return task.Reference{
		Text: "`candidates` reads ids that something else has put into Redis: an inbox, a list of similar items, the most popular of a country. " +
			"A `key` without `{id}` makes it a source, which reads one key for the request. With `{id}` it reads one key for each row of its input, " +
			"and its result has the rows of all keys.\n\n" +
			"A key is as in Redis, with marks in it: `{user}` is the user of the request, `{id}` the id of a row, and another name a field of the request's " +
			"context that is an int, a string or a bool (`1` or `0`). Two braces stand for one, as in the hash tag `{{u:{user}}}`. A key has at most 512 bytes and 16 marks. " +
			"A string of the context brings at most 512 bytes.\n\n" +
			"The ids of a list come from its head, where `LPUSH` puts the newest. A sorted set gives the highest score first. `reverse` starts at the other end. " +
			"A set has no order: `candidates` reads it whole and takes the lowest ids.\n\n" +
			"`min` and `max` take the part of a sorted set whose scores are in that range: `min: now() - 7 * 86400` takes those of the last seven days, if scores are times. " +
			"`min_member` and `max_member` take the part between two members by their bytes; Redis orders a sorted set so only if all its members have the same score. " +
			"A bound is in the range itself unless `exclusive` names it, and the range is empty if the lower bound is above the upper one. `limit` counts from the start of the range.\n\n" +
			"With `entity` the rows are of that entity of the registry. If its ids are strings, an entry is an id as it stands, of 1 to 256 bytes, and ids of a set ascend by their bytes.\n\n" +
			"**Commands.** `command` states what Redis is asked, in place of `key` and `kind`: `[\"SINTER\", \"tag:{tag}\", \"fresh\"]`. [Data](../../data.md#what-else-redis-can-answer) says " +
			"how it is written, and what the shapes of a reply mean. In this table a word in lower case stands for an argument, and options in brackets may be left out:\n\n" + commandTable(true) + "\n" +
			"A `count` is an integer that the plan states, and bounds the rows of each reply. Other replies are read whole, and `limit` says how many of their entries become rows, from the start of the reply. " +
			"`score` names the column for what `WITHSCORES`, `WITHDIST` and `WITHVALUES` add to an id. In an entry of a stream, and in a document, it is the field of this key. `VSIM`, `FT.SEARCH` and `FT.HYBRID` are known by their documentation: no test has asked a server that has them.",
		Writes: "the column of `score`, if given; the result has no other columns, also none of the input",
		Redis: "One command for each key. A node without `command` sends `LRANGE`, `SMEMBERS` or `ZREVRANGE`; with `reverse`, `ZRANGE`; for a range, `ZRANGE` with `BYSCORE` or `BYLEX` (Redis 6.2). A `limit` above 10,000 makes one command for each 10,000 " +
			"entries, so an entry may be there twice, or missing, if the key changes meanwhile. One round trip carries up to 4,096 commands, and " +
			"fewer if their entries could exceed the rows that the request may still make.",
		Order: "The keys follow the order of the input's rows. Within a key the rows follow the order of its list, or of its scores; Redis orders members of equal score by their bytes, descending, and " +
			"ascending with `reverse`. Ids of a set ascend.",
		Nulls: "The column of `score` has no nulls.",
		Empty: "A key that does not exist has no entries. An input without rows gives a result without rows and asks Redis nothing.",
		Duplicates: "Each entry becomes a row: an id that is there twice, in one key or in two, has two rows. Rows of the input with the same id each bring the entries of its key. " +
			"[dedupe](dedupe.md) removes the duplicates.",
		Failures: "The node fails if a key has another type than `kind` or `command` reads, or a reply another shape (with `on_error` `partial` such a key has no entries, and the row that asked counts as dropped), if a string of the context is too long for a key, if a bound of the range is null or not a number, or if Redis cannot be reached. An entry that is not an integer of 64 bits, or " +
			"whose score is not finite, is dropped and counted: `malformed` of `--metrics`. The answer's `completeness` says how many were no such integers, with the first of them and its key. " +
			"In a list and a sorted set it takes a place of the limit. The limit of a set counts ids alone, and `of` in `completeness` counts all its members.\n\n" +
			"A command that writes, waits for others, names no key or has no bound does not load; nor does one of several keys that may be in different slots of a Redis Cluster. " +
			"A plan does not load if the node has an input and its `key` has no `{id}`, or the other way round, or if it names `score` beside `min_member` or `max_member`, whose members have one score.",
		Example: task.Example{
			Plan:  "ctx.candidates({ endpoint: redis, key: \"inbox:{user}\", kind: \"sorted_set\", min: 1, limit: 3, score: Key.score })",
			Redis: []string{"ZADD inbox:1 0.5 11 2.25 12 1.5 13 0.25 14 3 draft"},
		},
	}
}

// prepareCandidates checks that the parameters fit together.
func prepareCandidates(n *plan.Node, reg *registry.Registry) (any, error) {
	p := &n.Params
	stated, err := commandOf(n, "min", "max", "min_member", "max_member", "exclusive")
	if err != nil {
		return nil, err
	}
	kind, reverse, scored := p.String("kind"), p.Bool("reverse"), p.Key("score") != nil
	prepared, at := &preparedCandidates{stated: stated, key: p.Template("key")}, "key"
	if stated != nil {
		prepared.key, at = stated.args[stated.at], plan.ItemPath("command", stated.at)
	}
	switch perRow := prepared.key.PerRow(); {
	case perRow && len(n.Inputs) == 0:
		return nil, plan.ParamErrorf(at, "has {id}, so the node needs an input whose rows have ids")
	case !perRow && len(n.Inputs) > 0:
		return nil, plan.ParamErrorf(at, "has no {id}, so the node reads one key and takes no input")
	case stated != nil:
	case p.Given("id_field") || p.Given("id_prefix"):
		return nil, plan.ParamErrorf("id_field", "and id_prefix are for a command")
	case scored && kind != kindSortedSet:
		return nil, plan.ParamErrorf("score", "is for kind %q, not %q", kindSortedSet, kind)
	case reverse && kind == kindSet:
		return nil, plan.ParamErrorf("reverse", "is not for kind %q, whose entries have no order", kindSet)
	case kind == kindSet:
		prepared.asked, prepared.form, prepared.sorted = &setCommand, &replyForm{shape: idsReply}, true
	}
	if prepared.within, err = rangeOf(p); err != nil {
		return nil, err
	}
	entity, _ := reg.Entity(p.String("entity"))
	shape := fmt.Sprint("candidates", []any{kind, reverse, scored, limitOf(n, stated), entity.TextIDs()})
	if prepared.within != nil {
		shape = prepared.within.shape(shape)
	}
	if stated != nil {
		if prepared.form, err = stated.entriesForm(p); err != nil {
			return nil, err
		}
		prepared.sorted = stated.order == unordered
		shape = stated.meaning(shape + fmt.Sprintf("%#v", *prepared.form))
	}
	if p.LeastInt("limit") < p.Int("limit") {
		shape = "" // each request has its own
	}
	prepared.recall = recallRule(n, shape, prepared.key.Start())
	return prepared, stated.checkAge(p)
}

// preparedCandidates is a candidates node as the plan states it. Immutable once built; any goroutine.
type preparedCandidates struct {
	recall task.Recall
	key    *plan.KeyTemplate
	within *memberRange   // nil: all entries
	stated *statedCommand // by the plan; nil: the kind says it
	asked  *askedCommand  // of a set
	form   *replyForm     // of a command or a set
	sorted bool
}

// setCommand reads a set as a plan could state it.
var setCommand = askedCommand{texts: []string{"SMEMBERS", ""}, at: 1}

// limitOf returns how many entries of each key become rows at most.
func limitOf(n *plan.Node, stated *statedCommand) int64 {
	if stated != nil && stated.count > 0 {
		return int64(stated.count)
	}
	return n.Params.Int("limit")
}

func askCandidates(c *task.Ctx, reads *task.Reads, _ int) error {
	p, prepared := &c.Node.Params, c.Node.Prepared.(*preparedCandidates)
	limit, err := c.Int("limit")
	if err != nil {
		return err
	}
	r := task.NewRead[entriesRead](reads)
	*r = entriesRead{
		c: c, kind: p.String("kind"), stated: prepared.asked, form: prepared.form, sorted: prepared.sorted, reverse: p.Bool("reverse"), limit: int(limit),
		score: p.Key("score"), texts: c.Node.Entity.TextIDs(),
	}
	if prepared.stated != nil {
		if r.stated, err = prepared.stated.arguments(c); err != nil {
			return err
		}
		r.limit = cmp.Or(prepared.stated.count, r.limit)
	}
	if prepared.within != nil {
		if r.within, err = prepared.within.arguments(c); err != nil {
			return err
		}
	}
	if r.key, err = c.RedisKey(prepared.key); err != nil {
		return err
	}
	r.key = r.key.OfTexts(c.IDTexts())
	r.begin(c, reads, &prepared.recall)
	return nil
}

func makeCandidates(c *task.Ctx, reads *task.Reads) (rowset.RowSet, error) {
	return reads.At(0).(*entriesRead).rows(), nil
}
