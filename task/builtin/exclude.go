package builtin

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// exclude drops rows whose id is in a set of the user or in a list of the request.
func exclude() task.Spec {
	now := 0.0
	return task.Spec{
		Op:  "core::exclude",
		Doc: "Drops the rows whose id is in a set of Redis, or in a list of the request's context.",
		Reference: task.Reference{
			Text: "`exclude` leaves out items that the user has seen, bought or blocked. It drops a row if its id, or its value of `by`, is a member of the set at `key`, or an element " +
				"of the list `context`. A node names one of the two or both.\n\n" +
				"`key` is the key of a set, or with `kind: \"sorted_set\"` of a sorted set. The scores of a sorted set are times in Unix seconds; with `max_age` a member whose score is more than " +
				"so many seconds before the request no longer excludes. A score in the future always does.\n\n" +
				"With `fail_open` a failure of Redis does not fail the node: the rows of the input pass, save those that `context` has, and the answer's `completeness` says so. " +
				"A request that requires the node still fails. `\"on_error\": \"skip\"` on the node does the same, but lets the rows of `context` pass, too.",
			Reads: "The column of `by`, if given.",
			Redis: "`SMISMEMBER` for a set, `ZMSCORE` for a sorted set, both since Redis 6.2; an older server answers with an error. One command asks for up to 1,024 rows, and one " +
				"round trip for up to 65,536. The node does not ask for rows that `context` has dropped, nor for nulls. Without rows it sends no command.",
			Order:      "The rows that stay keep their order.",
			Nulls:      "A row whose `by` is null is never dropped. A column that the input lacks counts as null in all rows.",
			Empty:      "The result of an input without rows has none. A key that does not exist is an empty set. A list that the request does not bring is an empty list.",
			Duplicates: "Rows with the same id are all dropped or all stay.",
			Failures:   "The node fails if Redis does, if the key has another type than `kind` says, or if the server is too old; unless `fail_open` is true. It also fails if the request lacks a field of the context in the `key`.",
			Example: task.Example{
				Plan: "return ctx.viewer({ endpoint: redis }).follow({ endpoint: redis, fanout: 5 })\n" +
					"  .exclude({ endpoint: redis, key: \"seen:{user}\", context: \"seen\" });",
				Redis:   []string{"RPUSH follow:1 11 12 13 14 15", "SADD seen:1 12 14"},
				Request: `{"user_id": 1, "context": {"seen": [15]}}`,
			},
		},
		Params: []plan.ParamSchema{
			{Name: "endpoint", Type: plan.Endpoint, Doc: "The Redis that has the set. `key` needs it."},
			{Name: "key", Type: plan.Template, Doc: "The key of the set: a template without `{id}`."},
			{Name: "kind", Type: plan.Enum, StrValue: "set", Source: plan.SourceRule{OneOf: []string{"set", "sorted_set"}},
				Doc: "The type of the key."},
			{Name: "max_age", Type: plan.Float, Source: plan.SourceRule{FloatMin: &now},
				Doc: "The age in seconds beyond which a member of a sorted set no longer excludes. Without it every member does."},
			{Name: "context", Type: plan.String, Doc: "The name of a list in the request's context: of integers, or of strings if `by` is a string column or the ids are strings."},
			{Name: "by", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Int, registry.String}},
				Doc: "The column whose value is looked for. Without it the id. Redis knows an integer by its decimal digits."},
			{Name: "fail_open", Type: plan.Bool, Doc: "Whether a failure of Redis lets the rows pass."},
		},
		Inputs:  1,
		Output:  task.Subset,
		Reads:   excludeReads,
		IDs:     plan.MovesTextIDs,
		Place:   task.Waits,
		Strict:  true,
		Forgets: true,
		Prepare: prepareExclude,
		Ask:     askExclude,
		Make:    makeExclude,
		Explain: explainExclude,
	}
}

// excludeReads returns the column of by, and the id if a list of integers is compared with it. Members of a set are texts, as ids may be.
func excludeReads(n *plan.Node, _ *registry.Registry) []registry.KeyID {
	e := n.Prepared.(*excludeNode)
	if e.by == registry.IDKey && (e.context == nil || e.TextIDs()) {
		return nil
	}
	return []registry.KeyID{e.by}
}

// excludeNode is an exclude's prepared node. Immutable; any goroutine.
type excludeNode struct {
	by      registry.KeyID
	key     *plan.KeyTemplate // nil: no Redis
	sorted  bool
	aged    bool            // maxAge bounds the age of members
	maxAge  float64         // seconds
	context *registry.Param // nil: no list
}

