package builtin

import (
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// remoteBlock is how many values are written or read between two checks whether to stop.
const remoteBlock = 4096

// appendRequest appends the document that a service gets.
func (r *remoteNode) appendRequest(dst []byte, c *task.Ctx) ([]byte, error) {
	in := c.Inputs[0]
	dst = jsondoc.AppendString(append(dst, `{"node":`...), r.node.Title())
	if dst = append(dst, `,"user_id":`...); c.Params.User() != "" {
		dst = jsondoc.AppendString(dst, c.Params.User())
	} else {
		dst = strconv.AppendInt(dst, c.UserID, 10)
	}
	dst = append(dst, `,"params":{`...)
	for i, p := range r.params {
		dst = jsondoc.AppendName(dst, i, p.Name)
		dst = appendParam(dst, c, p)
	}
	dst = append(dst, `},"ids":[`...)
	texts := c.IDTexts()
	for i := range in.Len() {
		if dst = jsondoc.AppendComma(dst, i); texts != nil {
			dst = jsondoc.AppendString(dst, texts.At(in.ID(i)))
		} else {
			dst = strconv.AppendInt(dst, in.ID(i), 10)
		}
		if i%remoteBlock == 0 && c.Cancelled() {
			return nil, task.ErrCancelled
		}
	}
	dst = append(dst, `],"columns":{`...)
	var err error
	for i, key := range r.send {
		dst = append(jsondoc.AppendName(dst, i, key.Name), '[')
		if dst, err = appendColumn(dst, c, in, key); err != nil {
			return nil, err
		}
		dst = append(dst, ']')
	}
	return append(dst, "}}"...), nil
}

// appendParam appends the value of a parameter or a context field of the request, null if it has none.
func appendParam(dst []byte, c *task.Ctx, p *registry.Param) []byte {
	switch p.Type {
	case registry.Int:
		return appendGiven(dst, p, c.Params.Int, func(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) })
	case registry.Float:
		if v, _ := c.Params.Float(p.ID); isFinite(v) {
			return appendGiven(dst, p, c.Params.Float, jsondoc.AppendNumber)
		}
	case registry.Bool:
		return appendGiven(dst, p, c.Params.Bool, strconv.AppendBool)
	case registry.String:
		return appendGiven(dst, p, c.Params.String, jsondoc.AppendString)
	case registry.IntList:
		return appendGiven(dst, p, c.Params.IntList, jsondoc.AppendInts)
	case registry.FloatList:
		return appendGiven(dst, p, c.Params.FloatList, jsondoc.AppendNumbers)
	case registry.Vector:
		return appendGiven(dst, p, c.Params.Vector, appendVector)
	case registry.StringList:
		return appendGiven(dst, p, c.Params.StringList, jsondoc.AppendStrings)
	}
	return append(dst, "null"...)
}

func appendGiven[T any](dst []byte, p *registry.Param, given func(registry.ParamID) (T, bool), appendValue func([]byte, T) []byte) []byte {
	if v, ok := given(p.ID); ok {
		return appendValue(dst, v)
	}
	return append(dst, "null"...)
}

func appendVector(dst []byte, v []float32) []byte {
	dst, _ = (&rowset.VectorColumn{Dims: len(v), Values: v}).AppendJSON(dst, 0)
	return dst
}

func isFinite(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }

// appendColumn appends the values of the active rows in a column. Unlike readers of answers, services get whole
// doubles without a fraction. They never get a double that is not finite.
func appendColumn(dst []byte, c *task.Ctx, in rowset.RowSet, key *registry.Key) ([]byte, error) {
	column := in.Batch.Column(key.ID)
	floats, _ := column.(*rowset.FloatColumn)
	for i := range in.Len() {
		if i%remoteBlock == 0 && c.Cancelled() {
			return nil, task.ErrCancelled
		}
		dst = jsondoc.AppendComma(dst, i)
		row, ok := int(in.Row(i)), false
		if floats != nil {
			v, valid := floats.Value(row)
			if valid && !isFinite(v) {
				return nil, task.Invalidf("cannot send column %d (%s): row %d has id %s and is not finite", key.ID, key.Name, i, c.IDText(in.ID(i)))
			}
			if ok = valid; ok {
				dst = jsondoc.AppendNumber(dst, v)
			}
		} else if column != nil {
			dst, ok = column.AppendJSON(dst, row)
		}
		if !ok {
			dst = append(dst, "null"...)
		}
	}
	return dst, nil
}

