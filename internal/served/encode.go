package served

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/rankd/rankd/internal/inference"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// Version is the version of the format of lines.
const Version = 1

// encoder makes lines. One goroutine.
type encoder struct {
	random    rand.PCG
	places    map[int64]int32 // of each id of an answer, its first position at Log.At
	ids       map[int64]bool  // of the answer
	shown     []int32         // the rows of an output, of its batch
	at        []int32         // of each of shown, its row of the batch at Log.At; -1: it has none
	active    []bool          // by row of that batch
	pool      []int32         // rows at Log.At that no output shows
	columns   []rowset.Column // of the last object "columns"
	positions []int64
}

// list appends items, or members, with what opens and ends their list if there are some.
type list struct {
	dst  []byte
	open string
	n    int
}

func (l *list) item() {
	if l.n++; l.n == 1 {
		l.dst = append(l.dst, l.open...)
	} else {
		l.dst = append(l.dst, ',')
	}
}

func (l *list) name(name string) {
	l.item()
	l.dst = append(jsondoc.AppendString(l.dst, name), ':')
}

func (l *list) end(end string) []byte {
	if l.n > 0 {
		l.dst = append(l.dst, end...)
	}
	return l.dst
}

// append appends the line of a record.
func (e *encoder) append(dst []byte, r *Record, nodes []request.NodeCompleteness, share float64, keys *Keys) []byte {
	dst = strconv.AppendInt(append(dst, `{"served_log":`...), Version, 10)
	dst = jsondoc.AppendString(append(dst, `,"engine_request_id":`...), request.ID(r.ID))
	dst = jsondoc.AppendString(append(dst, `,"request_id":`...), r.RequestID)
	dst = append(r.At.UTC().AppendFormat(append(dst, `,"time":"`...), "2006-01-02T15:04:05.000000Z"), '"')
	dst = append(dst, `,"user_id":`...)
	switch {
	case keys != nil:
		dst = jsondoc.AppendString(dst, keys.Name(cmp.Or(r.UserIDText, strconv.FormatInt(r.UserID, 10))))
	case r.UserIDText != "":
		dst = jsondoc.AppendString(dst, r.UserIDText)
	default:
		dst = strconv.AppendInt(dst, r.UserID, 10)
	}
	version := r.Generation.Version(r.Graph, r.Alias, r.Side)
	if f := r.Result.Instead(); f != nil {
		version.InsteadOf = f.Of.Name
	}
	version.Services = r.Result.Services()
	dst = request.AppendVersion(append(dst, `,"plan_version":`...), &version)
	dst = appendScorers(dst, r)
	dst = strconv.AppendInt(append(dst, `,"elapsed_us":`...), r.Elapsed.Microseconds(), 10)
	dst = strconv.AppendInt(append(dst, `,"queue_delay_us":`...), r.Delay.Microseconds(), 10)
	dst = strconv.AppendBool(append(dst, `,"degraded":`...), r.Result.Degraded())
	dst = request.AppendCompleteness(dst, nodes, false)
	dst = request.AppendBelowMinimum(dst, r.Result.Short())
	dst = strconv.AppendBool(append(dst, `,"delivered":`...), !r.Undelivered)
	if r.Traffic != "" {
		dst = jsondoc.AppendString(append(dst, `,"traffic":`...), r.Traffic)
	}
	dst = jsondoc.AppendNumber(append(dst, `,"probability":`...), share)
	if r.Node != nil {
		dst = jsondoc.AppendString(append(dst, `,"at":`...), r.Node.ID)
	}
	dst = appendCached(dst, r)
	dst = append(dst, `,"outputs":[`...)
	for i := range r.Outputs {
		dst = e.appendOutput(jsondoc.AppendComma(dst, i), r, i)
	}
	dst = append(dst, ']')
	if r.Node != nil && r.Graph.Log.Others > 0 {
		dst = e.appendOthers(dst, r)
	}
	return append(dst, "}\n"...)
}

