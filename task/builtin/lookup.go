package builtin

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// The ways in which lookup treats a missing value.
const (
	missingNull    = "null"
	missingDefault = plan.MissingDefault
	missingDrop    = "drop"
	missingFail    = plan.MissingFail
)

// lookupFieldsMax is the most columns that one lookup writes.
const lookupFieldsMax = 256

// lookupTypes are the types of the columns that lookup writes.
var lookupTypes = rowset.Types()

// lookup reads values for each distinct id into typed columns.
func lookup() task.Spec {
	age := 0.001
	return task.Spec{
		Op:  "core::lookup",
		Doc: "Reads columns of each row from Redis: from a hash, a JSON document, a string, or what a collection says of the row's id.",
		Params: withRecallParams(append([]plan.ParamSchema{
			{Name: "endpoint", Type: plan.Endpoint, Required: true, Doc: "The Redis that has the keys."},
			{Name: "key", Type: plan.Template, Columns: true, Doc: "The key of a row: `item:{id}`, `stat:{user}:{category}`. A name in braces other than `id` and `user` is a " +
				"field of the request's context, or else a column. `{Key.name}` is always a column."},
			{Name: "kind", Type: plan.Enum, Added: true, Source: plan.SourceRule{OneOf: lookupKindNames()},
				Doc: "What the node reads: see above. Without it that is `hash` with `fields`, and `string` with `value`."},
			{Name: "fields", Type: plan.Key, List: true, MinItems: 1, MaxItems: lookupFieldsMax,
				Source: plan.SourceRule{KeyTypes: lookupTypes, Writes: true},
				Doc:    "The columns to read from the hash or the JSON document at the key. The registry names the field of each."},
			{Name: "value", Type: plan.Key, Source: plan.SourceRule{KeyTypes: lookupTypes, Writes: true},
				Doc: "The column that a kind of one value makes. It stands in place of `fields`."},
			{Name: "by", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Int, registry.String}},
				Doc: "The column whose value is the `{id}` of a row, or what a collection is asked for. Without it that is the id of the row."},
			{Name: "missing", Type: plan.Enum, IsMissing: true, StrValue: missingNull,
				Source: plan.SourceRule{OneOf: []string{missingNull, missingDefault, missingDrop, missingFail}},
				Doc: "The effect of a missing value: `null` makes a null, `default` the default of the key in the registry. `drop` drops " +
					"the row, and `fail` fails the node."},
			{Name: "max_age", Type: plan.Float, Source: plan.SourceRule{FloatMin: &age},
				Doc: "The age in seconds beyond which all values of a row count as missing. It needs `timestamp`."},
			{Name: "timestamp", Type: plan.Key, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Int, registry.Float}},
				Doc: "The one of `fields` that has the time of the hash, in seconds since 1970."},
		}, commandParams(true, scalarReply, mapReply)...)...),
		Inputs:    1,
		Strict:    true,
		Prepare:   prepareLookup,
		IDs:       plan.MovesTextIDs,
		Output:    task.Pick,
		Reads:     lookupReads,
		Writes:    task.KeyParams("fields", "value"),
		Place:     task.Waits,
		Partial:   true,
		Forgets:   true,
		KeepsRows: func(n *plan.Node) bool { return n.Prepared.(*preparedLookup).missing != missingDrop },
		Ask:       askLookup,
		Make:      makeLookup,
		AsksOf:    asksOfLookup,
		Reference: lookupReference(),
	}
}

