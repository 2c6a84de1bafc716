package builtin

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// lookupDecoder reads the values of distinct ids into columns, for one run of a node. Only its body uses it.
type lookupDecoder struct {
	*preparedLookup
	c       *task.Ctx
	key     task.RedisKey
	command *resp.Template
	asked   *askedCommand    // what the plan states, instead
	columns []rowset.Builder // in the order of keys; one value per id that was read
	oldest  float64          // timestamps below it are too old
	newest  float64          // timestamps above it are malformed

	ids     distinctIDs   // row i of the columns is of ids.values[i]; the last one may be of rows without an id
	rows    int           // read so far
	dropped rowset.Bitmap // of the ids whose rows are dropped; nil: none
	stamps  int           // timestamps that are malformed
	stamp   string        // an excerpt of the first of them
	lacking []lacking     // by column; nil: nothing lacks

	failed  rowset.Bitmap // of the ids whose keys failed; nil: none
	failure error         // the first of them

	builder [1]rowset.Builder // the columns of a node that has one
	column  [1]rowset.Column  // and what it builds

	memo *task.Memo // nil: nothing is kept
	text []byte     // of an integer

	document *documentReader // made for the first document
}

// lacking counts the missing values of a column, and the texts that do not parse.
type lacking struct{ missing, malformed int }

// count tells the engine what was read.
func (d *lookupDecoder) count() {
	for i, key := range d.keys {
		var n lacking
		if d.lacking != nil {
			n = d.lacking[i]
		}
		d.c.CountRead(key.Name, d.rows, n.missing)
		d.c.CountMalformed(key.Name, n.malformed)
	}
	if d.c.CountMalformed("timestamp", d.stamps); d.stamps > 0 {
		d.c.DropIDs(task.MalformedIDs{Count: d.stamps, Of: d.rows, First: d.stamp, Key: d.keys[d.ageAt].Name, Values: true})
	}
}

// begin makes the columns, before the first value is taken. A node that only says what it asks needs none.
func (d *lookupDecoder) begin() {
	if d.columns = d.builder[:]; len(d.keys) != 1 {
		d.columns = make([]rowset.Builder, len(d.keys))
	}
	for i, key := range d.keys {
		d.columns[i] = rowset.NewBuilder(d.c.Memory, key, len(d.ids.values))
	}
}

// Keys implements task.Read.
func (d *lookupDecoder) Keys() int {
	return len(d.ids.values)
}

// Batch implements task.Read.
func (d *lookupDecoder) Batch(from int) int { return nextBatch(from, len(d.ids.values)) }

// Key implements task.Read.
func (d *lookupDecoder) Key(dst []byte, k int) []byte { return d.key.Append(dst, d.ids.values[k]) }

// Ask implements task.Read.
func (d *lookupDecoder) Ask(b *resp.Batch, from, to int) {
	if d.kind != &userKind { // Nobody knows the fields of a user.
		b.ExpectReplies(len(d.keys) * entryBytes)
	}
	if d.asked == nil {
		d.key.Ask(b, d.command, d.ids.values[from:to])
		return
	}
	var few [64]byte
	for k := from; k < to; k++ {
		d.asked.ask(b, d.Key(few[:0], k))
	}
}

// Take implements task.Read.
func (d *lookupDecoder) Take(replies resp.Replies, at, to, k int) error {
	if d.columns == nil {
		d.begin()
	}
	for ; at < to; at, k = at+1, k+1 {
		if err := d.take(replies.At(at), d.ids.values[k]); err != nil {
			return err
		}
	}
	return nil
}

// Recall implements task.Read. A value has a state for each column, and the cells of those that are there. With max_age it
// begins with the timestamp.
func (d *lookupDecoder) Recall(value []byte, k int) error {
	if d.columns == nil {
		d.begin()
	}
	if d.maxAge > 0 {
		if stamp := math.Float64frombits(binary.LittleEndian.Uint64(value)); !d.inTime(stamp, nil) {
			return d.tooOld(d.ids.values[k])
		}
		value = value[8:]
	}
	for i, column := range d.columns {
		state := value[0]
		if value = value[1:]; state == valueThere {
			value = column.AppendBinary(value)
		} else if err := d.lacks(i, state, d.ids.values[k], "is missing"); err != nil {
			return err
		}
	}
	d.rows++
	return nil
}

// end returns the columns, with a row for those without a key, if there are such. Nothing is read any more.
func (d *lookupDecoder) end() ([]rowset.Column, error) {
	if d.columns == nil {
		d.begin()
	}
	if d.ids.absent {
		if err := d.noKey(); err != nil {
			return nil, err
		}
	}
	columns := d.column[:]
	if len(d.columns) != 1 {
		columns = make([]rowset.Column, len(d.columns))
	}
	for i, column := range d.columns {
		columns[i] = column.Column()
	}
	return columns, nil
}