// appendScorers appends the models and services of the plan.
func appendScorers(dst []byte, r *Record) []byte {
	digests, models := r.Generation.ModelDigests(), list{dst: dst, open: `,"models":{`}
	var names []string
	for _, n := range r.Graph.Nodes {
		if n.Op != "core::model" {
			continue
		}
		if name := n.Params.String("model"); !slices.Contains(names, name) {
			models.name(name)
			models.dst = jsondoc.AppendString(models.dst, digests[name])
			names = append(names, name)
		}
	}
	services := list{dst: models.end("}"), open: `,"services":{`}
	for _, n := range r.Graph.Nodes {
		if n.Endpoint != nil && n.Endpoint.Kind != registry.Redis {
			services.name(n.ID)
			services.dst = jsondoc.AppendString(services.dst, n.Endpoint.Name)
		}
	}
	return services.end("}")
}

// appendCached appends which nodes had values from memory.
func appendCached(dst []byte, r *Record) []byte {
	nodes := list{dst: dst, open: `,"cached":{`}
	for i, use := range r.Cached {
		if use.Values == 0 {
			continue
		}
		n := r.Graph.Nodes[i]
		nodes.name(n.ID)
		dst := jsondoc.AppendString(append(nodes.dst, `{"op":`...), n.Op)
		dst = strconv.AppendInt(append(dst, `,"values":`...), int64(use.Values), 10)
		dst = strconv.AppendInt(append(dst, `,"age_ms":`...), use.Age.Milliseconds(), 10)
		dst = append(dst, `,"columns":[`...)
		if n.Schema.Writes != nil {
			for k, key := range n.Schema.Writes(n, r.Graph.Registry) {
				dst = jsondoc.AppendString(jsondoc.AppendComma(dst, k), keyOf(r, key).Name)
			}
		}
		nodes.dst = append(dst, "]}"...)
	}
	return nodes.end("}")
}

// noKey stands for a key that the registry does not have.
var noKey registry.Key

func keyOf(r *Record, id registry.KeyID) *registry.Key {
	if key, ok := r.Graph.Registry.Key(id); ok {
		return key
	}
	return &noKey
}

// shows reports whether a column is in lines of the plan.
func shows(l *plan.Log, key *registry.Key) bool {
	if l.Columns != nil {
		return slices.Contains(l.Columns, key)
	}
	return !key.Private && key.Type != registry.Vector
}

// appendOutput appends an output.
func (e *encoder) appendOutput(dst []byte, r *Record, i int) []byte {
	rows, node := r.Outputs[i], r.Graph.Nodes[r.Graph.Outputs[i]]
	dst = append(dst, '{')
	if names := r.Graph.OutputNames; names != nil {
		dst = append(jsondoc.AppendString(append(dst, `"name":`...), names[i]), ',')
	}
	e.shown = slices.Grow(e.shown[:0], rows.Len())[:rows.Len()]
	for i := range e.shown {
		e.shown[i] = rows.Row(i)
	}
	dst = appendIDs(dst, r, node, rows.Batch, e.shown)
	if r.Node == nil {
		return append(dst, '}')
	}
	batch := r.Rows.Batch
	if r.Copied && batch != nil {
		batch, e.at = rows.Batch, append(e.at[:0], e.shown...)
	} else {
		e.find(r, node, rows)
	}
	dst = e.appendColumns(dst, r, batch, e.at)
	if absent := e.where(func(row int32) bool { return row < 0 }); len(absent) > 0 {
		dst = jsondoc.AppendInts(append(dst, `,"absent":`...), absent)
	}
	made := list{dst: e.appendDefaults(dst, r), open: `,"made":{`}
	for _, id := range r.Graph.Log.Behind {
		key := keyOf(r, id)
		if rows.Batch == nil || rows.Batch.Column(id) == nil || !shows(r.Graph.Log, key) {
			continue
		}
		made.name(key.Name)
		made.dst = appendValues(made.dst, rows.Batch.Column(id), e.shown)
	}
	return append(made.end("}"), '}')
}

