package request

import (
	"maps"
	"slices"
	"strconv"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// Format says how an answer shows the columns of a candidate.
type Format uint8

// The formats of an answer.
const (
	Flat   Format = iota // {"id":203,"score":20.3}
	Fields               // {"id":203,"fields":{"score":20.3}}
)

// String returns the name of the format, as --response takes it.
func (f Format) String() string { return [...]string{"flat", "fields"}[f] }

// Response is the content of the answer to a request that succeeded. It belongs to the
// caller of AppendResponse.
type Response struct {
	RequestID       string
	EngineRequestID string               // new for each answer
	Outputs         []rowset.RowSet      // shown one after the other, nothing merged
	OutputNames     []string             // in the order of Outputs, each then shown under its name; nil: they have none
	IDTexts         []*rowset.IDTexts    // for each output its text ids, by the numbers that rows have in their place; nil: the ids are integers
	PlanVersion     *plan.Version        // nil: the answer does not have it
	Deltas          []rowset.SchemaDelta // shown if ShowDeltas
	ShowDeltas      bool
	Explanation     []byte             // a JSON value; nil: none
	Trace           []byte             // a JSON value; nil: none
	Completeness    []NodeCompleteness // nil: the answer does not have it
	BelowMinimum    []plan.Short       // nil: the answer does not have it
	Fallback        *Fallback          // nil: the answer does not have it
	FailedFallback  *Fallback          // nil: the answer does not have it
}

// Fallback says that another plan has answered than the request asked for, or should have. Immutable; any goroutine.
type Fallback struct {
	Plan      string // that has answered, or should have
	InsteadOf string // that had too few rows
	Reason    string // one of a few known sentences, as rankd.Error.Text
	Err       error  // why InsteadOf did not answer; of a fallback that failed, why Plan did not
}

// appendFallback appends a member about plans, if there is one.
func appendFallback(dst []byte, name string, f *Fallback) []byte {
	if f == nil {
		return dst
	}
	dst = jsondoc.AppendString(append(append(append(dst, `,"`...), name...), `":{"plan":`...), f.Plan)
	dst = jsondoc.AppendString(append(dst, `,"instead_of":`...), f.InsteadOf)
	dst = jsondoc.AppendString(append(dst, `,"reason":`...), f.Reason)
	return append(jsondoc.AppendString(append(dst, `,"detail":`...), f.Err.Error()), '}')
}

// NodeCompleteness says what one node contributed to an answer. The JSON form leaves out what is empty. Immutable; any goroutine.
type NodeCompleteness struct {
	Node, Op string // id, and op with namespace
	Label    string // the common parameter "trace"; empty: none
	Status   outcome.NodeStatus
	Fallback string // id of the node whose result replaced this one's, if Status is NodeFallback
	Dropped  int    // rows left out because their keys failed
	Reason   string // one of a few known sentences, as rankd.Error.Text; empty if Status is NodeOK
	Err      error  // why the node, or the first key, failed; nil if Status is NodeOK
	// Malformed says which ids or values the node could not read; nil: none. It does not affect the status.
	Malformed *task.MalformedIDs
	Cached    rowcache.Use // which of what the node read was in memory
}

// Failure is the content of the answer to a request that failed. The answer leaves Node
// and Op out when both are empty, because "" is a legal node id. It belongs to the caller
// of AppendFailure.
type Failure struct {
	RequestID string
	Error     string // one of a few known texts
	Detail    string // the exact fault
	Node, Op  string // the node that failed, if one did
	Trace     []byte // a JSON value; nil: none
	// SourceSpan is the place in the plan's source that the failure came from. The answer leaves
	// it out when it is empty.
	SourceSpan string
}

// An Encoder writes answers, one line of JSON each. Immutable once built; any
// goroutine.
type Encoder struct {
	format Format
	names  map[registry.KeyID]string // `"name":`
}

// NewEncoder returns an encoder that shows keys by their names in reg.
func NewEncoder(reg *registry.Registry, format Format) *Encoder {
	e := &Encoder{format: format, names: make(map[registry.KeyID]string)}
	for _, k := range reg.Keys() {
		e.names[k.ID] = string(append(jsondoc.AppendString(nil, k.Name), ':'))
	}
	return e
}

// AppendResponse appends the answer r as one line, line end included, and returns the
// extended buffer.
//
// A candidate shows its id, then its non-null floats, strings, ints, bools and sets, in this order of
// types, each ascending by key id. A float is the shortest decimal that reads back as the same
// double, always with a fraction or an exponent. An int has all its digits, and no fraction. A set is an
// array of its strings, ascending by their bytes.
func (e *Encoder) AppendResponse(dst []byte, r *Response) []byte {
	dst = append(dst, `{"request_id":`...)
	dst = jsondoc.AppendString(dst, r.RequestID)
	dst = append(dst, `,"engine_request_id":`...)
	dst = jsondoc.AppendString(dst, r.EngineRequestID)
	if r.PlanVersion != nil {
		dst = AppendVersion(append(dst, `,"plan_version":`...), r.PlanVersion)
	}
	if r.ShowDeltas {
		dst = append(dst, `,"schema_deltas":[`...)
		for i := range r.Deltas {
			dst = jsondoc.AppendComma(dst, i)
			dst = appendDelta(dst, &r.Deltas[i])
		}
		dst = append(dst, ']')
	}
	if r.OutputNames == nil {
		dst = append(dst, `,"candidates":[`...)
		n := 0
		for i := range r.Outputs {
			dst = e.appendOutput(dst, r, i, n)
			n += r.Outputs[i].Len()
		}
		dst = append(dst, ']')
	} else {
		dst = append(dst, `,"outputs":{`...)
		for i, name := range r.OutputNames {
			dst = jsondoc.AppendString(jsondoc.AppendComma(dst, i), name)
			dst = append(e.appendOutput(append(dst, ":["...), r, i, 0), ']')
		}
		dst = append(dst, '}')
	}
	dst = AppendCompleteness(appendFallback(dst, "fallback", r.Fallback), r.Completeness, true)
	dst = appendFallback(AppendBelowMinimum(dst, r.BelowMinimum), "fallback_failed", r.FailedFallback)
	if r.Explanation != nil {
		dst = append(append(dst, `,"explain":`...), r.Explanation...)
	}
	return append(appendTrace(dst, r.Trace), "}\n"...)
}

// AppendVersion appends the JSON form of a version, as encoding/json does.
func AppendVersion(dst []byte, v *plan.Version) []byte {
	dst = jsondoc.AppendString(append(dst, `{"plan":`...), v.Plan)
	dst = jsondoc.AppendString(append(dst, `,"digest":`...), v.Digest)
	if v.Alias != "" {
		dst = jsondoc.AppendString(append(dst, `,"alias":`...), v.Alias)
		dst = jsondoc.AppendString(append(dst, `,"side":`...), v.Side)
	}
	if v.InsteadOf != "" {
		dst = jsondoc.AppendString(append(dst, `,"instead_of":`...), v.InsteadOf)
	}
	for i, node := range slices.Sorted(maps.Keys(v.Services)) {
		if i == 0 {
			dst = append(dst, `,"services":{`...)
		}
		dst = jsondoc.AppendString(jsondoc.AppendName(dst, i, node), v.Services[node])
	}
	if len(v.Services) > 0 {
		dst = append(dst, '}')
	}
	dst = strconv.AppendUint(append(dst, `,"generation":`...), v.Generation, 10)
	if v.GenerationDigest != "" {
		dst = jsondoc.AppendString(append(dst, `,"generation_digest":`...), v.GenerationDigest)
	}
	return append(dst, '}')
}

// appendOutput appends the candidates of the i-th output, after n others in their list.
func (e *Encoder) appendOutput(dst []byte, r *Response, i, n int) []byte {
	output := &r.Outputs[i]
	// Look names up once per output, not once per row.
	var few [8]string
	c := candidates{names: few[:0]}
	if output.Batch != nil {
		e.look(&c, output.Batch)
	}
	if i < len(r.IDTexts) && r.IDTexts[i] != nil {
		for at := range output.Len() {
			dst = append(jsondoc.AppendComma(dst, n+at), `{"id":`...)
			dst = jsondoc.AppendString(dst, r.IDTexts[i].At(output.ID(at)))
			dst = e.appendColumns(dst, &c, output.Row(at))
		}
		return dst
	}
	for at := range output.Len() {
		dst = e.appendCandidate(jsondoc.AppendComma(dst, n+at), &c, output.Row(at))
	}
	return dst
}

// AppendCompleteness appends the member about nodes, by their ids, if there is one. Without details it quotes nothing of Redis, of
// services or of rows.
func AppendCompleteness(dst []byte, nodes []NodeCompleteness, details bool) []byte {
	if nodes == nil {
		return dst
	}
	dst = append(dst, `,"completeness":{`...)
	for i := range nodes {
		n := &nodes[i]
		dst = jsondoc.AppendString(jsondoc.AppendComma(dst, i), n.Node)
		dst = jsondoc.AppendString(append(dst, `:{"op":`...), n.Op)
		for _, member := range [...]struct{ name, text string }{
			{`,"label":`, n.Label}, {`,"status":`, string(n.Status)}, {`,"fallback":`, n.Fallback},
		} {
			if member.text != "" {
				dst = jsondoc.AppendString(append(dst, member.name...), member.text)
			}
		}
		if n.Dropped > 0 {
			dst = strconv.AppendInt(append(dst, `,"dropped":`...), int64(n.Dropped), 10)
		}
		if m := n.Malformed; m != nil {
			dst = strconv.AppendInt(append(dst, `,"malformed":{"count":`...), int64(m.Count), 10)
			dst = strconv.AppendInt(append(dst, `,"of":`...), int64(m.Of), 10)
			if details {
				dst = jsondoc.AppendString(append(dst, `,"first":`...), m.First)
				dst = jsondoc.AppendString(append(dst, `,"key":`...), m.Key)
			}
			dst = append(dst, '}')
		}
		if c := n.Cached; c.Values > 0 {
			dst = strconv.AppendInt(append(dst, `,"cached":{"values":`...), int64(c.Values), 10)
			dst = append(strconv.AppendInt(append(dst, `,"age_ms":`...), c.Age.Milliseconds(), 10), '}')
		}
		if n.Reason != "" {
			dst = jsondoc.AppendString(append(dst, `,"reason":`...), n.Reason)
			if details {
				dst = jsondoc.AppendString(append(dst, `,"detail":`...), n.Err.Error())
			}
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// AppendBelowMinimum appends the member about outputs, if there is one.
func AppendBelowMinimum(dst []byte, short []plan.Short) []byte {
	for i := range short {
		if i == 0 {
			dst = append(dst, `,"below_minimum":{`...)
		}
		dst = jsondoc.AppendString(jsondoc.AppendComma(dst, i), short[i].Output)
		dst = strconv.AppendInt(append(dst, `:{"rows":`...), int64(short[i].Rows), 10)
		dst = append(strconv.AppendInt(append(dst, `,"min_rows":`...), int64(short[i].MinRows), 10), '}')
	}
	if short != nil {
		dst = append(dst, '}')
	}
	return dst
}

// appendTrace appends the member of a trace, if there is one.
func appendTrace(dst, trace []byte) []byte {
	if trace == nil {
		return dst
	}
	return append(append(dst, `,"trace":`...), trace...)
}

// candidates are the rows of a batch, with the encoded name of each column. One goroutine at a time.
type candidates struct {
	ids     []int64
	columns []rowset.Column
	names   []string // of the columns
}

// look gives c the rows of b. names must be empty.
func (e *Encoder) look(c *candidates, b *rowset.Batch) {
	c.ids, c.columns = b.IDs, b.Columns()
	for _, column := range c.columns {
		c.names = append(c.names, e.name(column.KeyID()))
	}
}

// name returns `"name":` for a key, with its number if the registry lacks the key.
func (e *Encoder) name(key registry.KeyID) string {
	if name, ok := e.names[key]; ok {
		return name
	}
	return `"` + strconv.FormatUint(uint64(key), 10) + `":`
}

func (e *Encoder) appendCandidate(dst []byte, c *candidates, row int32) []byte {
	dst = append(dst, `{"id":`...)
	dst = strconv.AppendInt(dst, c.ids[row], 10)
	return e.appendColumns(dst, c, row)
}

// appendColumns appends what follows the id of a candidate.
func (e *Encoder) appendColumns(dst []byte, c *candidates, row int32) []byte {
	first := 1 // position of the first key in its object
	if e.format == Fields {
		dst = append(dst, `,"fields":{`...)
		first = 0
	}
	for i, column := range c.columns {
		before := len(dst)
		value, ok := column.AppendJSON(append(jsondoc.AppendComma(dst, first), c.names[i]...), int(row))
		if dst = value; ok {
			first++
		} else {
			dst = dst[:before]
		}
	}
	if e.format == Fields {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendDelta(dst []byte, d *rowset.SchemaDelta) []byte {
	dst = jsondoc.AppendString(append(dst, `{"node_id":`...), d.NodeID)
	dst = appendKeys(append(dst, `,"in_keys_union":`...), d.In)
	dst = appendKeys(append(dst, `,"out_keys":`...), d.Out)
	dst = appendKeys(append(dst, `,"new_keys":`...), d.New)
	dst = appendKeys(append(dst, `,"removed_keys":`...), d.Removed)
	return append(dst, '}')
}

func appendKeys(dst []byte, keys []registry.KeyID) []byte {
	dst = append(dst, '[')
	for i, key := range keys {
		dst = strconv.AppendUint(jsondoc.AppendComma(dst, i), uint64(key), 10)
	}
	return append(dst, ']')
}

// AppendFailure appends the answer f as one line, line end included, and returns the
// extended buffer.
func AppendFailure(dst []byte, f *Failure) []byte {
	dst = jsondoc.AppendString(append(dst, `{"request_id":`...), f.RequestID)
	dst = jsondoc.AppendString(append(dst, `,"error":`...), f.Error)
	dst = jsondoc.AppendString(append(dst, `,"detail":`...), f.Detail)
	if f.Node != "" || f.Op != "" {
		dst = jsondoc.AppendString(append(dst, `,"node":`...), f.Node)
		dst = jsondoc.AppendString(append(dst, `,"op":`...), f.Op)
	}
	if f.SourceSpan != "" {
		dst = jsondoc.AppendString(append(dst, `,"source_span":`...), f.SourceSpan)
	}
	return append(appendTrace(dst, f.Trace), "}\n"...)
}
