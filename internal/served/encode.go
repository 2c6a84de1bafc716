package served

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

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
	random  rand.PCG
	places  map[int64]int32 // of each id of an answer, its first position at Log.At
	shown   map[int64]bool  // ids of the answer
	at      []int32         // of each row of an output, its row of the batch at Log.At; -1: it has none
	active  []bool          // by row of that batch
	pool    []int32         // rows at Log.At that no output shows
	columns []rowset.Column
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
		dst = jsondoc.AppendString(dst, keys.Name(r.UserID, r.UserIDText))
	case r.UserIDText != "":
		dst = jsondoc.AppendString(dst, r.UserIDText)
	default:
		dst = strconv.AppendInt(dst, r.UserID, 10)
	}
	version := r.Generation.Version(r.Graph, r.Alias, r.Side)
	if f := r.Result.Instead(); f != nil {
		version.InsteadOf = f.Of.Name
	}
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
	dst = e.appendCached(dst, r)
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
	digests := r.Generation.ModelDigests()
	var names []string
	for _, n := range r.Graph.Nodes {
		if n.Op != "core::model" {
			continue
		}
		if name := n.Params.String("model"); !slices.Contains(names, name) {
			if len(names) == 0 {
				dst = append(dst, `,"models":{`...)
			}
			dst = jsondoc.AppendString(jsondoc.AppendName(dst, len(names), name), digests[name])
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		dst = append(dst, '}')
	}
	services := 0
	for _, n := range r.Graph.Nodes {
		if n.Endpoint != nil && n.Endpoint.Kind != registry.Redis {
			if services == 0 {
				dst = append(dst, `,"services":{`...)
			}
			dst = jsondoc.AppendString(jsondoc.AppendName(dst, services, n.ID), n.Endpoint.Name)
			services++
		}
	}
	if services > 0 {
		dst = append(dst, '}')
	}
	return dst
}