// TextIDs reports whether a list of strings is compared with ids.
func (e *excludeNode) TextIDs() bool {
	return e.by == registry.IDKey && e.context != nil && e.context.Type == registry.StringList
}

func prepareExclude(n *plan.Node, reg *registry.Registry) (any, error) {
	e := &excludeNode{by: registry.IDKey, key: n.Params.Template("key"), sorted: n.Params.String("kind") == "sorted_set",
		aged: n.Params.Given("max_age"), maxAge: n.Params.Float("max_age")}
	types := []registry.Type{registry.IntList, registry.StringList} // of a list of ids
	if by := n.Params.Key("by"); by != nil {
		switch e.by = by.ID; {
		case by.Type == registry.String:
			types = types[1:]
		case e.by != registry.IDKey:
			types = types[:1]
		}
	}
	context := n.Params.String("context")
	switch {
	case e.key == nil && context == "":
		return nil, plan.ParamErrorf("key", "or context must be given")
	case e.key != nil && e.key.PerRow():
		return nil, plan.ParamErrorf("key", "has {id}, but one set serves all rows")
	case e.key != nil && n.Endpoint == nil:
		return nil, plan.ParamErrorf("endpoint", "is missing: key needs it")
	case e.aged && !e.sorted:
		return nil, plan.ParamErrorf("max_age", "has no effect on a set: only a sorted_set has times")
	}
	if e.key == nil {
		for _, name := range []string{"endpoint", "kind", "max_age", "fail_open"} {
			if n.Params.Given(name) {
				return nil, plan.ParamErrorf(name, "has no effect without key")
			}
		}
	}
	if context != "" {
		list, ok := reg.ParamByName(context)
		if !ok || !list.Context || !slices.Contains(types, list.Type) {
			want := fmt.Sprint(types[0])
			if len(types) > 1 {
				want += fmt.Sprintf(", or %v for ids that are strings", types[1])
			}
			return nil, plan.ParamErrorf("context", "is %s, must be a field of the request's context of type %s", task.Quote(context), want)
		}
		e.context = list
	}
	return e, nil
}

func askExclude(c *task.Ctx, r *task.Reads, _ int) error {
	e := c.Node.Prepared.(*excludeNode)
	in, err := e.withoutList(c, c.Inputs[0])
	if err != nil {
		return err
	}
	m := task.NewRead[membership](r)
	m.excludeNode, m.c, m.in = e, c, in
	if e.key != nil && in.Len() > 0 {
		key, err := c.RedisKey(e.key)
		if err != nil {
			return err
		}
		m.begin(key.Prefix)
	}
	r.Add(c, c.Node.Endpoint, nil, m)
	return nil
}

func makeExclude(c *task.Ctx, r *task.Reads) (rowset.RowSet, error) {
	m := r.At(0).(*membership)
	if m.keep == nil {
		return m.in, nil
	}
	return rowset.Where(c.Memory, m.in, m.keep), nil
}

// failsOpen reports whether a node goes on without what it could not read, and notes it.
func failsOpen(c *task.Ctx, err error) bool {
	open := c.Node.Params.Bool("fail_open") && errors.Is(err, task.ErrRedis) && !errors.Is(err, task.ErrCancelled)
	if open {
		c.FailOpen(err)
	}
	return open
}

// withoutList drops the rows that the list of the context has.
func (e *excludeNode) withoutList(c *task.Ctx, in rowset.RowSet) (rowset.RowSet, error) {
	if e.context == nil {
		return in, nil
	}
	list := rowset.Side{Key: registry.IDKey}
	texts, _ := c.Params.StringList(e.context.ID)
	switch {
	case e.context.Type == registry.IntList:
		ids, _ := c.Params.IntList(e.context.ID)
		list.Rows = rowset.Dense(&rowset.Batch{IDs: ids})
	case e.by == registry.IDKey:
		if c.IDTexts() == nil {
			return in, nil
		}
		ids := c.Memory.IDs(len(texts))[:0]
		for _, text := range texts {
			if id, ok := c.Params.IDs().Find(text); ok { // No row has another one.
				ids = append(ids, id)
			}
		}
		list.Rows = rowset.Dense(&rowset.Batch{IDs: ids})
	default:
		b := rowset.NewStringBuilder(e.by, len(texts))
		for _, text := range texts {
			b.Append([]byte(text))
		}
		list.Key = e.by
		list.Rows = rowset.Dense(rowset.NewBatch(make([]int64, len(texts)), b.Column()))
	}
	rowOf, err := rowset.Match(c, c.Memory, rowset.Side{Rows: in, Key: e.by}, list)
	if err != nil {
		return rowset.RowSet{}, err
	}
	keep := rowset.NewBitmap(in.Len())
	for pos, match := range rowOf {
		if match < 0 {
			keep.Set(pos)
		}
	}
	return rowset.Where(c.Memory, in, keep), nil
}

