package rankd

import (
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/rankd/rankd/internal/explain"
	"github.com/rankd/rankd/internal/generation"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/served"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
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

	generation *generation.Generation
	result     *scheduler.Result
	graph      *plan.Graph // nil: the answer is synthetic
	alias      *plan.Alias // that the request asked for; nil: it named a plan
	side       string      // of alias
	versioned  bool        // the JSON shows the version
	showDeltas bool
	recording  *trace.Recording // nil unless the request asked for it, and ran
	explained  *explained       // nil unless the request asked for it, and ran
	id         [16]byte         // the engine's; zero: each JSON has its own
	served     *served.Record   // of which Intake.Settle makes a line; nil: of none
}

// Version says which plan has answered. It is zero for a synthetic answer.
func (a *Answer) Version() Version {
	if a.graph == nil {
		return Version{}
	}
	v := versionOf(a.generation, a.graph, a.alias, a.side, a.result.Instead())
	v.Services = a.result.Services()
	return v
}

// Version says which plan has answered a request, of which generation, and which side of an alias that is.
type Version = plan.Version

// QueueDelay returns the part of Elapsed in which the request waited for admission.
func (a *Answer) QueueDelay() time.Duration {
	if a.result == nil {
		return 0
	}
	return a.result.QueueDelay
}

// Cost is what a request has cost. Not stable yet.
type Cost = scheduler.Cost

// Cost returns what the request has cost.
func (a *Answer) Cost() Cost {
	if a.result == nil {
		return Cost{}
	}
	return a.result.Cost
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
	o := Output{rows: a.result.Outputs[i], registry: a.generation.Registry}
	if texts := a.result.IDTexts(); texts != nil {
		o.texts = texts[i]
	}
	if names := a.result.OutputNames(); names != nil {
		o.name = names[i]
	}
	return o
}

// OutputNamed returns the candidates of the output with that name. ok is false if the plan has no such output.
func (a *Answer) OutputNamed(name string) (o Output, ok bool) {
	i := slices.Index(a.result.OutputNames(), name)
	if i < 0 {
		return Output{}, false
	}
	return a.Output(i), true
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
// buffer. Each call makes a new "engine_request_id", or repeats that of the answer's line in the log of what was
// served.
func (a *Answer) AppendJSON(dst []byte, f Format) []byte {
	r := request.Response{
		RequestID: a.RequestID, Outputs: a.outputs(),
		Deltas: a.SchemaDeltas(), ShowDeltas: a.showDeltas, Trace: traceJSON(a.Trace()), Explanation: explanationJSON(a.Explanation()),
		Completeness: a.Completeness(), BelowMinimum: a.BelowMinimum(), Fallback: a.Fallback(), FailedFallback: a.FailedFallback(), IDTexts: a.result.IDTexts(), OutputNames: a.result.OutputNames(),
	}
	if r.EngineRequestID = request.ID(a.id); a.id == [16]byte{} {
		r.EngineRequestID = request.NewID()
	}
	if a.versioned {
		v := a.Version()
		r.PlanVersion = &v
	}
	dst = a.grow(dst)
	if a.generation == nil {
		return request.NewEncoder(new(registry.Registry), f).AppendResponse(dst, &r) // without rows, which need a registry
	}
	return a.generation.Encoders[f].AppendResponse(dst, &r)
}

// Output is an ordered list of candidates that share columns. The zero value is empty. Immutable; any goroutine.
type Output struct {
	rows     rowset.RowSet
	registry *registry.Registry
	texts    *rowset.IDTexts // the ids, by the numbers in their place; nil: they are integers
	name     string
}

// Name returns the name that the plan gives the output, "home"; empty: none.
func (o Output) Name() string { return o.name }

// Len returns the number of candidates.
func (o Output) Len() int { return o.rows.Len() }

// Rows returns the candidates as the tasks see them: a batch of columns and the active rows.
// The row set must not be changed.
func (o Output) Rows() rowset.RowSet { return o.rows }

// ID returns the id of candidate i. For an entity whose ids are strings it is a number that is valid only within this
// answer: see IDText.
func (o Output) ID(i int) int64 { return o.rows.ID(i) }

// TextIDs reports whether the candidates are of an entity whose ids are strings.
func (o Output) TextIDs() bool { return o.texts != nil }

// IDText returns the id of candidate i as text: the digits of an integer.
func (o Output) IDText(i int) string { return o.idText(o.rows.ID(i)) }

func (o Output) idText(id int64) string {
	if o.texts != nil {
		return o.texts.At(id)
	}
	return strconv.FormatInt(id, 10)
}

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
	VectorColumn ColumnType = "vector"     // []float32
)

