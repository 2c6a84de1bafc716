package rankd

import (
	"iter"
	"time"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/request"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/trace"
)

// Answer is the result of a request that succeeded. It owns its memory: it stays valid after
// Close. The zero value has no outputs. Immutable; any goroutine.
type Answer struct {
	// RequestID is Request.ID.
	RequestID string
	// Plan names the plan that ran. Empty for a synthetic answer.
	Plan string
	// Elapsed is the time from the request's arrival to its completion.
	Elapsed time.Duration

	engine     *Engine
	result     *scheduler.Result
	showDeltas bool
	recording  *trace.Recording // nil unless the request asked for it, and ran
	explained  *explained       // nil unless the request asked for it, and ran
}

// QueueDelay returns the part of Elapsed in which the request waited to be let in.
func (a *Answer) QueueDelay() time.Duration {
	if a.result == nil {
		return 0
	}
	return a.result.QueueDelay
}

// outputs returns the rows of each output.
func (a *Answer) outputs() []rowset.RowSet {
	if a.result == nil {
		return nil
	}
	return a.result.Outputs
}

// Outputs returns the number of outputs of the plan.
func (a *Answer) Outputs() int { return len(a.outputs()) }

// Output returns the candidates of the i-th output of the plan.
func (a *Answer) Output(i int) Output {
	return Output{rows: a.result.Outputs[i], registry: a.engine.registry}
}

// Len returns the number of candidates over all outputs.
func (a *Answer) Len() int {
	n := 0
	for _, rows := range a.outputs() {
		n += rows.Len()
	}
	return n
}

// Candidates returns the candidates of the first output, then of the second, and so on.
// Nothing is merged.
func (a *Answer) Candidates() iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		for i := range a.outputs() {
			for c := range a.Output(i).Candidates() {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// SchemaDeltas says which columns each node took in and gave out, in the plan's order. It is nil
// unless Request.SchemaDeltas was set.
func (a *Answer) SchemaDeltas() []SchemaDelta {
	if a.result == nil {
		return nil
	}
	return a.result.Deltas()
}

// Trace says what ran when. It is nil unless Request.Trace was set, and for a synthetic answer. Each call assembles it
// anew.
func (a *Answer) Trace() *trace.Trace {
	if a.recording == nil {
		return nil
	}
	return a.recording.Trace()
}

// traceJSON returns the JSON form of a trace, or nil if there is none.
func traceJSON(t *trace.Trace) []byte {
	if t == nil {
		return nil
	}
	doc, _ := t.MarshalJSON() // A trace has nothing that JSON lacks.
	return doc
}

// SchemaDelta says which columns a node took in and gave out.
type SchemaDelta = rowset.SchemaDelta

// Format says how AppendJSON shows the columns of a candidate.
type Format = request.Format

// The formats.
const (
	FormatFlat   = request.Flat   // {"id":203,"score":20.3}
	FormatFields = request.Fields // {"id":203,"fields":{"score":20.3}}
)

// AppendJSON appends the answer as one line of JSON, line end included, and returns the extended
// buffer. Each call makes a new "engine_request_id".
func (a *Answer) AppendJSON(dst []byte, f Format) []byte {
	r := request.Response{
		RequestID: a.RequestID, EngineRequestID: request.NewID(), Outputs: a.outputs(),
		Deltas: a.SchemaDeltas(), ShowDeltas: a.showDeltas, Trace: traceJSON(a.Trace()), Explanation: explanationJSON(a.Explanation()),
		Completeness: a.Completeness(),
	}
	dst = a.grow(dst)
	if a.engine == nil {
		return request.NewEncoder(new(registry.Registry), f).AppendResponse(dst, &r) // without rows, which need a registry
	}
	return a.engine.encoders[f].AppendResponse(dst, &r)
}

// Output is an ordered list of candidates that share columns. The zero value is empty. Immutable; any goroutine.
type Output struct {
	rows     rowset.RowSet
	registry *registry.Registry
}

// Len returns the number of candidates.
func (o Output) Len() int { return o.rows.Len() }

// Rows returns the candidates as the tasks see them: a batch of columns and the active rows.
// The row set must not be changed.
func (o Output) Rows() rowset.RowSet { return o.rows }

// ID returns the id of candidate i.
func (o Output) ID(i int) int64 { return o.rows.ID(i) }

// Candidate returns candidate i.
func (o Output) Candidate(i int) Candidate { return Candidate{output: o, row: int(o.rows.Row(i))} }

// Candidates returns the candidates in order.
func (o Output) Candidates() iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		for i := range o.Len() {
			if !yield(o.Candidate(i)) {
				return
			}
		}
	}
}

// Column names a column and its type. Immutable.
type Column struct {
	Name string
	Type ColumnType
}

// ColumnType is the type of a column's values.
type ColumnType string

// The types of columns.
const (
	FloatColumn  ColumnType = "float"      // float64
	StringColumn ColumnType = "string"     // string
	IntColumn    ColumnType = "int"        // int64
	BoolColumn   ColumnType = "bool"       // bool
	SetColumn    ColumnType = "string_set" // []string
)