// tooOld takes the row of an id whose timestamp is too old, or malformed.
func (d *lookupDecoder) tooOld(id int64) error {
	why := "is too old"
	if d.missing == missingFail && d.stamps > 0 { // The first row that lacks something fails the node.
		why = "is too old: its timestamp " + task.Quote(d.stamp) + " is none, or lies more than a day ahead"
	}
	for i := range d.columns {
		if err := d.missed(i, id, why); err != nil {
			return err
		}
	}
	d.rows++
	return nil
}

// take takes the reply for one id.
func (d *lookupDecoder) take(reply resp.Reply, id int64) (err error) {
	kind, want := reply.Kind(), d.kind.reply
	switch {
	case d.hash && kind == want && reply.Len() == len(d.columns):
		if d.maxAge > 0 && !d.fresh(textOf(reply.At(d.ageAt))) {
			return d.tooOld(id)
		}
		i := 0
		for value := range reply.All() {
			if err := d.value(i, value, id); err != nil {
				return err
			}
			i++
		}
	case d.form != nil && !d.form.fits(reply), d.form == nil && (d.hash || kind != want && (kind != resp.Null || want != resp.Bulk)):
		return d.refuse(reply, id)
	case d.paths != nil:
		return d.takeDocument(reply, id)
	case want == resp.Array: // all fields of a hash
		for i := 0; i < len(d.keys) && err == nil; i++ {
			if field, ok := reply.Field(d.keys[i].Field); ok {
				err = d.value(i, field, id)
			} else {
				err = d.absent(i, id)
			}
		}
	default:
		err = d.value(0, reply, id)
	}
	d.rows++
	d.memo.Keep()
	return err
}

// takeDocument takes the JSON document of one id.
func (d *lookupDecoder) takeDocument(reply resp.Reply, id int64) error {
	if d.document == nil {
		d.document = &documentReader{values: make([][]byte, len(d.columns))}
	}
	var err error
	if reply.Kind() == resp.Bulk {
		err = d.document.read(reply.Bytes(), d.paths)
	} else {
		clear(d.document.values)
	}
	if d.maxAge > 0 {
		if err != nil {
			d.badStamp(reply.Bytes())
			return d.tooOld(id)
		}
		value := d.document.values[d.ageAt]
		if value != nil && value[0] == 'n' {
			value = nil
		}
		if !d.fresh(value) {
			return d.tooOld(id)
		}
	}
	for i, value := range d.document.values {
		var bad error
		switch {
		case err != nil:
			bad = d.malformed(i, reply.Bytes(), id, "a JSON document")
		case value == nil || value[0] == 'n':
			bad = d.absent(i, id)
		case d.columns[i].AppendJSON(value):
			d.there(i)
		default:
			bad = d.malformed(i, value, id, "")
		}
		if bad != nil {
			return bad
		}
	}
	d.rows++
	d.memo.Keep()
	return nil
}

// textOf returns the text of a reply that is a string, or nil.
func textOf(reply resp.Reply) []byte {
	if reply.Kind() != resp.Bulk {
		return nil
	}
	return reply.Bytes()
}

// stampAhead is how many seconds a timestamp may lie ahead of the request. One in milliseconds lies ahead further.
const stampAhead = 86400

// fresh reports whether a row has a timestamp that is young enough. A nil text means none. One that is no value of its
// key, or too far ahead, is malformed and counts as none.
func (d *lookupDecoder) fresh(text []byte) (ok bool) {
	if text == nil {
		return false
	}
	var at float64
	if d.keys[d.ageAt].Type == registry.Int {
		var n int64
		if n, ok = rowset.ParseInt(text); !ok && d.paths != nil {
			n, ok = rowset.ParseJSONInt(text)
		}
		at = float64(n)
	} else {
		at, ok = rowset.ParseFloat(text)
	}
	if !ok {
		d.badStamp(text)
		return false
	}
	if d.memo != nil {
		d.memo.Bytes = binary.LittleEndian.AppendUint64(d.memo.Bytes, math.Float64bits(at))
	}
	return d.inTime(at, text)
}

// inTime reports whether a timestamp is young enough. A nil text means that it comes from memory: then it may be too far
// ahead if this request says that it arrives earlier.
func (d *lookupDecoder) inTime(at float64, text []byte) bool {
	if at > d.newest {
		if text == nil {
			text = strconv.AppendFloat(nil, at, 'f', -1, 64)
		}
		d.badStamp(text)
		return false
	}
	return at >= d.oldest
}

// badStamp notes a timestamp that is malformed.
func (d *lookupDecoder) badStamp(text []byte) {
	if d.stamps++; d.stamps == 1 {
		d.stamp = errtext.Text(string(text))
	}
}

// value appends a value to column i.
func (d *lookupDecoder) value(i int, value resp.Reply, id int64) error {
	if value.Kind() != resp.Bulk {
		return d.notText(i, value, id)
	}
	if d.columns[i].AppendText(value.Bytes()) {
		d.there(i)
		return nil
	}
	return d.malformed(i, value.Bytes(), id, "")
}