// answerColumns builds the columns of an answer. Only the exchange uses it.
type answerColumns []answerColumn

// answerColumn builds one column.
type answerColumn struct {
	key     *registry.Key
	missing string
	read    bool   // the answer has it
	values  int    // that the answer has, including those beyond the limit
	sound   int    // of these, the ones of the key's type, as far as they are kept
	bad     int    // of these, the ones of another type than the key's
	first   string // an excerpt of the first of bad
	builder rowset.Builder
}

// begin makes the column empty, with room for so many rows.
func (b *answerColumn) begin(rows int) {
	*b = answerColumn{key: b.key, missing: b.missing, builder: rowset.NewBuilder(nil, b.key, rows)}
}

// builders returns empty columns with room for so many rows.
func (r *remoteNode) builders(rows int) answerColumns {
	columns := make(answerColumns, len(r.columns))
	for i, key := range r.columns {
		columns[i] = answerColumn{key: key, missing: r.missing}
		columns[i].begin(rows)
	}
	return columns
}

// columns returns what was built.
func (a answerColumns) columns() []rowset.Column {
	columns := make([]rowset.Column, len(a))
	for i := range a {
		columns[i] = a[i].builder.Column()
	}
	return columns
}

// countMalformed counts the values of another type than their key's, and tells of them.
func (a answerColumns) countMalformed(c *task.Ctx) {
	told := task.MalformedIDs{Values: true}
	for i := range a {
		b := &a[i]
		c.CountMalformed(b.key.Name, b.bad)
		if told.Count == 0 && b.bad > 0 {
			told.First, told.Key = b.first, b.key.Name
		}
		told.Count += b.bad
		told.Of += b.builder.Len()
	}
	c.DropIDs(told)
}

// named returns the column of that name, or nil if the node has none.
func (a answerColumns) named(name string) *answerColumn {
	for i := range a {
		if a[i].key.Name == name {
			return &a[i]
		}
	}
	return nil
}

// append takes one value of the answer. The error says that it is missing, and must not be.
func (b *answerColumn) append(value jsontext.Value) error {
	return b.appended(b.builder.AppendJSON(value), value.Kind() == jsontext.KindNull, func() string { return string(value) })
}

// appendValue is append for a value as Column.Any gives it. nil, and a number that is not finite, are none; shown says what stands there.
func (b *answerColumn) appendValue(value any, shown string) error {
	f, isFloat := value.(float64)
	sound := value != nil && (!isFloat || isFinite(f)) && b.builder.AppendAny(value)
	return b.appended(sound, false, func() string { return shown })
}

// appended goes on after the builder has taken a value, or has not. null says that there is none, which is no fault.
func (b *answerColumn) appended(sound, null bool, value func() string) error {
	if sound {
		b.sound++
		return nil
	}
	if !null {
		if b.bad++; b.bad == 1 {
			b.first = errtext.Text(value())
		}
	}
	switch b.missing {
	case missingFail:
		return task.Malformedf("columns.%s[%d] is %s, must be %s", b.key.Name, b.builder.Len(), task.Quote(value()), b.key.Type)
	case missingDefault:
		b.builder.AppendAny(b.key.Default)
	default:
		b.builder.AppendNull()
	}
	return nil
}

// answerReader reads the answer of a service. Only the exchange uses it.
type answerReader struct {
	jsondoc.Reader
	columns answerColumns
	// most is how many values of a column are kept; further ones are skipped. exact says that there must be no more.
	most  int
	exact bool
}

// readColumns reads an answer with exactly so many values in each column.
func readColumns(body []byte, columns answerColumns, rows int) error {
	r := &answerReader{columns: columns, most: rows, exact: true}
	err := r.document(body, func(name string) error {
		if name == "columns" {
			return r.readColumns()
		}
		return r.Skip()
	})
	if err != nil {
		return err
	}
	return columns.check(rows)
}

// answerIDs are the ids of an answer: integers, or texts. Only the exchange uses it.
type answerIDs struct {
	text  bool
	ids   []int64
	texts [][]byte
	all   int // that the answer has, including those beyond the limit
}