// Columns returns the columns: floats, strings, ints, bools and sets, those of one type in the order of their key
// ids. The id is not among them.
func (o Output) Columns() []Column {
	if o.rows.Batch == nil {
		return nil
	}
	columns := make([]Column, 0, o.rows.Batch.Count())
	for _, c := range o.rows.Batch.Columns() {
		columns = append(columns, Column{o.name(c.KeyID()), ColumnType(c.Type().String())})
	}
	return columns
}

func (o Output) name(id registry.KeyID) string {
	if key, ok := o.registry.Key(id); ok {
		return key.Name
	}
	return ""
}

// Floats returns the values of a float column, one per candidate in order. null[i] says that
// values[i] is null; a column without nulls has a nil null. ok is false if the output lacks a float
// column of that name.
func (o Output) Floats(column string) (values []float64, null []bool, ok bool) {
	return valuesOf(o, column, (*rowset.Batch).Float, (*rowset.FloatColumn).Value)
}

// Strings is Floats for a string column.
func (o Output) Strings(column string) (values []string, null []bool, ok bool) {
	return valuesOf(o, column, (*rowset.Batch).String, (*rowset.StringColumn).Value)
}

// Ints is Floats for an int column.
func (o Output) Ints(column string) (values []int64, null []bool, ok bool) {
	return valuesOf(o, column, (*rowset.Batch).Int, (*rowset.IntColumn).Value)
}

// Bools is Floats for a bool column.
func (o Output) Bools(column string) (values, null []bool, ok bool) {
	return valuesOf(o, column, (*rowset.Batch).Bool, (*rowset.BoolColumn).Value)
}

// Sets is Floats for a column of string sets. The members of each ascend by their bytes.
func (o Output) Sets(column string) (values [][]string, null []bool, ok bool) {
	return valuesOf(o, column, (*rowset.Batch).Set, setValue)
}

// setValue returns the set of a batch row.
func setValue(c *rowset.SetColumn, row int) ([]string, bool) { return c.AppendValues(nil, row) }

// valuesOf returns the values of a column of type C, one per candidate. of finds the column in a batch, and value
// returns the value of a batch row, or the zero value and false for a null.
func valuesOf[C, T any](o Output, name string, of func(*rowset.Batch, registry.KeyID) *C, value func(*C, int) (T, bool)) (values []T, null []bool, ok bool) {
	c := columnOf(o, name, of)
	if c == nil {
		return nil, nil, false
	}
	values = make([]T, o.Len())
	for i := range values {
		v, valid := value(c, int(o.rows.Row(i)))
		if !valid && null == nil {
			null = make([]bool, o.Len())
		}
		if !valid {
			null[i] = true
		}
		values[i] = v
	}
	return values, null, true
}

// columnOf returns the column of that name, or nil.
func columnOf[C any](o Output, name string, of func(*rowset.Batch, registry.KeyID) *C) *C {
	if o.rows.Batch == nil {
		return nil
	}
	key, ok := o.registry.KeyByName(name)
	if !ok {
		return nil
	}
	return of(o.rows.Batch, key.ID)
}

// Candidate is one ranked row. The zero value has ID 0 and no columns. Immutable; any goroutine.
type Candidate struct {
	output Output
	row    int // of the batch
}

// ID returns the candidate's id.
func (c Candidate) ID() int64 {
	if c.output.rows.Batch == nil {
		return 0
	}
	return c.output.rows.Batch.IDs[c.row]
}

// Float returns the candidate's value in a float column. ok is false if the value is null
// or the output lacks a float column of that name.
func (c Candidate) Float(column string) (value float64, ok bool) {
	return valueOf(c, column, (*rowset.Batch).Float, (*rowset.FloatColumn).Value)
}

// String returns the candidate's value in a string column. ok is false if the value is null
// or the output lacks a string column of that name.
func (c Candidate) String(column string) (value string, ok bool) {
	return valueOf(c, column, (*rowset.Batch).String, (*rowset.StringColumn).Value)
}

// Int returns the candidate's value in an int column. ok is false if the value is null or the output lacks
// an int column of that name.
func (c Candidate) Int(column string) (value int64, ok bool) {
	return valueOf(c, column, (*rowset.Batch).Int, (*rowset.IntColumn).Value)
}

// Bool returns the candidate's value in a bool column. ok is false if the value is null or the output lacks
// a bool column of that name.
func (c Candidate) Bool(column string) (value, ok bool) {
	return valueOf(c, column, (*rowset.Batch).Bool, (*rowset.BoolColumn).Value)
}

// Set returns the candidate's value in a column of string sets, its members ascending by their bytes. ok is
// false if the value is null or the output lacks such a column of that name.
func (c Candidate) Set(column string) (value []string, ok bool) {
	return valueOf(c, column, (*rowset.Batch).Set, setValue)
}

// valueOf is valuesOf for one candidate.
func valueOf[C, T any](c Candidate, name string, of func(*rowset.Batch, registry.KeyID) *C, value func(*C, int) (T, bool)) (v T, ok bool) {
	column := columnOf(c.output, name, of)
	if column == nil {
		return v, false
	}
	return value(column, c.row)
}