// lookupReference documents lookup.
func lookupReference() task.Reference {
	return task.Reference{
		Text: "`lookup` reads values for each distinct id and makes columns of them. `kind` says what it reads:\n\n" + lookupKindTable() + "\n" +
			"The kinds of `fields` make a column of each. The registry names the hash field of a key (`field`; the key's name if it does not) and its type. Of a JSON document that is the name of a " +
			"member, or a JSON pointer if it begins with `/`: `/author/name`, `/images/0`.\n\n" +
			"The kinds `score`, `member` and `bit` ask one key for all rows, such as `seen:{user}`.\n\n" +
			"The type says which texts are values: an int is a decimal integer of 64 bits; a float a finite decimal number; a bool `1`, `0`, `true` or `false`; a string any bytes. A string set is a " +
			"list with commas between its members, or a JSON array of strings. A value of a JSON document has the JSON type for it: a number, a boolean, a string or an array of strings. There an int is any number whose value is an integer: `3.0` and `1e2` are 3 and 100.\n\n" +
			"A value is missing if the key does not exist and the table does not say otherwise, if it lacks the field or the member, if its text is not such a value (as " +
			"`nan`, `inf` and numbers out of range), or if the row is too old. A member of a JSON document that is null is missing, too. `missing` says what becomes of it; `drop` drops a row if one of its values is missing.\n\n" +
			"`max_age` and `timestamp` leave out stale hashes and documents: a row is too old if its timestamp is more than `max_age` before the arrival of the request, and also if it has none. A timestamp that is no value of its key, such as 1.5 for an integer, or that lies more than a day ahead of the request, as milliseconds do, counts as none. It is counted as malformed, and told of in the answer. " +
			"All its values are then missing.\n\n" +
			"A `key` holds the marks of [candidates](candidates.md), and besides them columns of the row that are ints or strings: `stat:{user}:{category}` reads what is known of the user and the " +
			"category of each row. `{category}` is the field of the context, if there is one of that name; `{Key.category}` is always the column. A `key` with neither `{id}` nor a " +
			"column is one key: `user:{user}` gives all rows the columns of the user. `by` takes the id from a column: a lookup of `author:{id}` by `author_id` reads the authors of items.\n\n" +
			"**Commands.** `command` states what Redis is asked for each row, in place of `key` and `kind`: `[\"ZSCORE\", \"trend:{country}\", \"{id}\"]`. Its marks are those of `key`, and one argument may have marks of the row. " +
			"[Data](../../data.md#what-else-redis-can-answer) says how it is written:\n\n" + commandTable(false) + "\nA reply of shape `scalar` becomes `value`, and a `map` has the `fields`.",
		Reads:  "the columns in `key`, and that of `by`, if given",
		Writes: "the columns of `fields`, or of `value`; a column of the input with such a key is replaced",
		Redis:  "One command for each distinct key: up to 4,096 in one round trip. `ZMSCORE` and `SMISMEMBER`, since Redis 6.2, ask for up to 1,024 ids each, and one round trip for up to 65,536. Several lookups of the same rows may share commands and calls: see [Redis](../../redis.md#lookups-of-a-chain-leave-together).",
		Order:  "The rows keep their order and their places.",
		Nulls: "A row has no key if its `by`, or a column in the `key`, is null: its values are missing. An id below 0 or above 4,294,967,295 has no bit. " +
			"A plan does not load if `missing` is `null` and a key is not nullable, or if it is `default` and a key has no default.",
		Empty:      "The result of an input without rows has none, and Redis is asked nothing.",
		Duplicates: "Rows with the same key, or the same member of a collection, read it once and get the same values.",
		Failures: "The node fails if a key has another type than `kind` says (`on_error` `partial` drops the rows of that key and counts them), if the server is too old, if the request lacks a field of the context in the key, if Redis cannot be reached, and with `missing` `fail` at the first missing value, whose key and field the error names. " +
			"Otherwise a text that does not parse does not fail the node, nor a string that is not a JSON document. A document counts member by member: one with half a pair of surrogates, or with bytes that are no UTF-8, costs no other member. Of a name that stands twice the last value counts. What does not parse is counted: `malformed` of `--metrics`.",
		Example: task.Example{
			Plan: "ctx.candidates({ endpoint: redis, key: \"inbox:{user}\" })\n" +
				"  .lookup({ endpoint: redis, key: \"article:{id}\", fields: [Key.title, Key.likes], missing: \"drop\" })",
			Redis: []string{"RPUSH inbox:1 11 12 13", "HSET article:11 title 'Rain in June' likes 12", "HSET article:12 title 'Snow in May'",
				"HSET article:13 title 'Sun' likes 40"},
		},
	}
}

// preparedLookup is a lookup as its node states it. Immutable once built; any goroutine.
type preparedLookup struct {
	keys     []*registry.Key // of the columns, in the order of the reply
	kind     *lookupKind
	hash     bool          // of that kind
	paths    *documentPath // of the kind json
	missing  string
	row      []plan.TemplatePart // of the key: from the first to the last mark that a row fills in; {id} is the column of by, if given
	maxAge   float64             // 0: any age
	ageAt    int                 // position of the timestamp in keys
	template *plan.KeyTemplate
	stated   *statedCommand // by the plan; nil: the kind says it
	form     *replyForm     // of what is stated
	command  *resp.Template // for all requests; nil if the key depends on the request
	recall   task.Recall
	asks     plan.Asking
}