// take reads id i, and keeps it if it is among the first limit.
func (a *answerIDs) take(i int, value jsontext.Value, limit int) error {
	a.all++
	if a.text {
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil || !rowset.ValidID(text) {
			return task.Malformedf("ids[%d] is %s, must be a string of 1 to %d bytes", i, task.Quote(string(value)), rowset.IDBytesMax)
		}
		if i < limit {
			a.texts = append(a.texts, text)
		}
		return nil
	}
	id, ok := rowset.ParseJSONInt(value)
	if !ok {
		return task.Malformedf("ids[%d] is %s, must be an integer of 64 bits", i, task.Quote(string(value)))
	}
	if i < limit {
		a.ids = append(a.ids, id)
	}
	return nil
}

// rows makes rows of the ids that were kept, and returns their ids.
func (a *answerIDs) rows(c *task.Ctx) ([]int64, error) {
	if err := c.MakeRows(int64(len(a.ids) + len(a.texts))); err != nil || !a.text {
		return a.ids, err
	}
	return c.NumberIDs(make([]int64, 0, len(a.texts)), a.texts...)
}

// readCandidates reads an answer with ids, of which the first limit count.
func readCandidates(body []byte, columns answerColumns, ids *answerIDs, limit int) error {
	r := &answerReader{columns: columns, most: limit}
	hasIDs := false
	err := r.document(body, func(name string) error {
		switch name {
		case "columns":
			return r.readColumns()
		case "ids":
			hasIDs = true
			*ids = answerIDs{text: ids.text} // Of a name that stands twice the last value counts.
			return r.Values("ids", func(i int, value jsontext.Value) error { return ids.take(i, value, limit) })
		default:
			return r.Skip()
		}
	})
	switch {
	case err != nil:
		return err
	case !hasIDs:
		return task.Malformedf("ids is missing")
	}
	return columns.check(ids.all)
}

// check checks that the answer has each column, with so many values.
func (a answerColumns) check(rows int) error {
	for i := range a {
		b := &a[i]
		switch {
		case !b.read:
			return task.Malformedf("columns.%s is missing", b.key.Name)
		case b.values != rows:
			return task.Malformedf("columns.%s has %d values, must have %d", b.key.Name, b.values, rows)
		case b.bad > 0 && b.sound == 0:
			return task.Malformedf("columns.%s has no value of type %s: %s is none", b.key.Name, b.key.TypeName(), b.first)
		}
	}
	return nil
}

// readColumns reads the member columns.
func (r *answerReader) readColumns() error {
	for i := range r.columns {
		if r.columns[i].read {
			r.columns[i].begin(0)
		}
	}
	return r.Object("columns", func(name string) error {
		column := r.columns.named(name)
		if column == nil {
			return r.Skip()
		}
		if column.read {
			column.begin(0) // Of a name that stands twice the last value counts.
		}
		column.read = true
		return r.Values("columns."+name, func(i int, value jsontext.Value) error {
			column.values++
			switch {
			case i < r.most:
				return column.append(value)
			case r.exact:
				return task.Malformedf("columns.%s has more than %d values", name, r.most)
			default:
				return nil
			}
		})
	})
}

// Wrong implements jsondoc.Faults.
func (r *answerReader) Wrong(path, want string) error {
	value, err := r.ReadValue()
	if err != nil {
		return r.Syntax(err)
	}
	if path == "" {
		path = "the answer"
	}
	return task.Malformedf("%s is %s, must be %s", path, task.Quote(string(value)), want)
}

// Syntax implements jsondoc.Faults.
func (*answerReader) Syntax(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return task.Malformedf("not JSON: the body is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return task.Malformedf("not JSON: the body ends in the middle of a document")
	}
	return task.Malformedf("not JSON: %w", err)
}

// document reads the answer, an object. Nothing may follow it.
func (r *answerReader) document(body []byte, member func(name string) error) error {
	r.Reader = jsondoc.NewLenientReader(body, r)
	if err := r.Object("", member); err != nil {
		return err
	}
	if !r.AtEnd() {
		return task.Malformedf("something follows the JSON document")
	}
	return nil
}
