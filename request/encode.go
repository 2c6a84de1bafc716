package request

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Format says how an answer shows the columns of a candidate.
type Format uint8

// The formats of an answer.
const (
	Flat   Format = iota // {"id":203,"score":20.3}
	Fields               // {"id":203,"fields":{"score":20.3}}
)

// Response is the content of the answer to a request that succeeded. It belongs to the
// caller of AppendResponse.
type Response struct {
	RequestID       string
	EngineRequestID string               // new for each answer
	Outputs         []rowset.RowSet      // shown one after the other, nothing merged
	Deltas          []rowset.SchemaDelta // shown if ShowDeltas
	ShowDeltas      bool
	Explanation     []byte             // a JSON value; nil: none
	Trace           []byte             // a JSON value; nil: none
	Completeness    []NodeCompleteness // nil: the answer does not speak of it
}

// NodeCompleteness says what one node contributed to an answer. The answer leaves out what is empty. Immutable.
type NodeCompleteness struct {
	Node, Op string
	Label    string // the node's "trace"
	Status   string
	Fallback string // id of the node whose result took the place of this one's
	Dropped  int    // rows left out because their keys failed
	Reason   string // one of a few known texts
	Detail   string // the exact fault
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
		e.names[k.ID] = string(append(appendString(nil, k.Name), ':'))
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
	dst = appendString(dst, r.RequestID)
	dst = append(dst, `,"engine_request_id":`...)
	dst = appendString(dst, r.EngineRequestID)
	if r.ShowDeltas {
		dst = append(dst, `,"schema_deltas":[`...)
		for i := range r.Deltas {
			dst = appendComma(dst, i)
			dst = appendDelta(dst, &r.Deltas[i])
		}
		dst = append(dst, ']')
	}
	dst = append(dst, `,"candidates":[`...)
	n := 0
	var few [8]string
	for i := range r.Outputs {
		output := &r.Outputs[i]
		// Look names up once per output, not once per row.
		c := candidates{names: few[:0]}
		if output.Batch != nil {
			e.look(&c, output.Batch)
		}
		for i := range output.Len() {
			dst = appendComma(dst, n)
			dst = e.appendCandidate(dst, &c, output.Row(i))
			n++
		}
	}
	dst = appendCompleteness(append(dst, ']'), r.Completeness)
	if r.Explanation != nil {
		dst = append(append(dst, `,"explain":`...), r.Explanation...)
	}
	return append(appendTrace(dst, r.Trace), "}\n"...)
}