// rowsToAsk returns the positions of the rows that are not null.
func (e *excludeNode) rowsToAsk(c *task.Ctx, in rowset.RowSet) []int32 {
	asked := c.Memory.Rows(in.Len())[:0]
	ints, texts := in.Batch.Int(e.by), in.Batch.String(e.by)
	for pos := range in.Len() {
		row := in.Row(pos)
		if e.by == registry.IDKey || ints != nil && ints.Valid.Get(int(row)) || texts != nil && texts.Places[row] != rowset.NullCode {
			asked = append(asked, int32(pos))
		}
	}
	return asked
}

// membership finds out which rows are members of a set. Only its body uses it.
type membership struct {
	*excludeNode
	memberReads
	in     rowset.RowSet // without the rows of the list
	asked  []int32       // the positions of rows that may be members
	oldest float64       // the least score that excludes
	keep   rowset.Bitmap // by position; nil: all rows stay
}

// begin prepares a read of the set at a key.
func (m *membership) begin(key string) {
	m.keep = rowset.NewBitmapOf(m.in.Len(), m.in.Len())
	now, _ := m.c.Params.Now()
	m.oldest = math.Inf(-1)
	if m.aged {
		m.oldest = now - m.maxAge
	}
	m.asked = m.rowsToAsk(m.c, m.in)
	m.memberReads = memberReads{c: m.c, command: "SMISMEMBER", key: key, each: memberCommandMax, members: len(m.asked)}
	if m.sorted {
		m.command = "ZMSCORE"
	}
}

// Ask implements task.Read.
func (m *membership) Ask(b *resp.Batch, from, to int) {
	ints, texts := m.in.Batch.Int(m.by), m.in.Batch.String(m.by)
	ids := m.c.IDTexts()
	for k := from; k < to; k++ {
		first, last := m.memberReads.begin(b, k)
		for _, pos := range m.asked[first:last] {
			switch row := m.in.Row(int(pos)); {
			case m.by == registry.IDKey && ids != nil:
				b.ArgString(ids.At(m.in.Batch.IDs[row]))
			case texts != nil:
				text, _ := texts.Value(int(row)) // those that are asked are not null
				b.ArgString(text)
			case ints != nil:
				b.ArgInt(ints.Values[row])
			default:
				b.ArgInt(m.in.Batch.IDs[row])
			}
		}
	}
}

// Take implements task.Read. It clears the bits of the rows that an answer calls members.
func (m *membership) Take(replies resp.Replies, at, to, k int) error {
	for ; at < to; at++ {
		first, last := m.of(k)
		if err := m.fault(replies.At(at), last-first); err != nil {
			return err
		}
		for answer := range replies.At(at).All() {
			if m.excludes(answer) {
				m.keep.Clear(int(m.asked[first]))
			}
			first++
		}
		k++
	}
	return nil
}

// Failed implements task.FallibleRead.
func (m *membership) Failed(err error) error {
	if !failsOpen(m.c, err) {
		return err
	}
	m.keep = nil
	return nil
}

// excludes reports whether an answer says that a row is a member, and, for a sorted set, young enough.
func (m *membership) excludes(answer resp.Reply) bool {
	if !m.sorted {
		return answer.Kind() == resp.Integer && answer.Int() == 1
	}
	if answer.Kind() != resp.Bulk {
		return false
	}
	score, err := strconv.ParseFloat(string(answer.Bytes()), 64)
	return err == nil && score >= m.oldest
}

// explainExclude says which list or set a row was in. A dropped row that is not in the list was in the set.
func explainExclude(c *task.Ctx, _ rowset.RowSet) task.Account {
	e, in := c.Node.Prepared.(*excludeNode), c.Inputs[0]
	rest, err := e.withoutList(c, in)
	if err != nil {
		return task.Account{}
	}
	return task.Account{Reason: func(at task.RowAt) task.Reason {
		if at.Side == task.InResult {
			return task.Reason{}
		}
		why := task.Reason{Kind: task.Excluded, By: e.by}
		if positionIn(rest, in.Row(at.Pos)) < 0 {
			why.Text = "it is in " + e.context.Name + " of the request's context"
		} else if e.key != nil {
			if key, err := c.RedisKey(e.key); err == nil {
				why.Text = "it is in " + errtext.Text(key.Prefix) + " in Redis"
			}
		}
		return why
	}}
}
