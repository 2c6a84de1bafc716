package builtin

import (
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// remoteParams are the parameters of both tasks that ask a service.
func remoteParams(more ...plan.ParamSchema) []plan.ParamSchema {
	return append([]plan.ParamSchema{
		{Name: "endpoint", Type: plan.Endpoint, Required: true, EndpointKind: registry.HTTP,
			Doc: "The service: an endpoint of kind `http`."},
		{Name: "send", Type: plan.Key, List: true, Source: plan.SourceRule{KeyTypes: lookupTypes},
			Doc: "Columns of the input that the service gets, besides the ids."},
		{Name: "params", Type: plan.String, List: true,
			Doc: "Names of request parameters and context fields whose values the service gets."},
		{Name: "missing", Type: plan.Enum, IsMissing: true, StrValue: missingNull, Source: plan.SourceRule{OneOf: []string{missingNull, missingDefault, missingFail}},
			Doc: "The replacement for a value that the answer has as null, or with another type than the key's: `null`, the key's `default` in the registry, or a failure of the node."},
	}, more...)
}

const remoteText = "The node posts one JSON document to the service, with all active rows:\n\n" +
	"`{\"node\":\"score\",\"user_id\":1,\"params\":{\"hour\":18},\"ids\":[7,9],\"columns\":{\"price\":[1.5,null]}}`\n\n" +
	"`node` is the node's label, the parameter `trace`, or its id if it has none. Integers are written exactly, also those beyond 2^53, and a string set as an array of strings. " +
	"A parameter without a value is `null`. Ids of users and of rows are strings where those of their entities are. "

const remoteFailures = "The node fails if the service cannot be reached, answers too late or with a status other than 2xx, or if the request or " +
	"the answer is larger than the endpoint allows. It fails, too, if the answer is not such a document, lacks one of the columns, or has a column of the " +
	"wrong length. The same holds for a column in which no value is of its key's type, and some value is of another one. Otherwise a value of another type counts as missing, and the answer's completeness tells of it. So does a number that the type cannot hold, such as 1.5 or 1e30 for an integer."

// remoteColumns writes columns that a service computes for the rows.
func remoteColumns() task.Spec {
	return task.Spec{
		Op:        "core::remote",
		OfRequest: true,
		Doc:       "Writes columns that a service behind an HTTP endpoint computes for the rows.",
		Strict:    true,
		Params: remoteParams(plan.ParamSchema{
			Name: "columns", Type: plan.Key, List: true, Required: true, MinItems: 1,
			Source: plan.SourceRule{KeyTypes: lookupTypes, Writes: true},
			Doc:    "Columns that the answer has, and that the node writes.",
		}),
		Inputs: 1,
		IDs:    plan.ReadsTextIDs,
		Output: task.SameRows,
		Scores: true,
		Reads: func(n *plan.Node, _ *registry.Registry) []registry.KeyID {
			return n.Prepared.(*remoteNode).dialect.reads()
		},
		Writes:    task.KeyParams("columns"),
		Prepare:   prepareRemote,
		TakesMost: func(n *plan.Node) (int64, string) { return n.Prepared.(*remoteNode).dialect.most() },
		Place:     task.Waits,
		Forgets:   true,
		Run:       runRemoteColumns,
		Reference: task.Reference{
			Text: remoteText + "The service answers with the columns, one value per id, in the order of the ids:\n\n" +
				"`{\"columns\":{\"score\":[0.25,null]}}`\n\nOther members are ignored.",
			Reads:      "The columns of `send`.",
			Writes:     "The columns of `columns`.",
			Redis:      "None. One HTTP request.",
			Order:      "As the input.",
			Nulls:      "Nulls are sent as `null`. A null in the answer is a missing value.",
			Empty:      "The service is not asked, and the result has the columns, without rows.",
			Duplicates: "Each row is sent and gets its own value.",
			Failures:   remoteFailures,
			Example: task.Example{
				Plan: `const service = EP.http.http_api;
return ctx
  .viewer({ endpoint: redis })
  .media({ endpoint: redis, fanout: 3 })
  .remote({ endpoint: service, send: [], columns: [Key.rank_score], params: ["weight"] })
  .sort({ by: Key.rank_score, order: "desc" });`,
				Service: `{"columns":{"rank_score":[0.25,0.75,null]}}`,
			},
		},
	}
}

// remoteCandidates makes rows that a service chooses.
func remoteCandidates() task.Spec {
	return task.Spec{
		Op:        "core::remote_candidates",
		OfRequest: true,
		Doc:       "Brings the rows that a service behind an HTTP endpoint answers with.",
		Strict:    true,
		Params: remoteParams(
			plan.ParamSchema{Name: "columns", Type: plan.Key, List: true, Source: plan.SourceRule{KeyTypes: lookupTypes, Writes: true},
				Doc: "Columns that the answer has, and that the node writes."},
			plan.ParamSchema{Name: "limit", Type: plan.Int, PerRequest: true, IntValue: 1000, Source: between(1, usersFanoutMax),
				Doc: "The most rows. Ids behind the first `limit` of the answer are left out."},
			entityParam,
		),
		Inputs:  1,
		IDs:     plan.ReadsTextIDs,
		Output:  task.Expand,
		RowsMax: func(n *plan.Node, _ int64) int64 { return n.Params.Int("limit") },
		Reads:   task.KeyParams("send"),
		Writes:  task.KeyParams("columns"),
		Prepare: prepareRemoteCandidates,
		Place:   task.Waits,
		Forgets: true,
		Run:     runRemoteCandidates,
		Reference: task.Reference{
			Text: remoteText + "The service answers with ids, and with one value per id in each column:\n\n" +
				"`{\"ids\":[11,12,13],\"columns\":{\"score\":[0.5,null,0.25]}}`\n\nOther members are ignored.",
			Reads:      "The columns of `send`.",
			Writes:     "The columns of `columns`.",
			Redis:      "None. One HTTP request.",
			Order:      "As the ids in the answer.",
			Nulls:      "Nulls are sent as `null`. A null in a column of the answer is a missing value.",
			Empty:      "An input without rows: the service is not asked, and the result has no rows. An answer without ids: no rows.",
			Duplicates: "An id that the answer has twice becomes two rows.",
			Failures:   remoteFailures + " An id that is not an integer of 64 bits makes the node fail. So does one that is not a string of 1 to 256 bytes, if the ids of `entity` are strings.",
			Example: task.Example{
				Plan: `const service = EP.http.http_api;
return ctx
  .viewer({ endpoint: redis })
  .remoteCandidates({ endpoint: service, send: [Key.country], columns: [Key.rank_score], limit: 2 });`,
				Service: `{"ids":[11,12,13],"columns":{"rank_score":[0.5,null,0.25]}}`,
			},
		},
	}
}

// remoteNode is what both tasks know about a node before any request. Immutable; any goroutine.
type remoteNode struct {
	node          *plan.Node
	send, columns []*registry.Key
	params        []*registry.Param
	missing       string
	dialect       dialect
}

// A dialect asks a service for the columns of a node in its own way. Immutable; any goroutine.
type dialect interface {
	// reads returns the keys of the columns that the service gets.
	reads() []registry.KeyID
	// most returns the most rows that one run may ask for, and why; 0: any number.
	most() (rows int64, why string)
	// ask asks for the active rows of the input, of which there are some, and returns a value of each.
	ask(c *task.Ctx) (answerColumns, error)
}

// prepareRemoteCandidates is prepareRemote for a node that brings rows.
func prepareRemoteCandidates(n *plan.Node, reg *registry.Registry) (any, error) {
	if n.Endpoint.Service.Dialect != registry.Document {
		return nil, plan.ParamErrorf("endpoint", "%s has the dialect %s, which brings no rows", n.Endpoint.Name, n.Endpoint.Service.Dialect)
	}
	return prepareRemote(n, reg)
}

// prepareRemote looks up the parameters of a node.
func prepareRemote(n *plan.Node, reg *registry.Registry) (any, error) {
	r := &remoteNode{node: n, send: n.Params.Keys("send"), columns: n.Params.Keys("columns"), missing: n.Params.String("missing")}
	for i, name := range n.Params.Strings("params") {
		param, ok := reg.ParamByName(name)
		if !ok {
			return nil, plan.ParamErrorf(plan.ItemPath("params", i), "there is no parameter %s in the registry", task.Quote(name))
		}
		r.params = append(r.params, param)
	}
	for _, list := range [...]struct {
		name string
		keys []*registry.Key
	}{{"send", r.send}, {"columns", r.columns}} {
		for i, key := range list.keys {
			switch {
			case key.ID == registry.IDKey:
				return nil, plan.ParamErrorf(plan.ItemPath(list.name, i), "the id is always sent, and cannot be written")
			case slices.Contains(list.keys[:i], key):
				return nil, plan.ParamErrorf(plan.ItemPath(list.name, i), "%s is there twice", key.Name)
			}
		}
	}
	for i, key := range r.columns {
		switch {
		case r.missing == missingNull && !key.Nullable:
			return nil, plan.ParamErrorf(plan.ItemPath("columns", i), "%s is not nullable, so missing must be %s or %s", key.Name, missingDefault, missingFail)
		case r.missing == missingDefault && key.Default == nil:
			return nil, plan.ParamErrorf(plan.ItemPath("columns", i), "%s has no default in the registry, so missing cannot be %s", key.Name, missingDefault)
		}
	}
	kind := n.Endpoint.Service.Dialect
	for _, name := range []string{"send", "params"} {
		if kind != registry.Document && n.Params.Given(name) {
			return nil, plan.ParamErrorf(name, "the endpoint's table says what a service of dialect %s gets", kind)
		}
	}
	var err error
	switch kind {
	case registry.OpenInference:
		r.dialect, err = newTensors(r, reg)
	case registry.Reranking:
		r.dialect, err = newReranker(r, reg)
	default:
		r.dialect = document{r}
	}
	return r, err
}

// document is the dialect of rankd's own JSON document.
type document struct{ node *remoteNode }

func (d document) reads() (keys []registry.KeyID) {
	for _, key := range d.node.send {
		keys = append(keys, key.ID)
	}
	return keys
}

func (document) most() (int64, string) { return 0, "" }

func (d document) ask(c *task.Ctx) (answer answerColumns, err error) {
	rows := c.Inputs[0].Len()
	err = d.node.exchange(c, func(body []byte) error {
		answer = d.node.builders(rows)
		return readColumns(body, answer, rows)
	})
	return answer, err
}

func runRemoteColumns(c *task.Ctx) (out rowset.RowSet, err error) {
	r, in := c.Node.Prepared.(*remoteNode), c.Inputs[0]
	if err := c.MakeRows(int64(in.Batch.Len())); err != nil { // the columns are as long as the batch
		return rowset.RowSet{}, err
	}
	if in.Len() == 0 {
		return rowset.Scatter(c.Memory, in, r.builders(0).columns()...), nil
	}
	answer, err := r.dialect.ask(c)
	if err != nil {
		return rowset.RowSet{}, err
	}
	answer.countMalformed(c)
	return rowset.Scatter(c.Memory, in, answer.columns()...), nil
}

func runRemoteCandidates(c *task.Ctx) (out rowset.RowSet, err error) {
	r := c.Node.Prepared.(*remoteNode)
	out = rowset.Dense(rowset.NewBatch(nil, r.builders(0).columns()...))
	if c.Inputs[0].Len() == 0 {
		return out, nil
	}
	limit, err := c.Int("limit")
	if err != nil {
		return rowset.RowSet{}, err
	}
	err = r.exchange(c, func(body []byte) error {
		answer := r.builders(0)
		ids := answerIDs{text: c.Node.Entity.TextIDs()}
		if err := readCandidates(body, answer, &ids, int(limit)); err != nil {
			return err
		}
		rows, err := ids.rows(c)
		if err == nil {
			answer.countMalformed(c)
			out = rowset.Dense(rowset.NewBatch(rows, answer.columns()...))
		}
		return err
	})
	return out, err
}

// exchange posts the rows of the input, and hands over the answer. Both documents are written and read off the loop.
func (r *remoteNode) exchange(c *task.Ctx, answer func(body []byte) error) error {
	request := func(dst []byte) ([]byte, error) { return r.appendRequest(dst, c) }
	return c.Remote(c.Node.Endpoint).Exchange(request, answer)
}
