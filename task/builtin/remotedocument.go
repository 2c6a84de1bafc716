package builtin

import (
	"bytes"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// remoteBlock is how many values are written or read before somebody asks whether to stop.
const remoteBlock = 4096

// appendRequest appends the document that a service gets.
func (r *remoteNode) appendRequest(dst []byte, c *task.Ctx) ([]byte, error) {
	in := c.Inputs[0]
	dst = appendQuoted(append(dst, `{"node":`...), r.node.Title())
	dst = strconv.AppendInt(append(dst, `,"user_id":`...), c.UserID, 10)
	dst = append(dst, `,"params":{`...)
	for i, p := range r.params {
		dst = appendName(dst, i, p.Name)
		dst = appendParam(dst, c, p)
	}
	dst = append(dst, `},"ids":[`...)
	for i := range in.Len() {
		dst = strconv.AppendInt(appendComma(dst, i), in.ID(i), 10)
		if i%remoteBlock == 0 && c.Cancelled() {
			return nil, task.ErrCancelled
		}
	}
	dst = append(dst, `],"columns":{`...)
	var err error
	for i, key := range r.send {
		dst = append(appendName(dst, i, key.Name), '[')
		if dst, err = appendColumn(dst, c, in, key); err != nil {
			return nil, err
		}
		dst = append(dst, ']')
	}
	return append(dst, "}}"...), nil
}

// appendName appends the name of the member at position i of an object.
func appendName(dst []byte, i int, name string) []byte {
	return append(appendQuoted(appendComma(dst, i), name), ':')
}

func appendComma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}

// appendQuoted appends a JSON string. U+FFFD replaces invalid UTF-8, which AppendQuote reports and this ignores.
func appendQuoted[T string | []byte](dst []byte, text T) []byte {
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}

// appendParam appends the value of a parameter or a context field of the request, null if it has none.
func appendParam(dst []byte, c *task.Ctx, p *registry.Param) []byte {
	switch p.Type {
	case registry.Int:
		if v, ok := c.Params.Int(p.ID); ok {
			return strconv.AppendInt(dst, v, 10)
		}
	case registry.Float:
		if v, ok := c.Params.Float(p.ID); ok && isFinite(v) {
			return appendFloat(dst, v)
		}
	case registry.Bool:
		if v, ok := c.Params.Bool(p.ID); ok {
			return strconv.AppendBool(dst, v)
		}
	case registry.String:
		if v, ok := c.Params.String(p.ID); ok {
			return appendQuoted(dst, v)
		}
	case registry.IntList:
		if list, ok := c.Params.IntList(p.ID); ok {
			dst = append(dst, '[')
			for i, v := range list {
				dst = strconv.AppendInt(appendComma(dst, i), v, 10)
			}
			return append(dst, ']')
		}
	case registry.StringList:
		if list, ok := c.Params.StringList(p.ID); ok {
			return appendStrings(dst, list)
		}
	}
	return append(dst, "null"...)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		dst = appendQuoted(appendComma(dst, i), v)
	}
	return append(dst, ']')
}

func isFinite(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }

// appendFloat appends the shortest decimal that reads back as the same double.
func appendFloat(dst []byte, v float64) []byte {
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, 64)
}

// appendColumn appends the values of the active rows in a column. A double that is not finite has no form in JSON.
func appendColumn(dst []byte, c *task.Ctx, in rowset.RowSet, key *registry.Key) ([]byte, error) {
	b := in.Batch
	floats, ints, bools, texts, sets := b.Float(key.ID), b.Int(key.ID), b.Bool(key.ID), b.String(key.ID), b.Set(key.ID)
	var members []string
	for i := range in.Len() {
		if i%remoteBlock == 0 && c.Cancelled() {
			return nil, task.ErrCancelled
		}
		dst = appendComma(dst, i)
		row := int(in.Row(i))
		switch {
		case floats != nil && floats.Valid.Get(row):
			v := floats.Values[row]
			if !isFinite(v) {
				return nil, task.Invalidf("cannot send column %d (%s): row %d has id %d and is not finite", key.ID, key.Name, i, in.ID(i))
			}
			dst = appendFloat(dst, v)
			continue
		case ints != nil && ints.Valid.Get(row):
			dst = strconv.AppendInt(dst, ints.Values[row], 10)
			continue
		case bools != nil && bools.Valid.Get(row):
			dst = strconv.AppendBool(dst, bools.Values.Get(row))
			continue
		}
		if texts != nil {
			if v, ok := texts.Value(row); ok {
				dst = appendQuoted(dst, v)
				continue
			}
		}
		if sets != nil {
			var ok bool
			if members, ok = sets.AppendValues(members[:0], row); ok {
				dst = appendStrings(dst, members)
				continue
			}
		}
		dst = append(dst, "null"...)
	}
	return dst, nil
}

// answerColumns builds the columns of an answer. Only the exchange uses it.
type answerColumns []answerColumn