// notText appends a value that is an integer, or none, to column i.
func (d *lookupDecoder) notText(i int, value resp.Reply, id int64) error {
	text := append(d.text[:0], d.kind.absent...)
	if value.Kind() == resp.Integer && !d.hash {
		text = strconv.AppendInt(text[:0], value.Int(), 10)
	}
	if d.text = text; len(text) > 0 && d.columns[i].AppendText(text) {
		d.there(i)
		return nil
	}
	return d.absent(i, id)
}

// there writes the value that column i has got to the memo.
func (d *lookupDecoder) there(i int) {
	if d.memo != nil {
		d.memo.Bytes = d.columns[i].AppendLast(append(d.memo.Bytes, valueThere))
	}
}

// absent takes a value of column i that is not there.
func (d *lookupDecoder) absent(i int, id int64) error {
	if d.memo != nil {
		d.memo.Bytes = append(d.memo.Bytes, valueMissing)
	}
	return d.lacks(i, valueMissing, id, "is missing")
}

// malformed takes a text that is not a value of column i. must says what it should be: "" means the type of the
// column.
func (d *lookupDecoder) malformed(i int, text []byte, id int64, must string) error {
	if d.memo != nil {
		d.memo.Bytes = append(d.memo.Bytes, valueMalformed)
	}
	if d.missing != missingFail {
		return d.lacks(i, valueMalformed, id, "")
	}
	if must == "" {
		must = "of type " + d.keys[i].Type.String()
	}
	return d.lacks(i, valueMalformed, id, "is "+task.Quote(string(text))+", which is not "+must)
}

// lacks counts and takes a value of column i that is not there, or malformed.
func (d *lookupDecoder) lacks(i int, state byte, id int64, why string) error {
	if d.lacking == nil {
		d.lacking = make([]lacking, len(d.keys))
	}
	if state == valueMissing {
		d.lacking[i].missing++
	} else {
		d.lacking[i].malformed++
	}
	return d.missed(i, id, why)
}

// missed takes a missing value of column i.
func (d *lookupDecoder) missed(i int, id int64, why string) error {
	switch d.missing {
	case missingFail:
		key := task.Quote(string(d.key.Append(nil, id)))
		switch {
		case d.kind.fields:
			return task.Invalidf("field %s of %s %s", task.Quote(d.keys[i].Field), key, why)
		case d.kind.asks > 0:
			return task.Invalidf("%s of %s %s", task.Quote(d.key.Text(id)), key, why)
		}
		return task.Invalidf("%s %s", key, why)
	case missingDefault:
		d.columns[i].AppendAny(d.keys[i].Default)
		return nil
	case missingDrop:
		if d.dropped == nil {
			d.dropped = rowset.NewBitmap(len(d.ids.values) + 1)
		}
		d.dropped.Set(d.rows)
	}
	d.columns[i].AppendNull()
	return nil
}

// noKey takes the values of rows without a key.
func (d *lookupDecoder) noKey() error {
	if d.missing == missingFail {
		return task.Invalidf("some row has no key to look up")
	}
	for i := range d.columns {
		if err := d.missed(i, 0, ""); err != nil {
			return err
		}
	}
	d.rows++
	return nil
}

// refuse leaves out the rows of an id whose reply is of another kind than the command's, or returns the error.
func (d *lookupDecoder) refuse(reply resp.Reply, id int64) error {
	if d.c.Partial() && d.failed != nil { // Nobody asks for the error.
		return d.drop(nil)
	}
	command := d.kind.command
	if d.asked != nil {
		command = d.asked.label()
	}
	return d.drop(wrongReply(d.c, command, d.key.Append(nil, id), reply, d.kind.reply, d.width()))
}

// drop leaves out the rows of an id because of this error, or returns it.
func (d *lookupDecoder) drop(err error) error {
	if !d.c.Partial() {
		return err
	}
	if d.failed == nil {
		d.failed, d.failure = rowset.NewBitmap(len(d.ids.values)+1), err
	}
	d.failed.Set(d.rows)
	for _, column := range d.columns {
		column.AppendNull()
	}
	d.rows++
	return nil
}

// result returns the rows of in with the columns.
func (d *lookupDecoder) result(in rowset.RowSet, columns []rowset.Column) rowset.RowSet {
	m, ids := d.c.Memory, &d.ids
	if ids.at != nil {
		columns = rowset.Gather(m, rowset.NewBatch(m.IDs(d.rows), columns...), ids.at).Columns()
	}
	out := rowset.Scatter(m, in, columns...)
	if d.dropped == nil && d.failed == nil {
		return out
	}
	keep, failed := rowset.NewBitmap(in.N), 0
	for i := range in.N {
		at := ids.indexOf(i)
		switch {
		case d.failed != nil && d.failed.Get(at):
			failed++
		case d.dropped == nil || !d.dropped.Get(at):
			keep.Set(i)
		}
	}
	if failed > 0 {
		d.c.DropRows(failed, d.failure)
	}
	return rowset.Where(m, out, keep)
}