// appendCached appends which nodes had values from memory.
func (e *encoder) appendCached(dst []byte, r *Record) []byte {
	count := 0
	for i, use := range r.Cached {
		if use.Values == 0 {
			continue
		}
		if count == 0 {
			dst = append(dst, `,"cached":{`...)
		}
		n := r.Graph.Nodes[i]
		dst = jsondoc.AppendString(append(jsondoc.AppendName(dst, count, n.ID), `{"op":`...), n.Op)
		dst = strconv.AppendInt(append(dst, `,"values":`...), int64(use.Values), 10)
		dst = strconv.AppendInt(append(dst, `,"age_ms":`...), use.Age.Milliseconds(), 10)
		dst = append(dst, `,"columns":[`...)
		if n.Schema.Writes != nil {
			for k, key := range n.Schema.Writes(n, r.Graph.Registry) {
				dst = jsondoc.AppendString(jsondoc.AppendComma(dst, k), keyOf(r, key).Name)
			}
		}
		dst = append(dst, "]}"...)
		count++
	}
	if count > 0 {
		dst = append(dst, '}')
	}
	return dst
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
	rows, log := r.Outputs[i], r.Graph.Log
	dst = append(dst, '{')
	if names := r.Graph.OutputNames; names != nil {
		dst = append(jsondoc.AppendString(append(dst, `"name":`...), names[i]), ',')
	}
	node := r.Graph.Nodes[r.Graph.Outputs[i]]
	dst = appendIDs(dst, r, node, rows, nil)
	if r.Node == nil {
		return append(dst, '}')
	}
	e.find(r, node, rows)
	dst = e.appendColumns(dst, r, r.Rows.Batch, e.at)
	dst = appendPositions(dst, `,"absent":[`, e.at, func(row int32) bool { return row < 0 }, "]")
	dst = e.appendDefaults(dst, r)
	made := 0
	for _, id := range log.Behind {
		if rows.Batch == nil || rows.Batch.Column(id) == nil || !shows(log, keyOf(r, id)) {
			continue
		}
		if made == 0 {
			dst = append(dst, `,"made":{`...)
		}
		dst = append(jsondoc.AppendName(dst, made, keyOf(r, id).Name), '[')
		column := rows.Batch.Column(id)
		for at := range rows.Len() {
			dst = appendValue(jsondoc.AppendComma(dst, at), column, rows.Row(at))
		}
		dst = append(dst, ']')
		made++
	}
	if made > 0 {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendIDs appends the ids of the rows of a node's result: those of the batch in list, or all active ones.
func appendIDs(dst []byte, r *Record, n *plan.Node, rows rowset.RowSet, list []int32) []byte {
	dst = append(dst, `"ids":[`...)
	count := rows.Len()
	if list != nil {
		count = len(list)
	}
	for i := range count {
		id := int64(0)
		if list != nil {
			id = rows.Batch.IDs[list[i]]
		} else {
			id = rows.ID(i)
		}
		dst = jsondoc.AppendComma(dst, i)
		if n.Entity.TextIDs() && r.Texts != nil {
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
	e.at = slices.Grow(e.at[:0], rows.Len())[:rows.Len()]
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
		for i := range e.at {
			if row := rows.Row(i); e.active[row] {
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

// appendColumns appends the columns of these rows of the batch at Log.At; -1 is a row without values.
func (e *encoder) appendColumns(dst []byte, r *Record, batch *rowset.Batch, at []int32) []byte {
	log := r.Graph.Log
	dst = append(dst, `,"columns":{`...)
	e.columns = e.columns[:0]
	appendColumn := func(key *registry.Key, column rowset.Column) {
		dst = append(jsondoc.AppendName(dst, len(e.columns), key.Name), '[')
		for i, row := range at {
			dst = appendValue(jsondoc.AppendComma(dst, i), column, row)
		}
		dst = append(dst, ']')
		e.columns = append(e.columns, column)
	}
	if log.Columns == nil {
		if batch != nil {
			for _, column := range batch.Columns() {
				if key := keyOf(r, column.KeyID()); shows(log, key) {
					appendColumn(key, column)
				}
			}
		}
		return append(dst, '}')
	}
	for _, key := range log.Columns {
		var column rowset.Column
		if batch != nil {
			column = batch.Column(key.ID)
		}
		if column != nil || !slices.Contains(log.Behind, key.ID) {
			appendColumn(key, column)
		}
	}
	return append(dst, '}')
}

func appendValue(dst []byte, column rowset.Column, row int32) []byte {
	if row < 0 || column == nil {
		return append(dst, "null"...)
	}
	if dst, ok := column.AppendJSON(dst, int(row)); ok {
		return dst
	}
	return append(dst, "null"...)
}

// appendDefaults appends where values of e.columns equal a default that the plan puts in their column.
func (e *encoder) appendDefaults(dst []byte, r *Record) []byte {
	count := 0
	for _, column := range e.columns {
		if column == nil {
			continue
		}
		key := keyOf(r, column.KeyID())
		if key.Default == nil || !slices.Contains(r.Graph.Log.Filled, key.ID) {
			continue
		}
		before := len(dst)
		if count == 0 {
			dst = append(dst, `,"at_default":{`...)
		}
		dst = jsondoc.AppendName(dst, count, key.Name)
		some := len(dst)
		if dst = appendPositions(dst, "[", e.at, func(row int32) bool { return row >= 0 && rowset.HasValue(column, int(row), key.Default) }, "]"); len(dst) == some {
			dst = dst[:before]
			continue
		}
		count++
	}
	if count > 0 {
		dst = append(dst, '}')
	}
	return dst
}

// appendPositions appends the positions of the rows that are such, between open and end, or nothing if there are none.
func appendPositions(dst []byte, open string, at []int32, such func(row int32) bool, end string) []byte {
	count := 0
	for i, row := range at {
		if !such(row) {
			continue
		}
		if count == 0 {
			dst = append(dst, open...)
		}
		dst = strconv.AppendInt(jsondoc.AppendComma(dst, count), int64(i), 10)
		count++
	}
	if count > 0 {
		dst = append(dst, end...)
	}
	return dst
}

// appendOthers draws rows that no output shows, and appends them.
func (e *encoder) appendOthers(dst []byte, r *Record) []byte {
	if e.shown == nil {
		e.shown = make(map[int64]bool)
	}
	clear(e.shown)
	for i, rows := range r.Outputs {
		if r.Graph.Nodes[r.Graph.Outputs[i]].Entity.TextIDs() != r.Node.Entity.TextIDs() {
			continue
		}
		for at := range rows.Len() {
			e.shown[rows.ID(at)] = true
		}
	}
	e.pool = e.pool[:0]
	for i := range r.Rows.Len() {
		if !e.shown[r.Rows.ID(i)] {
			e.pool = append(e.pool, r.Rows.Row(i))
		}
	}
	pool, drawn := len(e.pool), e.draw(r, r.Graph.Log.Others)
	dst = append(dst, `,"others":{`...)
	dst = appendIDs(dst, r, r.Node, r.Rows, drawn)
	dst = e.appendColumns(dst, r, r.Rows.Batch, drawn)
	dst = strconv.AppendInt(append(dst, `,"pool":`...), int64(pool), 10)
	probability := 1.0
	if pool > 0 {
		probability = math.Min(1, float64(len(drawn))/float64(pool))
	}
	return append(jsondoc.AppendNumber(append(dst, `,"probability":`...), probability), '}')
}

// draw draws up to n of the pool, each set of rows with the same probability. The id of the answer is the seed.
func (e *encoder) draw(r *Record, n int) []int32 {
	e.random.Seed(binary.LittleEndian.Uint64(r.ID[:8]), binary.LittleEndian.Uint64(r.ID[8:]))
	random, n := rand.New(&e.random), min(n, len(e.pool))
	for i := range n {
		k := i + random.IntN(len(e.pool)-i)
		e.pool[i], e.pool[k] = e.pool[k], e.pool[i]
	}
	if n == 0 {
		return []int32{}
	}
	return e.pool[:n]
}