// answerColumn builds one column. The builder of its key's type is set.
type answerColumn struct {
	key     *registry.Key
	missing string
	read    bool // the answer has it
	values  int  // that the answer has, those beyond the limit among them
	bad     int  // of these, the ones of another type than the key's
	floats  rowset.FloatBuilder
	ints    rowset.IntBuilder
	bools   rowset.BoolBuilder
	texts   rowset.StringBuilder
	sets    rowset.SetBuilder
	text    []byte // scratch
}

// builders returns empty columns with room for so many rows.
func (r *remoteNode) builders(rows int) answerColumns {
	columns := make(answerColumns, len(r.columns))
	for i, key := range r.columns {
		b := &columns[i]
		b.key, b.missing = key, r.missing
		switch key.Type {
		case registry.Float:
			b.floats = rowset.NewFloatBuilder(key.ID, rows)
		case registry.Int:
			b.ints = rowset.NewIntBuilder(key.ID, rows)
		case registry.Bool:
			b.bools = rowset.NewBoolBuilder(key.ID, rows)
		case registry.String:
			b.texts = rowset.NewStringBuilder(key.ID, rows)
		case registry.StringSet:
			b.sets = rowset.NewSetBuilder(key.ID, rows)
		}
	}
	return columns
}

// columns returns what was built.
func (a answerColumns) columns() (c rowset.Columns) {
	for i := range a {
		b := &a[i]
		switch b.key.Type {
		case registry.Float:
			c.Floats = append(c.Floats, b.floats.Column())
		case registry.Int:
			c.Ints = append(c.Ints, b.ints.Column())
		case registry.Bool:
			c.Bools = append(c.Bools, b.bools.Column())
		case registry.String:
			c.Strings = append(c.Strings, b.texts.Column())
		case registry.StringSet:
			c.Sets = append(c.Sets, b.sets.Column())
		}
	}
	return c
}

// countMalformed counts the values of another type than their key's.
func (a answerColumns) countMalformed(c *task.Ctx) {
	for i := range a {
		c.CountMalformed(a[i].key.Name, a[i].bad)
	}
}

// named returns the column of that name that the answer has not had yet, or nil.
func (a answerColumns) named(name string) *answerColumn {
	for i := range a {
		if a[i].key.Name == name {
			return &a[i]
		}
	}
	return nil
}

// len returns the number of values so far.
func (b *answerColumn) len() int {
	switch b.key.Type {
	case registry.Float:
		return b.floats.Len()
	case registry.Int:
		return b.ints.Len()
	case registry.Bool:
		return b.bools.Len()
	case registry.String:
		return b.texts.Len()
	default:
		return b.sets.Len()
	}
}

// append takes one value of the answer. The error says that it is missing, and must not be.
func (b *answerColumn) append(value jsontext.Value) error {
	if b.take(value) {
		return nil
	}
	if value.Kind() != 'n' {
		b.bad++
	}
	if b.missing == missingFail {
		return task.Malformedf("columns.%s[%d] is %s, must be %s", b.key.Name, b.len(), task.Quote(string(value)), b.key.Type)
	}
	b.appendMissing()
	return nil
}

// take appends a value of the key's type. False means that it is of another type, and nothing was appended.
func (b *answerColumn) take(value jsontext.Value) bool {
	kind := value.Kind()
	switch b.key.Type {
	case registry.Float:
		v, ok := rowset.ParseFloat(value)
		if kind == '0' && ok {
			b.floats.Append(v)
		}
		return kind == '0' && ok
	case registry.Int:
		v, ok := parseInt(value)
		if kind == '0' && ok {
			b.ints.Append(v)
		}
		return kind == '0' && ok
	case registry.Bool:
		if kind != 't' && kind != 'f' {
			return false
		}
		b.bools.Append(kind == 't')
		return true
	case registry.String:
		if kind != '"' {
			return false
		}
		b.text, _ = jsontext.AppendUnquote(b.text[:0], value) // The decoder has checked it.
		b.texts.Append(b.text)
		return true
	default:
		return kind == '[' && b.sets.AppendText(value)
	}
}

// parseInt reads an integer: exactly if it is written without fraction and exponent, otherwise up to 2^53.
func parseInt(text []byte) (int64, bool) {
	if v, ok := rowset.ParseInt(text); ok {
		return v, true
	}
	v, ok := rowset.ParseFloat(text)
	return int64(v), ok && v == math.Trunc(v) && math.Abs(v) <= 1<<53
}