// Columns returns the columns: floats, strings, ints, bools, sets and vectors, those of one type in the order of their key
// ids. The id is not among them.
func (o Output) Columns() []Column {
	if o.rows.Batch == nil {
		return nil
	}
	columns := make([]Column, 0, o.rows.Batch.Count())
	for _, c := range o.rows.Batch.Columns() {
		columns = append(columns, Column{o.keyName(c.KeyID()), ColumnType(c.Type().String())})
	}
	return columns
}

func (o Output) keyName(id registry.KeyID) string {
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

// Sets is Floats for a column of string sets. The members of each are sorted by bytes.
func (o Output) Sets(column string) (values [][]string, null []bool, ok bool) {
	return valuesOf(o, column, (*rowset.Batch).Set, setValue)
}

// Vectors is Floats for a column of vectors. Callers must not change them.
func (o Output) Vectors(column string) (values [][]float32, null []bool, ok bool) {
	return valuesOf(o, column, (*rowset.Batch).Vector, (*rowset.VectorColumn).Value)
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

// IDText returns the candidate's id as text: the digits of an integer. It is "0" for the zero value.
func (c Candidate) IDText() string { return c.output.idText(c.ID()) }

// ID returns the candidate's id. For an entity whose ids are strings it is a number that is valid only within this
// answer: see IDText.
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

// explained is a run whose rows were kept, and what its request wants to know about them. Immutable.
type explained struct {
	graph  *plan.Graph
	rows   []scheduler.NodeRows
	userID int64
	params expr.Params
	asked  Explain
}

// newExplained returns what an explanation needs of an ended run.
func newExplained(x *scheduler.Execution, result *scheduler.Result, asked Explain) *explained {
	asked.IDs, asked.Items = slices.Clone(asked.IDs), slices.Clone(asked.Items)
	return &explained{graph: x.Graph, rows: result.Rows(), userID: x.UserID, params: x.Params, asked: asked}
}

// Explanation says why the rows of the answer are where they are, and why ids are missing. It is nil for a synthetic
// answer, and unless Request.Explain was set. Each call assembles it anew, from the rows of that run.
func (a *Answer) Explanation() *explain.Explanation {
	x := a.explained
	if x == nil {
		return nil
	}
	run := explain.Run{Graph: x.graph, Rows: x.rows, UserID: x.userID, Params: x.params}
	e := run.Of(explain.Asked{All: x.asked.All, IDs: x.asked.IDs, Items: x.asked.Items})
	e.PlanVersion = a.Version()
	return e
}

// explanationJSON returns the JSON form of an explanation, or nil if there is none.
func explanationJSON(e *explain.Explanation) []byte {
	if e == nil {
		return nil
	}
	doc, _ := e.MarshalJSON() // An explanation has nothing that JSON lacks.
	return doc
}

// Size returns the approximate size of the answer in bytes, in memory or as JSON, whichever is larger, with its trace
// and its explanation. It is cheap: it counts rows and events. A server uses it to bound what its clients leave
// unread.
func (a *Answer) Size() int {
	n := a.recording.JSONSize()
	for _, rows := range a.outputs() {
		n += max(jsonSize(rows), heldSize(rows))
	}
	if x := a.explained; x != nil {
		n += x.size(a.Len())
	}
	return n
}

// Size returns about how many bytes the error takes as JSON, with its trace.
func (e *Error) Size() int { return len(e.Text) + len(e.Detail) + e.recording.JSONSize() }

// grownRows is the most rows of an answer whose JSON grows step by step. That takes five times the memory.
const grownRows = 2048

// grow makes room in dst for the rows of a long answer.
func (a *Answer) grow(dst []byte) []byte {
	if a.Len() <= grownRows {
		return dst
	}
	n := 0
	for _, rows := range a.outputs() {
		n += jsonSize(rows)
	}
	return slices.Grow(dst, n)
}

// jsonSize returns about how many bytes the rows take in JSON. {"id":1234567}, and "score":0.12345678901234567, are common.
func jsonSize(rows rowset.RowSet) int {
	if rows.Batch == nil {
		return 0
	}
	return rows.Len() * (16 + 24*rows.Batch.Count())
}

// heldSize returns about how many bytes the rows hold, including inactive rows of their batch.
func heldSize(rows rowset.RowSet) int {
	if rows.Batch == nil {
		return 0
	}
	return rows.Batch.Len() * 8 * (1 + rows.Batch.Count())
}

// The approximate bytes of an explanation: at least, and for each row and node.
const (
	explainedJSONSize = 256
	stepJSONSize      = 100
)

// size returns about how many bytes the rows of all nodes hold, or the explanation takes as JSON, whichever is more. answered is
// the number of rows in the answer.
func (x *explained) size(answered int) int {
	held, told := 0, len(x.asked.IDs)+len(x.asked.Items)
	if x.asked.All {
		told = answered
	}
	for i := range x.rows {
		held += heldSize(x.rows[i].Out)
	}
	return max(held, explainedJSONSize+told*len(x.rows)*stepJSONSize)
}

// NodeStatus says how much of its result a node contributed to an answer.
type NodeStatus = outcome.NodeStatus

// The statuses of a node in an answer.
const (
	NodeOK       = outcome.NodeOK       // all of it
	NodePartial  = outcome.NodePartial  // all but rows whose keys failed
	NodeFallback = outcome.NodeFallback // it failed, and another node's result took its place
	NodeLate     = outcome.NodeLate     // it is optional, and the plan did not wait for it
	NodeFailed   = outcome.NodeFailed   // it failed, or a dispensable part of it did
)

// NodeCompleteness says what one node contributed to an answer.
type NodeCompleteness = request.NodeCompleteness

// Completeness says what each lenient node that was due contributed, and each other node with a shortfall, in the
// plan's order. It is nil if the plan has no lenient node and nothing is missing.
func (a *Answer) Completeness() []NodeCompleteness {
	return completenessOf(nil, a.result)
}

// completenessOf returns Answer.Completeness of a result, in the room of all if there is enough.
func completenessOf(all []NodeCompleteness, result *scheduler.Result) []NodeCompleteness {
	if result == nil || result.Completeness() == nil {
		return nil
	}
	lenient := result.Completeness()
	if all == nil || cap(all) < len(lenient) {
		all = make([]NodeCompleteness, len(lenient))
	}
	all = all[:len(lenient)]
	for i, c := range lenient {
		all[i] = NodeCompleteness{
			Node: c.Node.ID, Op: c.Node.Op, Label: c.Node.Trace, Status: c.Status, Dropped: c.Dropped, Err: c.Err, Malformed: c.Malformed, Cached: c.Cached,
		}
		if c.Status == NodeFallback {
			all[i].Fallback = c.Node.Fallback.ID
		}
		if c.Err != nil {
			all[i].Reason = failureOf(c.Err, textNode).text
		}
	}
	return all
}

// BelowMinimum says that an output has fewer rows than its plan wants.
type BelowMinimum = plan.Short

// BelowMinimum returns the outputs with fewer rows than the plan wants, in order. It is nil if there are none.
func (a *Answer) BelowMinimum() []BelowMinimum { return a.result.Short() }

// Fallback says that another plan has answered than the request asked for.
type Fallback = request.Fallback

// Fallback says which plan has answered in place of the one that was asked for, and why. It is nil if that one has
// answered itself.
func (a *Answer) Fallback() *Fallback {
	f := a.result.Instead()
	if f == nil {
		return nil
	}
	return &Fallback{Plan: a.Plan, InsteadOf: f.Of.Name, Reason: failureOf(f.Err, textNode).text, Err: f.Err}
}

// FailedFallback says which plan should have answered in place of one with too few rows, and why that failed: the answer then
// has those rows. It is nil if none has failed.
func (a *Answer) FailedFallback() *Fallback {
	f := a.result.FailedFallback()
	if f == nil {
		return nil
	}
	return &Fallback{Plan: f.Of.Name, InsteadOf: a.Plan, Reason: failureOf(f.Err, textNode).text, Err: f.Err}
}

// Degraded reports whether something is missing in the answer: Completeness says what.
func (a *Answer) Degraded() bool { return a.result != nil && a.result.Degraded() }