// lookupReads returns the columns of by and of the key, and the id if it is the offset of a bit. Elsewhere it becomes a text, as ids may be.
func lookupReads(n *plan.Node, reg *registry.Registry) []registry.KeyID {
	keys := slices.DeleteFunc(task.KeyParams("by", "key", "command")(n, reg), func(key registry.KeyID) bool { return key == registry.IDKey })
	if l := n.Prepared.(*preparedLookup); l.kind.asks == 1 && len(keys) == 0 {
		keys = append(keys, registry.IDKey)
	}
	return keys
}

// prepareLookup checks that the parameters fit together.
func prepareLookup(n *plan.Node, reg *registry.Registry) (any, error) {
	p := &n.Params
	stated, err := commandOf(n, "max_age", "timestamp")
	if err != nil {
		return nil, err
	}
	l := &preparedLookup{keys: p.Keys("fields"), stated: stated, template: p.Template("key"), missing: p.String("missing"), maxAge: p.Float("max_age")}
	stating := "kind"
	if l.kind = lookupKindOf(p); stated != nil {
		l.template, stating = stated.args[stated.at], "reply"
		l.form, l.kind = &replyForm{shape: stated.shape}, &lookupKind{name: replyNames[stated.shape], command: stated.name, reply: resp.Bulk}
		if stated.shape == mapReply {
			l.kind.reply, l.kind.fields = resp.Array, true
		} else if stated.shape != scalarReply {
			return nil, stated.fault(-1, "answers %s, which candidates reads", l.kind.name)
		}
	}
	l.hash = l.kind == &lookupKinds[0]
	value, timestamp, template, by := p.Key("value"), p.Key("timestamp"), l.template, p.Key("by")
	l.row = slices.Clone(template.Row)
	if l.kind.asks > 0 { // The key is looked up for what rows fill in.
		rowID, _ := reg.Key(registry.IDKey)
		l.row = []plan.TemplatePart{{Column: rowID}}
	}
	id := slices.IndexFunc(l.row, func(part plan.TemplatePart) bool { return part.Column != nil && part.Column.ID == registry.IDKey })
	if id >= 0 && by != nil {
		l.row[id].Column = by
	}
	switch {
	case l.kind.asks > 0 && template.PerRow():
		return nil, plan.ParamErrorf("key", "differs by row, and kind %q asks one key for all rows", l.kind.name)
	case l.kind.asks == 1 && by != nil && by.Type != registry.Int:
		return nil, plan.ParamErrorf("by", "is %s of type %s, and kind %q is for int", by.Name, by.Type, l.kind.name)
	case id < 0 && by != nil:
		return nil, plan.ParamErrorf("by", "has no effect: the key has no {id}")
	case (stated != nil || p.Given("kind")) && (l.kind.fields != p.Given("fields") || l.kind.fields == (value != nil)):
		return nil, plan.ParamErrorf(stating, "is %q, which takes %s alone", l.kind.name, l.kind.param())
	case p.Given("fields") == (value != nil):
		return nil, plan.ParamErrorf("fields", "must be there or value, and not both")
	case value != nil && !l.kind.takesType(value.Type):
		return nil, plan.ParamErrorf("value", "is %s of type %s, and kind %q is for %s", value.Name, value.Type, l.kind.name, l.kind.typeNames())
	case !l.kind.fields && (timestamp != nil || p.Given("max_age")):
		return nil, plan.ParamErrorf("max_age", "needs fields, and the timestamp among them")
	case p.Given("max_age") != (timestamp != nil):
		return nil, plan.ParamErrorf("max_age", "and timestamp need each other")
	}
	if value != nil {
		l.keys = []*registry.Key{value}
	}
	if timestamp != nil {
		if l.ageAt = slices.Index(l.keys, timestamp); l.ageAt < 0 {
			return nil, plan.ParamErrorf("timestamp", "key %s is not among fields", timestamp.Name)
		}
	}
	for i, key := range l.keys {
		at := plan.ItemPath("fields", i)
		if value != nil {
			at = "value"
		}
		switch {
		case slices.Index(l.keys, key) < i:
			return nil, plan.ParamErrorf(at, "key %s is there twice", key.Name)
		case l.missing == missingNull && !key.Nullable:
			return nil, plan.ParamErrorf(at, "key %s is not nullable, so missing must be %q, %q or %q", key.Name, missingDefault, missingDrop, missingFail)
		case l.missing == missingDefault && key.Default == nil:
			return nil, plan.ParamErrorf(at, "key %s has no default in the registry, so missing cannot be %q", key.Name, missingDefault)
		}
	}
	if l.kind.name == "json" {
		if l.paths, err = newDocumentPaths(l.keys); err != nil {
			return nil, err
		}
	}
	shape := ""
	if l.kind.asks == 0 { // For collections, a change of the key does not say whose value has changed.
		shape = l.kind.shape(l.keys)
	}
	if timestamp != nil {
		shape += " stamp " + strconv.Itoa(l.ageAt)
	}
	if l.missing == missingFail && shape != "" { // It never keeps a row with a missing value, so it never finds one.
		shape += " whole"
	}
	if stated != nil {
		if err = stated.checkAge(&n.Params); err != nil {
			return nil, err
		}
		shape = stated.meaning(shape)
	}
	l.recall = recallRule(n, shape, template.Start())
	if prefix, suffix, ok := template.Literal(); ok && stated == nil {
		l.command = l.kind.keyCommand(prefix, suffix, l.fields())
	}
	l.asks = l.asksOf(template)
	return l, nil
}