// appendIDs appends the ids of rows of a batch, which a node gave.
func appendIDs(dst []byte, r *Record, n *plan.Node, batch *rowset.Batch, rows []int32) []byte {
	dst = append(dst, `"ids":[`...)
	for i, row := range rows {
		dst = jsondoc.AppendComma(dst, i)
		if id := batch.IDs[row]; n.Entity.TextIDs() && r.Texts != nil {
			dst = jsondoc.AppendString(dst, r.Texts.At(id))
		} else {
			dst = strconv.AppendInt(dst, id, 10)
		}
	}
	return append(dst, ']')
}

// find fills in e.at for an output: by rows of the same batch if the output has the memory of its ids, or else by id.
func (e *encoder) find(r *Record, output *plan.Node, rows rowset.RowSet) {
	from := r.Rows
	e.at = slices.Grow(e.at[:0], len(e.shown))[:len(e.shown)]
	for i := range e.at {
		e.at[i] = -1
	}
	if from.Batch == nil || rows.Len() == 0 || from.Len() == 0 || output.Entity.TextIDs() != r.Node.Entity.TextIDs() {
		return
	}
	if len(from.Batch.IDs) == len(rows.Batch.IDs) && &from.Batch.IDs[0] == &rows.Batch.IDs[0] {
		e.active = slices.Grow(e.active[:0], len(from.Batch.IDs))[:len(from.Batch.IDs)]
		clear(e.active)
		for i := range from.Len() {
			e.active[from.Row(i)] = true
		}
		for i, row := range e.shown {
			if e.active[row] {
				e.at[i] = row
			}
		}
		return
	}
	if e.places == nil {
		e.places = make(map[int64]int32)
	}
	clear(e.places)
	for i := range rows.Len() {
		e.places[rows.ID(i)] = -1
	}
	for i := range from.Len() {
		if row, wanted := e.places[from.ID(i)]; wanted && row < 0 {
			e.places[from.ID(i)] = from.Row(i)
		}
	}
	for i := range e.at {
		e.at[i] = e.places[rows.ID(i)]
	}
}

// appendColumns appends the columns that rows at Log.At have, of these rows of a batch; -1 is a row without values.
func (e *encoder) appendColumns(dst []byte, r *Record, batch *rowset.Batch, rows []int32) []byte {
	log, columns := r.Graph.Log, list{dst: append(dst, `,"columns":{`...)}
	e.columns = e.columns[:0]
	appendColumn := func(key *registry.Key, column rowset.Column) {
		columns.name(key.Name)
		columns.dst = appendScored(columns.dst, r, column, rows)
		e.columns = append(e.columns, column)
	}
	has := func(id registry.KeyID) (column rowset.Column) {
		if batch != nil && r.Rows.Batch.Column(id) != nil {
			column = batch.Column(id)
		}
		return column
	}
	for _, key := range log.Columns {
		if column := has(key.ID); column != nil || !slices.Contains(log.Behind, key.ID) {
			appendColumn(key, column)
		}
	}
	if log.Columns == nil && r.Rows.Batch != nil {
		for _, column := range r.Rows.Batch.Columns() {
			if key := keyOf(r, column.KeyID()); shows(log, key) {
				appendColumn(key, has(key.ID))
			}
		}
	}
	return append(columns.dst, '}')
}

// appendValues appends the values of rows of a column; it may be nil.
func appendValues(dst []byte, column rowset.Column, rows []int32) []byte {
	dst = append(dst, '[')
	for i, row := range rows {
		ok := false
		if dst = jsondoc.AppendComma(dst, i); row >= 0 && column != nil {
			dst, ok = column.AppendJSON(dst, int(row))
		}
		if !ok {
			dst = append(dst, "null"...)
		}
	}
	return append(dst, ']')
}

