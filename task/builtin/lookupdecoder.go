package builtin

import (
	"encoding/binary"
	"math"
	"slices"
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
	redis   task.Redis
	key     task.RedisKey
	command *resp.Template
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

	keeps  bool            // the engine keeps what replies bring
	kept   []keptRow       // the rows to keep, ascending
	states []byte          // of the values of kept, column by column
	built  []rowset.Column // once all rows were read
	text   []byte          // of an integer

	document *documentReader // made for the first document
}

// keptRow is a row that a reply has brought, to be kept. Only the body uses it.
type keptRow struct {
	row   int
	stamp float64 // its timestamp, if the node has a max_age
}

// lacking counts the missing values of a column, and the texts that do not parse.
type lacking struct{ missing, malformed int }

// lacks returns the counts of column i.
func (d *lookupDecoder) lacks(i int) *lacking {
	if d.lacking == nil {
		d.lacking = make([]lacking, len(d.keys))
	}
	return &d.lacking[i]
}

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
	if d.columns != nil {
		return
	}
	d.columns = make([]rowset.Builder, len(d.preparedLookup.keys))
	for i, key := range d.preparedLookup.keys {
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
	b.ExpectReplies(len(d.keys) * entryBytes)
	d.key.Ask(b, d.command, d.ids.values[from:to])
}

// Take implements task.Read. It also takes replies of the wrong kind.
func (d *lookupDecoder) Take(replies resp.Replies, at, to, k int) (next int, err error) {
	d.begin()
	for ; at < to; at++ {
		if err := d.take(replies.At(at), d.ids.values[k]); err != nil {
			return 0, err
		}
		k++
	}
	return at, nil
}

// Refuse implements task.Read.
func (d *lookupDecoder) Refuse(resp.Reply, int) error { return nil }

// Encode implements task.Read. It refuses rows that were too old or failed. With max_age a value begins with the
// timestamp.
func (d *lookupDecoder) Encode(dst []byte, k int) ([]byte, bool) {
	at, ok := slices.BinarySearchFunc(d.kept, k, func(kept keptRow, k int) int { return kept.row - k })
	if !ok {
		return dst, false
	}
	columns, err := d.end()
	if err != nil {
		return dst, false
	}
	if d.maxAge > 0 {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(d.kept[at].stamp))
	}
	for i, column := range columns {
		dst = appendKept(dst, d.states[at*len(columns)+i], column, k)
	}
	return dst, true
}

// Decode implements task.Read.
func (d *lookupDecoder) Decode(value []byte, k int) error {
	d.begin()
	return d.takeKept(value, d.ids.values[k])
}

// end returns the columns, with a row for those without a key, if there are such. Nothing is read any more.
func (d *lookupDecoder) end() ([]rowset.Column, error) {
	if d.built != nil {
		return d.built, nil
	}
	d.begin()
	if d.ids.absent {
		if err := d.noKey(); err != nil {
			return nil, err
		}
	}
	d.built = make([]rowset.Column, len(d.columns))
	for i, column := range d.columns {
		d.built[i] = column.Column()
	}
	return d.built, nil
}

// takeKept takes a row from memory: see Encode.
func (d *lookupDecoder) takeKept(value []byte, id int64) error {
	if d.maxAge > 0 {
		stamp := math.Float64frombits(binary.LittleEndian.Uint64(value))
		if stamp > d.newest { // This request says that it arrives earlier.
			d.badStamp(strconv.AppendFloat(nil, stamp, 'f', -1, 64))
		}
		if value = value[8:]; stamp < d.oldest || stamp > d.newest {
			return d.tooOld(id)
		}
	}
	for i, column := range d.columns {
		state := value[0]
		if value = value[1:]; state == valueThere {
			value = column.AppendBinary(value)
		} else if err := d.missedKept(i, id, state); err != nil {
			return err
		}
	}
	d.rows++
	return nil
}