// width returns the number of fields of the hash, or 0 for a lookup of another kind.
func (l *preparedLookup) width() int {
	if l.hash {
		return len(l.keys)
	}
	return 0
}

// fields returns the fields of the hash.
func (l *preparedLookup) fields() []string {
	fields := make([]string, l.width())
	for i := range fields {
		fields[i] = l.keys[i].Field
	}
	return fields
}

// asksOfLookup is the AsksOf of tasks that look up.
func asksOfLookup(n *plan.Node) plan.Asking { return n.Prepared.(*preparedLookup).asks }

// asksOf returns what the node asks of each row. A command of a collection has many rows, so it is nobody's but the node's.
func (l *preparedLookup) asksOf(template *plan.KeyTemplate) plan.Asking {
	command := fmt.Sprint(l.kind.command, template.Before, l.row, template.After)
	switch {
	case l.kind.asks > 0, l.stated != nil && l.stated.order == drawn: // Nobody else takes a draw.
		return plan.Asking{}
	case l.stated != nil:
		for _, arg := range l.stated.args {
			command += fmt.Sprint(" ", arg.AllParts())
		}
	}
	return plan.Asking{Command: command, MayRefuse: l.missing == missingFail}
}

func askLookup(c *task.Ctx, r *task.Reads, _ int) error {
	l, in := c.Node.Prepared.(*preparedLookup), c.Inputs[0]
	if err := c.MakeRows(int64(in.Batch.Len())); err != nil { // a column is as long as the batch
		return err
	}
	d, err := l.decoder(c, r)
	if err != nil {
		return err
	}
	if l.kind.asks > 0 {
		m := task.NewRead[memberRead](r)
		*m = memberRead{d: d, memberReads: memberReads{
			c: c, command: l.kind.command, key: d.key.Prefix, each: l.kind.asks, members: len(d.ids.values),
		}}
		r.Add(c, c.Node.Endpoint, nil, m)
		return nil
	}
	d.memo = r.Add(c, c.Node.Endpoint, &l.recall, d)
	return nil
}

func makeLookup(c *task.Ctx, r *task.Reads) (rowset.RowSet, error) {
	var d *lookupDecoder
	switch read := r.At(0).(type) {
	case *memberRead:
		d = read.d
	case *lookupDecoder:
		d = read
	}
	columns, err := d.end()
	if err != nil {
		return rowset.RowSet{}, err
	}
	d.count()
	return d.result(c.Inputs[0], columns), nil
}

// decoder returns a decoder of what the active rows look up.
func (l *preparedLookup) decoder(c *task.Ctx, r *task.Reads) (*lookupDecoder, error) {
	key, err := c.RedisKey(l.template)
	if err != nil {
		return nil, err
	}
	d := task.NewRead[lookupDecoder](r)
	*d = lookupDecoder{preparedLookup: l, c: c, command: l.command}
	if l.stated != nil {
		if d.asked, err = l.stated.arguments(c); err != nil {
			return nil, err
		}
	}
	if head, ok := tasks.Head(r).(*lookupDecoder); ok && slices.Equal(head.row, l.row) {
		d.ids = head.ids // They fill in the same.
	} else {
		d.ids = l.distinctOf(c, c.Inputs[0], key)
	}
	d.key = key.OfTexts(d.ids.texts)
	if d.command == nil && l.stated == nil && l.kind.asks == 0 {
		d.command = l.kind.keyCommand(key.Prefix, key.Suffix, l.fields())
	}
	if l.maxAge > 0 {
		now, ok := c.Params.Now()
		if !ok {
			return nil, task.Invalidf("max_age needs the time of the request, which is unknown")
		}
		d.oldest, d.newest = now-l.maxAge, now+stampAhead
	}
	return d, nil
}
