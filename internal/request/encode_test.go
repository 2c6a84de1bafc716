package request

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// sample has rows 10, 20, 30; row 20 has neither score nor country.
func sample() *rowset.Batch {
	return rowset.NewBatch([]int64{10, 20, 30},
		&rowset.FloatColumn{Key: 1001, Values: []float64{1, 2, 3}},
		&rowset.FloatColumn{Key: 2002, Values: []float64{0.5, 99, math.Copysign(0, -1)}, Valid: rowset.Bitmap{0b101}},
		&rowset.StringColumn{Key: 3001, Places: []int32{1, rowset.NullCode, 0}, Dict: &rowset.Dict{Values: []string{"DE", "US"}}},
		&rowset.StringColumn{Key: 3002, Places: []int32{-1, -1, 0}, Dict: &rowset.Dict{Values: []string{"a \"quoted\"\n\xff\u2028"}}},
	)
}

// typedBatch has a column of each type. Each row in turn is null.
func typedBatch() *rowset.Batch {
	sets := rowset.NewSetBuilder(5201, 4)
	for _, text := range []string{"b,a", ""} {
		sets.AppendText([]byte(text))
	}
	sets.AppendNull()
	sets.AppendText([]byte(`["quoted \"\u2028\"", "a,b"]`))
	return rowset.NewBatch([]int64{1, 2, 3, 1<<53 + 1},
		&rowset.FloatColumn{Key: 2002, Values: []float64{1, 2, 3, 4}, Valid: rowset.Bitmap{0b0001}},
		&rowset.StringColumn{Key: 3001, Places: []int32{0, -1, -1, -1}, Dict: &rowset.Dict{Values: []string{"DE"}}},
		&rowset.IntColumn{Key: 5001, Values: []int64{1<<53 + 1, math.MinInt64, 7, 0}, Valid: rowset.Bitmap{0b1011}},
		&rowset.BoolColumn{Key: 5101, Values: rowset.Bitmap{0b0101}, Valid: rowset.Bitmap{0b0011}},
		sets.Column(),
	)
}

func TestAppendResponseOfAllTypes(t *testing.T) {
	e := NewEncoder(builtin(t), Flat)
	got := e.AppendResponse(nil, &Response{RequestID: "r", EngineRequestID: "e", Outputs: []rowset.RowSet{rowset.Dense(typedBatch())}})
	assert.Equal(t, `{"request_id":"r","engine_request_id":"e","candidates":[`+
		`{"id":1,"score":1.0,"country":"DE","5001":9007199254740993,"5101":true,"5201":["a","b"]},`+
		`{"id":2,"5001":-9223372036854775808,"5101":false,"5201":[]},`+
		`{"id":3},`+
		`{"id":9007199254740993,"5001":0,"5201":["a,b","quoted \"\u2028\""]}]}`+"\n", strings.ReplaceAll(string(got), "\u2028", `\u2028`))
	assert.True(t, json.Valid(got))
}