// missedKept takes a value from memory that is not there.
func (d *lookupDecoder) missedKept(i int, id int64, state byte) error {
	if state == valueMissing {
		d.lacks(i).missing++
		return d.missed(i, id, "is missing")
	}
	d.lacks(i).malformed++
	return d.missed(i, id, "")
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
func (d *lookupDecoder) take(reply resp.Reply, id int64) error {
	if !d.hash {
		return d.takeOne(reply, id)
	}
	kept := keptRow{row: d.rows}
	if reply.Kind() != resp.Array || reply.Len() != len(d.columns) {
		return d.dropKey(reply, id, resp.Array, len(d.columns))
	}
	if d.maxAge > 0 {
		var fresh bool
		if kept.stamp, fresh = d.fresh(textOf(reply.At(d.ageAt))); !fresh {
			return d.tooOld(id)
		}
	}
	i := 0
	for value := range reply.All() {
		if err := d.value(i, value, id); err != nil {
			return err
		}
		i++
	}
	d.took(kept)
	return nil
}

// took notes that a reply was taken.
func (d *lookupDecoder) took(row keptRow) {
	d.rows++
	if d.keeps {
		d.kept = append(d.kept, row)
	}
}

// takeOne takes the reply for one id that is not an array.
func (d *lookupDecoder) takeOne(reply resp.Reply, id int64) error {
	if kind := reply.Kind(); kind != d.kind.reply && (kind != resp.Null || d.kind.reply != resp.Bulk) {
		return d.dropKey(reply, id, d.kind.reply, len(d.columns))
	}
	if d.paths != nil {
		return d.takeDocument(reply, id)
	}
	kept := keptRow{row: d.rows}
	err := d.value(0, reply, id)
	d.took(kept)
	return err
}

// takeDocument takes the JSON document of one id.
func (d *lookupDecoder) takeDocument(reply resp.Reply, id int64) error {
	if d.document == nil {
		d.document = &documentReader{values: make([][]byte, len(d.columns))}
	}
	kept := keptRow{row: d.rows}
	var err error
	if reply.Kind() == resp.Bulk {
		err = d.document.read(reply.Bytes(), d.paths)
	} else {
		clear(d.document.values)
	}
	if d.maxAge > 0 {
		var fresh bool
		if err != nil {
			d.badStamp(reply.Bytes())
			return d.tooOld(id)
		}
		value := d.document.values[d.ageAt]
		if value != nil && value[0] == 'n' {
			value = nil
		}
		if kept.stamp, fresh = d.fresh(value); !fresh {
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
			d.state(valueThere)
		default:
			bad = d.malformed(i, value, id, "")
		}
		if bad != nil {
			return bad
		}
	}
	d.took(kept)
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

// fresh returns a timestamp, and reports whether it exists and is young enough. A nil text means none. One that is no
// value of its key, or too far ahead, is malformed and counts as none.
func (d *lookupDecoder) fresh(text []byte) (at float64, ok bool) {
	if text == nil {
		return 0, false
	}
	if d.keys[d.ageAt].Type == registry.Int {
		var n int64
		if n, ok = rowset.ParseInt(text); !ok && d.paths != nil {
			n, ok = rowset.ParseJSONInt(text)
		}
		at = float64(n)
	} else {
		at, ok = rowset.ParseFloat(text)
	}
	if !ok || at > d.newest {
		d.badStamp(text)
		return 0, false
	}
	return at, at >= d.oldest
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
		d.state(valueThere)
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
		d.state(valueThere)
		return nil
	}
	return d.absent(i, id)
}

// absent takes a value of column i that is not there.
func (d *lookupDecoder) absent(i int, id int64) error {
	d.state(valueMissing)
	d.lacks(i).missing++
	return d.missed(i, id, "is missing")
}

// malformed takes a text that is not a value of column i. must says what it should be: "" means the type of the
// column.
func (d *lookupDecoder) malformed(i int, text []byte, id int64, must string) error {
	d.state(valueMalformed)
	d.lacks(i).malformed++
	if d.missing == missingFail {
		if must == "" {
			must = "of type " + d.keys[i].Type.String()
		}
		return d.missed(i, id, "is "+task.Quote(string(text))+", which is not "+must)
	}
	return d.missed(i, id, "")
}

// state notes the state of the value that was read, if it may be kept.
func (d *lookupDecoder) state(state byte) {
	if d.keeps {
		d.states = append(d.states, state)
	}
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

// dropKey leaves out the rows of an id whose reply is not of that kind, with so many elements, or returns the error.
func (d *lookupDecoder) dropKey(reply resp.Reply, id int64, want resp.Kind, elements int) error {
	var err error
	if !d.c.Partial() || d.failed == nil { // else nobody asks for it
		err = d.wrongReply(reply, id, want, elements)
	}
	return d.drop(err)
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

// wrongReply returns the error for a reply of another kind.
func (d *lookupDecoder) wrongReply(reply resp.Reply, id int64, want resp.Kind, elements int) error {
	name := d.kind.command
	key := task.Quote(string(d.key.Append(nil, id)))
	if err := reply.Err(); err != nil {
		return d.redis.Errorf("%s %s: %w", name, key, err)
	}
	return d.redis.Errorf("%s %s: reply is %s of %d, want %s of %d", name, key, reply.Kind(), reply.Len(), want, elements)
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