// appendScored is appendValues of a column at Log.At, with what the service of a node got of it: see remoteNode.Rounds.
func appendScored(dst []byte, r *Record, column rowset.Column, rows []int32) []byte {
	datatype := ""
	for _, n := range r.Graph.Nodes {
		if rounds, ok := n.Prepared.(interface{ Rounds(registry.KeyID) string }); ok && column != nil && slices.Equal(n.Inputs, []int{r.Node.Index}) {
			datatype = cmp.Or(rounds.Rounds(column.KeyID()), datatype)
		}
	}
	if datatype == "" {
		return appendValues(dst, column, rows)
	}
	switch exact := column.(type) {
	case *rowset.FloatColumn:
		rounded := *exact
		rounded.Values = slices.Clone(exact.Values)
		for i, v := range exact.Values {
			rounded.Values[i] = inference.Round(datatype, v)
		}
		column = &rounded
	case *rowset.IntColumn:
		rounded := *exact
		rounded.Values = slices.Clone(exact.Values)
		for i, v := range exact.Values {
			if f := inference.Round(datatype, float64(v)); math.Abs(f) < 1<<63 { // Others do not fit into their type.
				rounded.Values[i] = int64(f)
			}
		}
		column = &rounded
	case *rowset.VectorColumn:
		rounded := *exact
		rounded.Values = slices.Clone(exact.Values)
		for i, v := range exact.Values {
			rounded.Values[i] = float32(inference.Round(datatype, float64(v)))
		}
		column = &rounded
	}
	return appendValues(dst, column, rows)
}

// where returns the positions in e.at of such rows, until the next call.
func (e *encoder) where(such func(row int32) bool) []int64 {
	e.positions = e.positions[:0]
	for i, row := range e.at {
		if such(row) {
			e.positions = append(e.positions, int64(i))
		}
	}
	return e.positions
}

// appendDefaults appends where values of e.columns equal a default that the plan puts in their column.
func (e *encoder) appendDefaults(dst []byte, r *Record) []byte {
	columns := list{dst: dst, open: `,"at_default":{`}
	for _, column := range e.columns {
		if column == nil {
			continue
		}
		key := keyOf(r, column.KeyID())
		if key.Default == nil || !slices.Contains(r.Graph.Log.Filled, key.ID) {
			continue
		}
		if at := e.where(func(row int32) bool { return row >= 0 && rowset.HasValue(column, int(row), key.Default) }); len(at) > 0 {
			columns.name(key.Name)
			columns.dst = jsondoc.AppendInts(columns.dst, at)
		}
	}
	return columns.end("}")
}

// appendOthers draws rows that no output shows, and appends them.
func (e *encoder) appendOthers(dst []byte, r *Record) []byte {
	if e.ids == nil {
		e.ids = make(map[int64]bool)
	}
	clear(e.ids)
	for i, rows := range r.Outputs {
		if r.Graph.Nodes[r.Graph.Outputs[i]].Entity.TextIDs() != r.Node.Entity.TextIDs() {
			continue
		}
		for at := range rows.Len() {
			e.ids[rows.ID(at)] = true
		}
	}
	e.pool = e.pool[:0]
	for i := range r.Rows.Len() {
		if !e.ids[r.Rows.ID(i)] {
			e.pool = append(e.pool, r.Rows.Row(i))
		}
	}
	// Each set of so many rows has the same probability. The id of the answer is the seed.
	e.random.Seed(binary.LittleEndian.Uint64(r.ID[:8]), binary.LittleEndian.Uint64(r.ID[8:]))
	random, n := rand.New(&e.random), min(r.Graph.Log.Others, len(e.pool))
	for i := range n {
		k := i + random.IntN(len(e.pool)-i)
		e.pool[i], e.pool[k] = e.pool[k], e.pool[i]
	}
	dst = appendIDs(append(dst, `,"others":{`...), r, r.Node, r.Rows.Batch, e.pool[:n])
	dst = e.appendColumns(dst, r, r.Rows.Batch, e.pool[:n])
	dst = strconv.AppendInt(append(dst, `,"pool":`...), int64(len(e.pool)), 10)
	dst = append(dst, `,"probability":`...)
	return append(jsondoc.AppendNumber(dst, math.Min(1, float64(r.Graph.Log.Others)/float64(max(1, len(e.pool))))), '}')
}