func TestAppendResponse(t *testing.T) {
	reg := builtin(t)
	for _, tc := range []struct {
		name   string
		format Format
		r      Response
		want   string
	}{
		{"Nothing", Flat, Response{RequestID: "r", EngineRequestID: "e"},
			`{"request_id":"r","engine_request_id":"e","candidates":[]}`},
		{"Named outputs", Flat, Response{RequestID: "r", EngineRequestID: "e", OutputNames: []string{"home", "none", "deals"},
			Outputs: []rowset.RowSet{rowset.Dense(rowset.NewBatch([]int64{1, 2})), {}, rowset.Dense(rowset.NewBatch([]int64{0, 1}))}, IDTexts: []*rowset.IDTexts{nil, nil, rowset.TextsOf([]string{"a", "b"})}},
			`{"request_id":"r","engine_request_id":"e","outputs":{"home":[{"id":1},{"id":2}],"none":[],"deals":[{"id":"a"},{"id":"b"}]}}`},
		{"No outputs, named", Fields, Response{RequestID: "r", EngineRequestID: "e", OutputNames: []string{}},
			`{"request_id":"r","engine_request_id":"e","outputs":{}}`},
		{"Flat", Flat, Response{RequestID: "r", EngineRequestID: "e", Outputs: []rowset.RowSet{rowset.Dense(sample())}},
			`{"request_id":"r","engine_request_id":"e","candidates":[` +
				`{"id":10,"model_score_1":1.0,"score":0.5,"country":"US"},` +
				`{"id":20,"model_score_1":2.0},` +
				`{"id":30,"model_score_1":3.0,"score":-0.0,"country":"DE","title":"a \"quoted\"\n` + "\ufffd\u2028" + `"}]}`},
		{"Fields", Fields, Response{RequestID: "", EngineRequestID: "e", Outputs: []rowset.RowSet{
			{Batch: sample(), Rows: []int32{2, 0}, N: 2}}},
			`{"request_id":"","engine_request_id":"e","candidates":[` +
				`{"id":30,"fields":{"model_score_1":3.0,"score":-0.0,"country":"DE","title":"a \"quoted\"\n` + "\ufffd\u2028" + `"}},` +
				`{"id":10,"fields":{"model_score_1":1.0,"score":0.5,"country":"US"}}]}`},
		{"EmptyFields", Fields, Response{Outputs: []rowset.RowSet{rowset.Dense(&rowset.Batch{IDs: []int64{math.MinInt64, math.MaxInt64}})}},
			`{"request_id":"","engine_request_id":"","candidates":[{"id":-9223372036854775808,"fields":{}},{"id":9223372036854775807,"fields":{}}]}`},
		{"OutputsOneAfterTheOther", Flat, Response{Outputs: []rowset.RowSet{
			{}, rowset.Dense(&rowset.Batch{IDs: []int64{1, 2}}), {Batch: sample(), N: 0},
			rowset.Dense(&rowset.Batch{IDs: []int64{1}}), {Batch: &rowset.Batch{IDs: []int64{7, 8}}, N: 1}}},
			`{"request_id":"","engine_request_id":"","candidates":[{"id":1},{"id":2},{"id":1},{"id":7}]}`},
		{"UnregisteredKey", Flat, Response{Outputs: []rowset.RowSet{rowset.Dense(rowset.NewBatch([]int64{1}, &rowset.FloatColumn{Key: 9, Values: []float64{2}}))}},
			`{"request_id":"","engine_request_id":"","candidates":[{"id":1,"9":2.0}]}`},
		{"Deltas", Flat, Response{RequestID: "r", ShowDeltas: true, Deltas: []rowset.SchemaDelta{
			{NodeID: "a\"b", Out: []registry.KeyID{3001}, New: []registry.KeyID{3001}},
			{NodeID: "c", In: []registry.KeyID{2002, 3001}, Removed: []registry.KeyID{2002, 3001}}}},
			`{"request_id":"r","engine_request_id":"","schema_deltas":[` +
				`{"node_id":"a\"b","in_keys_union":[],"out_keys":[3001],"new_keys":[3001],"removed_keys":[]},` +
				`{"node_id":"c","in_keys_union":[2002,3001],"out_keys":[],"new_keys":[],"removed_keys":[2002,3001]}],"candidates":[]}`},
		{"DeltasWithoutNodes", Flat, Response{ShowDeltas: true},
			`{"request_id":"","engine_request_id":"","schema_deltas":[],"candidates":[]}`},
		{"Trace", Flat, Response{RequestID: "r", EngineRequestID: "e", Trace: []byte(`{"version":1}`)},
			`{"request_id":"r","engine_request_id":"e","candidates":[],"trace":{"version":1}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			line := NewEncoder(reg, tc.format).AppendResponse([]byte("before "), &tc.r)
			assert.Equal(t, "before "+tc.want+"\n", string(line))
			assert.True(t, json.Valid(line[len("before "):]))
		})
	}
}

func TestValidityBeyondOneWord(t *testing.T) {
	b := rowset.NewBatch(make([]int64, 130), &rowset.FloatColumn{Key: 2002, Values: make([]float64, 130), Valid: rowset.Bitmap{0, 1 << 3, 1}})
	line := NewEncoder(builtin(t), Flat).AppendResponse(nil, &Response{Outputs: []rowset.RowSet{rowset.Dense(b)}})
	var answer struct{ Candidates []map[string]float64 }
	require.NoError(t, json.Unmarshal(line, &answer))
	for i, c := range answer.Candidates {
		assert.Equal(t, i == 64+3 || i == 128, len(c) == 2, "row %d", i)
	}
}

func TestAppendFailure(t *testing.T) {
	assert.Equal(t, `{"request_id":"r","error":"Invalid request","detail":"a \"b\""}`+"\n",
		string(AppendFailure(nil, &Failure{RequestID: "r", Error: CodeInvalid, Detail: `a "b"`})))
	assert.Equal(t, `{"request_id":"r","error":"e","detail":"d","node":"n5","op":"core::vm"}`+"\n",
		string(AppendFailure(nil, &Failure{RequestID: "r", Error: "e", Detail: "d", Node: "n5", Op: "core::vm"})))
	assert.Equal(t, `{"request_id":"r","error":"e","detail":"d","trace":{"version":1}}`+"\n",
		string(AppendFailure(nil, &Failure{RequestID: "r", Error: "e", Detail: "d", Trace: []byte(`{"version":1}`)})))
	assert.Equal(t, `{"request_id":"","error":"e","detail":"line\n2","node":"","op":"core::vm"}`+"\n",
		string(AppendFailure(nil, &Failure{Error: "e", Detail: "line\n2", Op: "core::vm"})), "an empty node id is a legal one")
	assert.Equal(t, `{"request_id":"r","error":"e","detail":"d","node":"n","op":"o","source_span":"a.plan.ts:3:4"}`+"\n",
		string(AppendFailure(nil, &Failure{RequestID: "r", Error: "e", Detail: "d", Node: "n", Op: "o", SourceSpan: "a.plan.ts:3:4"})))
}

// FuzzEncode checks that numbers read back as the same double, and strings as the same text.
func FuzzEncode(f *testing.F) {
	f.Add(uint64(0x3ff0000000000000), "a\"\\\n\x00\u2028\xff")
	f.Add(math.Float64bits(math.Copysign(0, -1)), "")
	f.Fuzz(func(t *testing.T, bits uint64, text string) {
		value := math.Float64frombits(bits)
		number := string(jsondoc.AppendFloat(nil, value))
		if math.IsInf(value, 0) || math.IsNaN(value) {
			assert.Equal(t, "null", number)
		} else {
			back, err := strconv.ParseFloat(number, 64)
			require.NoError(t, err)
			assert.Equal(t, bits, math.Float64bits(back), number)
			assert.True(t, strings.ContainsAny(number, ".e"), number)
			assert.True(t, json.Valid([]byte(number)), number)
		}
		quoted := jsondoc.AppendString(nil, text)
		var back string
		require.NoError(t, json.Unmarshal(quoted, &back))
		assert.Equal(t, string([]rune(text)), back, "each invalid byte becomes one U+FFFD")
		assert.True(t, utf8.Valid(quoted))
		assert.NotContains(t, string(quoted), "\n")
	})
}

func BenchmarkAppendResponse(b *testing.B) {
	const rows = 50
	batch := rowset.NewBatch(make([]int64, rows), &rowset.FloatColumn{Key: 2002, Values: make([]float64, rows)}, &rowset.StringColumn{Key: 3001, Places: make([]int32, rows), Dict: &rowset.Dict{Values: []string{"US"}}})
	for i := range batch.IDs {
		batch.IDs[i], batch.Float(2002).Values[i] = int64(139959-i), float64(139959-i)*0.1
	}
	e := NewEncoder(builtin(b), Flat)
	r := &Response{RequestID: NewID(), EngineRequestID: NewID(), Outputs: []rowset.RowSet{rowset.Dense(batch)}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = e.AppendResponse(buf[:0], r)
	}
	b.SetBytes(int64(len(buf)))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}