// appendMissing appends a null or the key's default.
func (b *answerColumn) appendMissing() {
	ifMissing := b.key.Default
	if b.missing != missingDefault {
		ifMissing = nil
	}
	switch b.key.Type {
	case registry.Float:
		if v, ok := ifMissing.(float64); ok {
			b.floats.Append(v)
			return
		}
		b.floats.AppendNull()
	case registry.Int:
		if v, ok := ifMissing.(int64); ok {
			b.ints.Append(v)
			return
		}
		b.ints.AppendNull()
	case registry.Bool:
		if v, ok := ifMissing.(bool); ok {
			b.bools.Append(v)
			return
		}
		b.bools.AppendNull()
	case registry.String:
		if v, ok := ifMissing.(string); ok {
			b.texts.Append([]byte(v))
			return
		}
		b.texts.AppendNull()
	default:
		if members, ok := ifMissing.([]string); ok {
			for _, m := range members {
				b.sets.Add([]byte(m))
			}
			b.sets.Append()
			return
		}
		b.sets.AppendNull()
	}
}

// answerReader reads the answer of a service. Only the exchange uses it.
type answerReader struct {
	in      *jsontext.Decoder
	columns answerColumns
	// most is how many values of a column are kept; further ones are skipped. exact says that there must be no more.
	most  int
	exact bool
}

// readColumns reads an answer with exactly so many values in each column.
func readColumns(body []byte, columns answerColumns, rows int) error {
	r := &answerReader{in: jsontext.NewDecoder(bytes.NewReader(body)), columns: columns, most: rows, exact: true}
	err := r.object("", func(name string) error {
		if name == "columns" {
			return r.readColumns()
		}
		return r.skip()
	})
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return err
	}
	return columns.check(rows)
}

// readCandidates reads an answer with ids, of which the first limit count. makeRows is told the number of rows before
// they are kept.
func readCandidates(body []byte, columns answerColumns, limit int, makeRows func(int) error) (ids []int64, err error) {
	r := &answerReader{in: jsontext.NewDecoder(bytes.NewReader(body)), columns: columns, most: limit}
	hasIDs, all := false, 0
	err = r.object("", func(name string) error {
		switch name {
		case "columns":
			return r.readColumns()
		case "ids":
			hasIDs = true
			return r.array("ids", func(i int, value jsontext.Value) error {
				id, ok := parseInt(value)
				if value.Kind() != '0' || !ok {
					return task.Malformedf("ids[%d] is %s, must be an integer of 64 bits", i, task.Quote(string(value)))
				}
				if all++; i < limit {
					ids = append(ids, id)
				}
				return nil
			})
		default:
			return r.skip()
		}
	})
	if err == nil {
		err = r.end()
	}
	switch {
	case err != nil:
		return nil, err
	case !hasIDs:
		return nil, task.Malformedf("ids is missing")
	}
	if err := makeRows(len(ids)); err != nil {
		return nil, err
	}
	return ids, columns.check(all)
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
		}
	}
	return nil
}

// readColumns reads the member columns.
func (r *answerReader) readColumns() error {
	return r.object("columns", func(name string) error {
		column := r.columns.named(name)
		if column == nil {
			return r.skip()
		}
		column.read = true
		return r.array("columns."+name, func(i int, value jsontext.Value) error {
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

// object reads an object and has member read the value of each member. No member may come twice.
func (r *answerReader) object(path string, member func(name string) error) error {
	if kind := r.in.PeekKind(); kind != '{' {
		return r.wrong(path, "an object")
	}
	if _, err := r.in.ReadToken(); err != nil {
		return malformed(err)
	}
	for r.in.PeekKind() != '}' {
		name, err := r.in.ReadToken()
		if err != nil {
			return malformed(err)
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := r.in.ReadToken()
	return malformed(err)
}

// array reads an array and hands over its elements.
func (r *answerReader) array(path string, take func(i int, value jsontext.Value) error) error {
	if kind := r.in.PeekKind(); kind != '[' {
		return r.wrong(path, "an array")
	}
	if _, err := r.in.ReadToken(); err != nil {
		return malformed(err)
	}
	for i := 0; r.in.PeekKind() != ']'; i++ {
		value, err := r.in.ReadValue()
		if err != nil {
			return malformed(err)
		}
		if err := take(i, value); err != nil {
			return err
		}
	}
	_, err := r.in.ReadToken()
	return malformed(err)
}

// wrong returns the error for a value of another kind than the document has there, or for a text that is not JSON.
func (r *answerReader) wrong(path, want string) error {
	value, err := r.in.ReadValue()
	if err != nil {
		return malformed(err)
	}
	if path == "" {
		path = "the answer"
	}
	return task.Malformedf("%s is %s, must be %s", path, task.Quote(string(value)), want)
}

func (r *answerReader) skip() error { return malformed(r.in.SkipValue()) }

// end checks that nothing follows the document.
func (r *answerReader) end() error {
	if _, err := r.in.ReadToken(); err != io.EOF {
		return task.Malformedf("something follows the JSON document")
	}
	return nil
}

// malformed returns an error of reading JSON as one of the answer.
func malformed(err error) error {
	if err == nil {
		return nil
	}
	return task.Malformedf("not JSON: %w", err)
}