// appendCompleteness appends the member about nodes, by their ids, if there is one.
func appendCompleteness(dst []byte, nodes []NodeCompleteness) []byte {
	if nodes == nil {
		return dst
	}
	dst = append(dst, `,"completeness":{`...)
	for i := range nodes {
		n := &nodes[i]
		dst = appendString(appendComma(dst, i), n.Node)
		dst = appendString(append(dst, `:{"op":`...), n.Op)
		for _, member := range [...]struct{ name, text string }{
			{`,"label":`, n.Label}, {`,"status":`, n.Status}, {`,"fallback":`, n.Fallback},
		} {
			if member.text != "" {
				dst = appendString(append(dst, member.name...), member.text)
			}
		}
		if n.Dropped > 0 {
			dst = strconv.AppendInt(append(dst, `,"dropped":`...), int64(n.Dropped), 10)
		}
		if n.Reason != "" {
			dst = appendString(append(dst, `,"reason":`...), n.Reason)
			dst = appendString(append(dst, `,"detail":`...), n.Detail)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendTrace appends the member of a trace, if there is one.
func appendTrace(dst, trace []byte) []byte {
	if trace == nil {
		return dst
	}
	return append(append(dst, `,"trace":`...), trace...)
}

// candidates are the rows of a batch, with the encoded name of each column.
type candidates struct {
	ids []int64
	rowset.Columns
	names   []string // of the columns, type by type
	members []string // scratch: those of one set
}

// look gives c the rows of b. names is empty before.
func (e *Encoder) look(c *candidates, b *rowset.Batch) {
	c.ids, c.Columns = b.IDs, b.Columns()
	for i := range c.Floats {
		c.names = append(c.names, e.name(c.Floats[i].Key))
	}
	for i := range c.Strings {
		c.names = append(c.names, e.name(c.Strings[i].Key))
	}
	for i := range c.Ints {
		c.names = append(c.names, e.name(c.Ints[i].Key))
	}
	for i := range c.Bools {
		c.names = append(c.names, e.name(c.Bools[i].Key))
	}
	for i := range c.Sets {
		c.names = append(c.names, e.name(c.Sets[i].Key))
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
	first := 1 // position of the first key in its object
	if e.format == Fields {
		dst = append(dst, `,"fields":{`...)
		first = 0
	}
	names := c.names
	for i := range c.Floats {
		if column := &c.Floats[i]; column.Valid.Get(int(row)) {
			dst = append(appendComma(dst, first), names[i]...)
			dst = appendFloat(dst, column.Values[row])
			first++
		}
	}
	names = names[len(c.Floats):]
	for i := range c.Strings {
		if column := &c.Strings[i]; column.Codes[row] != rowset.NullCode {
			dst = append(appendComma(dst, first), names[i]...)
			dst = appendString(dst, column.Dict.Values[column.Codes[row]])
			first++
		}
	}
	names = names[len(c.Strings):]
	for i := range c.Ints {
		if column := &c.Ints[i]; column.Valid.Get(int(row)) {
			dst = append(appendComma(dst, first), names[i]...)
			dst = strconv.AppendInt(dst, column.Values[row], 10)
			first++
		}
	}
	names = names[len(c.Ints):]
	for i := range c.Bools {
		if column := &c.Bools[i]; column.Valid.Get(int(row)) {
			dst = append(appendComma(dst, first), names[i]...)
			dst = strconv.AppendBool(dst, column.Values.Get(int(row)))
			first++
		}
	}
	names = names[len(c.Bools):]
	for i := range c.Sets {
		set, ok := c.Sets[i].AppendValues(c.members[:0], int(row))
		if !ok {
			continue
		}
		c.members = set
		dst = append(append(appendComma(dst, first), names[i]...), '[')
		for k, member := range set {
			dst = appendString(appendComma(dst, k), member)
		}
		dst = append(dst, ']')
		first++
	}
	if e.format == Fields {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendDelta(dst []byte, d *rowset.SchemaDelta) []byte {
	dst = appendString(append(dst, `{"node_id":`...), d.NodeID)
	dst = appendKeys(append(dst, `,"in_keys_union":`...), d.In)
	dst = appendKeys(append(dst, `,"out_keys":`...), d.Out)
	dst = appendKeys(append(dst, `,"new_keys":`...), d.New)
	dst = appendKeys(append(dst, `,"removed_keys":`...), d.Removed)
	return append(dst, '}')
}

func appendKeys(dst []byte, keys []registry.KeyID) []byte {
	dst = append(dst, '[')
	for i, key := range keys {
		dst = strconv.AppendUint(appendComma(dst, i), uint64(key), 10)
	}
	return append(dst, ']')
}

// AppendFailure appends the answer f as one line, line end included, and returns the
// extended buffer.
func AppendFailure(dst []byte, f *Failure) []byte {
	dst = appendString(append(dst, `{"request_id":`...), f.RequestID)
	dst = appendString(append(dst, `,"error":`...), f.Error)
	dst = appendString(append(dst, `,"detail":`...), f.Detail)
	if f.Node != "" || f.Op != "" {
		dst = appendString(append(dst, `,"node":`...), f.Node)
		dst = appendString(append(dst, `,"op":`...), f.Op)
	}
	if f.SourceSpan != "" {
		dst = appendString(append(dst, `,"source_span":`...), f.SourceSpan)
	}
	return append(appendTrace(dst, f.Trace), "}\n"...)
}

// appendComma appends a comma unless position i is the first.
func appendComma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}

// appendString appends s as a JSON string. U+FFFD replaces invalid UTF-8, which Redis may
// hold. AppendQuote reports that by an error, which appendString ignores.
func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// appendFloat appends the shortest decimal that reads back as f. A fraction or an
// exponent tells readers that it is a double. JSON has no infinities and no NaN, and tasks
// return none. If one came it would be null.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return append(dst, "null"...)
	}
	// The plain form serves from 1e-5 up to where its last digits cease to be
	// significant. Beyond, the exponent form is shorter and as exact.
	if abs := math.Abs(f); abs != 0 && (abs < 1e-5 || abs >= 1e15) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if f == math.Trunc(f) {
		dst = append(dst, ".0"...)
	}
	return dst
}
