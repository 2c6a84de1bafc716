package builtin_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/testing/modelserver"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// modelTables are keys and parameters for models, and an endpoint "model" with these lines.
func modelTables(lines string) registrytest.Tables {
	t := remoteTables
	t.Keys = strings.TrimSuffix(strings.TrimSpace(t.Keys), "]") + `
 {id = 7001, name = "v2", type = "vector(2)", nullable = true, writable = true}, {id = 7002, name = "whole", type = "int", writable = true},
 {id = 7003, name = "w2", type = "vector(2)", nullable = true, writable = true},
]`
	t.Params = strings.TrimSuffix(strings.TrimSpace(t.Params), "]") + `, {id = 7, name = "taste", type = "vector(2)", context = true},
 {id = 8, name = "words", type = "string_list", context = true}, {id = 9, name = "q", type = "string", context = true}]`
	t.Endpoints = "[[endpoint]]\nid = \"ep_0002\"\nname = \"model\"\nkind = \"http\"\n" + lines
	return t
}

// modelCase asks a server over HTTP by the tables. %s stands for its address.
func modelCase(t *testing.T, h http.Handler, tables string, in rowset.RowSet, columns ...any) rankdtest.Case {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	reg, err := registry.Load(modelTables(strings.ReplaceAll(tables, "ADDRESS", s.URL)).FS(), "test")
	require.NoError(t, err)
	return rankdtest.Case{Params: map[string]any{"endpoint": "ep_0002", "columns": columns}, Registry: reg, UserID: 9, Inputs: rankdtest.Inputs(in), Online: true}
}

// tensorOf is the text of an input or an output.
func tensorOf(member, name, datatype, shape, source string) string {
	return fmt.Sprintf("[[endpoint.%s]]\nname = %q\ndatatype = %q\nshape = %s\n%s\n", member, name, datatype, shape, source)
}

const inferenceHead = "url = \"ADDRESS/v2/models/m/infer\"\ndialect = \"open_inference\"\npolicy.request_timeout_ms = 30000\n"

// firstColumn is a model that gives back the first element of each row of x, as y.
func firstColumn(inputs map[string]modelserver.Tensor) ([]modelserver.Tensor, error) {
	x := inputs["x"]
	width := len(x.Data) / int(x.Shape[0])
	y := modelserver.Tensor{Name: "y", Datatype: x.Datatype, Shape: []int64{x.Shape[0]}}
	for i := range int(x.Shape[0]) {
		y.Data = append(y.Data, x.Data[i*width])
	}
	return []modelserver.Tensor{y}, nil
}

// both runs a test with a server that takes binary data and with one that does not.
func both(t *testing.T, run func(t *testing.T, extensions []string)) {
	for name, extensions := range map[string][]string{"binary": {"binary_tensor_data", "schedule_policy"}, "json": {}} {
		t.Run(name, func(t *testing.T) { run(t, extensions) })
	}
}

// nan compares as itself.
func nan(values []any) []any {
	for i, v := range values {
		if f, ok := v.(float64); ok && f != f {
			values[i] = "NaN"
		}
	}
	return values
}

// The table has inputs and what a server gets of three rows.
func TestTensors(t *testing.T) {
	rows := rankdtest.Rows(7, 8, 9, 10)
	rows = rankdtest.WithFloats(rows, 1001, 0.1, nil, 3.0, 99.0)
	rows = rankdtest.WithFloats(rows, 2001, 1.0, 2.0, 3.0, 99.0)
	rows = rankdtest.WithInts(rows, 7002, int64(5), int64(-6), int64(1<<40), int64(99))
	rows = rankdtest.WithInts(rows, 5001, int64(1), nil, int64(3), int64(99))
	rows = rankdtest.WithBools(rows, 5101, true, nil, false, true)
	rows = rankdtest.WithStrings(rows, 3001, "a{b}", nil, "é", "z")
	rows = rankdtest.WithSets(rows, 5201, []string{"b", "a", "c"}, nil, []string{"x"}, []string{"z"})
	rows = rankdtest.Select(rows, 2, 0, 1)
	const y = "[-1]"
	f32 := func(f float64) float64 { return float64(float32(f)) }
	for name, c := range map[string]struct {
		inputs  string
		want    map[string]modelserver.Tensor
		binary  bool // only in binary
		params  map[string]any
		context map[string]any
	}{
		"several columns": {tensorOf("input", "x", "FP32", "[-1, 3]", `columns = ["solid", "f1", "whole"]`+"\nmissing = -1.5"),
			map[string]modelserver.Tensor{"x": {Shape: []int64{3, 3}, Data: []any{3.0, 3.0, f32(1 << 40), 1.0, f32(0.1), 5.0, 2.0, -1.5, -6.0}}}, false, nil, nil},
		"one a column": {tensorOf("input", "x", "FP64", "[-1, 1]", `columns = ["solid"]`) + tensorOf("input", "i", "INT64", "[-1]", `columns = ["whole"]`) + tensorOf("input", "id", "INT64", "[-1]", `columns = ["id"]`),
			map[string]modelserver.Tensor{"x": {Shape: []int64{3, 1}, Data: []any{3.0, 1.0, 2.0}}, "i": {Shape: []int64{3}, Data: []any{int64(1 << 40), int64(5), int64(-6)}},
				"id": {Shape: []int64{3}, Data: []any{int64(9), int64(7), int64(8)}}}, false, nil, nil},
		"nulls are NaN": {tensorOf("input", "x", "FP32", "[-1]", `columns = ["f1"]`),
			map[string]modelserver.Tensor{"x": {Shape: []int64{3}, Data: []any{3.0, f32(0.1), "NaN"}}}, true, nil, nil},
		"half": {tensorOf("input", "x", "FP16", "[-1, 1]", `columns = ["solid"]`),
			map[string]modelserver.Tensor{"x": {Shape: []int64{3, 1}, Data: []any{3.0, 1.0, 2.0}}}, true, nil, nil},
		"a mask": {tensorOf("input", "x", "INT64", "[-1]", `columns = ["i1"]`) + tensorOf("input", "there", "BOOL", "[-1]", `mask_of = "x"`) + tensorOf("input", "there2", "FP32", "[-1]", `mask_of = "x"`),
			map[string]modelserver.Tensor{"x": {Shape: []int64{3}, Data: []any{int64(3), int64(1), int64(0)}}, "there": {Shape: []int64{3}, Data: []any{true, true, false}},
				"there2": {Shape: []int64{3}, Data: []any{1.0, 1.0, 0.0}}}, false, nil, nil},
		"texts": {tensorOf("input", "x", "BYTES", "[-1, 1]", `columns = ["s1"]`+"\nmissing = \"none\"") + tensorOf("input", "id", "BYTES", "[-1]", `columns = ["id"]`),
			map[string]modelserver.Tensor{"x": {Shape: []int64{3, 1}, Data: []any{"é", "a{b}", "none"}}, "id": {Shape: []int64{3}, Data: []any{"9", "7", "8"}}}, false, nil, nil},
		"bools": {tensorOf("input", "x", "BOOL", "[-1]", `columns = ["b1"]`+"\nmissing = true") + tensorOf("input", "u", "UINT8", "[-1]", `columns = ["b1"]`+"\nmissing = 2"),
			map[string]modelserver.Tensor{"x": {Shape: []int64{3}, Data: []any{false, true, true}}, "u": {Shape: []int64{3}, Data: []any{int64(0), int64(1), int64(2)}}}, false, nil, nil},
		"sets padded right": {tensorOf("input", "x", "BYTES", "[-1, -1]", `columns = ["t1"]`) + tensorOf("input", "n", "INT32", "[-1]", `lengths_of = "x"`) + tensorOf("input", "m", "UINT8", "[-1, -1]", `mask_of = "x"`),
			map[string]modelserver.Tensor{"x": {Shape: []int64{3, 3}, Data: []any{"x", "", "", "a", "b", "c", "", "", ""}}, "n": {Shape: []int64{3}, Data: []any{int64(1), int64(3), int64(0)}},
				"m": {Shape: []int64{3, 3}, Data: []any{int64(1), int64(0), int64(0), int64(1), int64(1), int64(1), int64(0), int64(0), int64(0)}}}, false, nil, nil},
		"sets padded left and cut": {tensorOf("input", "x", "BYTES", "[-1, 2]", `columns = ["t1"]`+"\npad = \"left\"\nmissing = \"-\"") + tensorOf("input", "n", "INT64", "[-1, 1]", `lengths_of = "x"`),
			map[string]modelserver.Tensor{"x": {Shape: []int64{3, 2}, Data: []any{"-", "x", "b", "c", "-", "-"}}, "n": {Shape: []int64{3, 1}, Data: []any{int64(1), int64(2), int64(0)}}}, false, nil, nil},
		"parameters": {tensorOf("input", "x", "FP32", "[-1]", `columns = ["solid"]`) + tensorOf("input", "hour", "INT64", "[-1, 1]", `param = "hour"`+"\nmissing = 24") +
			tensorOf("input", "lang", "BYTES", "[1, 1]", `param = "lang"`+"\nmissing = \"?\"") + tensorOf("input", "seen", "INT64", "[1, -1]", `param = "seen"`) + tensorOf("input", "seen4", "INT64", "[-1, 3]", `param = "seen"`+"\npad = \"left\"") +
			tensorOf("input", "seenN", "INT64", "[1]", `lengths_of = "seen"`) + tensorOf("input", "bm", "FP64", "[1, -1]", `param = "bm25"`+"\nmissing = -1") + tensorOf("input", "user", "BYTES", "[1]", `param = "user_id"`) + tensorOf("input", "uid", "INT64", "[1]", `param = "user_id"`) +
			tensorOf("input", "taste", "FP32", "[1, 2]", `param = "taste"`+"\nmissing = 0"),
			map[string]modelserver.Tensor{"hour": {Shape: []int64{3, 1}, Data: []any{int64(18), int64(18), int64(18)}}, "lang": {Shape: []int64{1, 1}, Data: []any{"?"}},
				"seen": {Shape: []int64{1, 2}, Data: []any{int64(4), int64(5)}}, "seen4": {Shape: []int64{3, 3}, Data: []any{int64(0), int64(4), int64(5), int64(0), int64(4), int64(5), int64(0), int64(4), int64(5)}},
				"seenN": {Shape: []int64{1}, Data: []any{int64(2)}}, "bm": {Shape: []int64{1, 3}, Data: []any{1.0, -1.0, 0.5}}, "user": {Shape: []int64{1}, Data: []any{"9"}}, "uid": {Shape: []int64{1}, Data: []any{int64(9)}},
				"taste": {Shape: []int64{1, 2}, Data: []any{0.0, 0.0}}}, false, map[string]any{"hour": int64(18), "bm25": []any{1, nil, 0.5}}, map[string]any{"seen": []any{4, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, extensions []string) {
				s := &modelserver.Inference{Model: "m", Extensions: extensions, Infer: func(inputs map[string]modelserver.Tensor) ([]modelserver.Tensor, error) {
					return []modelserver.Tensor{{Name: "y", Datatype: "FP32", Shape: []int64{3}, Data: []any{0.5, 0.25, 0.125}}}, nil
				}}
				k := modelCase(t, s, inferenceHead+c.inputs+tensorOf("output", "y", "FP32", y, `columns = ["f2"]`), rows, "f2")
				k.RequestParams, k.Context = c.params, c.context
				out, err := rankdtest.Run(specNamed(t, "remote"), k)
				if c.binary && len(extensions) == 0 {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, []any{0.5, 0.25, 0.125}, rankdtest.Values(out, 1002))
				got := s.Requests()[0]
				assert.Equal(t, len(extensions) > 0, got.Binary)
				if len(extensions) > 0 {
					left := got.Parameters["timeout"].(float64)
					assert.True(t, left > 1e6 && left <= 30e6, left)
				} else {
					assert.Nil(t, got.Parameters["timeout"])
				}
				for name, want := range c.want {
					assert.Equal(t, want.Shape, got.Inputs[name].Shape, name)
					assert.Equal(t, want.Data, nan(got.Inputs[name].Data), name)
				}
			})
		})
	}
}

// Outputs become columns by their shapes and datatypes.
func TestOutputsBecomeColumns(t *testing.T) {
	outputs := tensorOf("output", "a", "FP32", "[-1]", `columns = ["f1"]`) + tensorOf("output", "b", "FP64", "[-1, 2]", `columns = ["f2", "solid"]`) +
		tensorOf("output", "c", "FP32", "[-1, 2]", `columns = ["v2"]`) + tensorOf("output", "d", "INT64", "[-1, 1]", `columns = ["i1"]`) +
		tensorOf("output", "e", "BOOL", "[-1, 1]", `columns = ["b1"]`) + tensorOf("output", "f", "BYTES", "[-1, 2]", `columns = ["s1", "s2"]`) + tensorOf("output", "g", "FP32", "[-1, 2]", `columns = ["w2"]`)
	both(t, func(t *testing.T, extensions []string) {
		s := &modelserver.Inference{Model: "m", Extensions: extensions, Infer: func(map[string]modelserver.Tensor) ([]modelserver.Tensor, error) {
			return []modelserver.Tensor{
				{Name: "more", Datatype: "UINT64", Shape: []int64{1}, Data: []any{int64(1)}},
				{Name: "a", Datatype: "FP32", Shape: []int64{2, 1}, Data: []any{float64(float32(0.1)), -2.5}}, {Name: "b", Datatype: "FP64", Shape: []int64{2, 2}, Data: []any{0.1, 1.0, 2.0, 3.0}},
				{Name: "c", Datatype: "FP32", Shape: []int64{2, 2}, Data: []any{1.0, 2.0, 3.0, 4.0}}, {Name: "d", Datatype: "INT64", Shape: []int64{2}, Data: []any{int64(math.MinInt64), int64(258)}},
				{Name: "e", Datatype: "BOOL", Shape: []int64{2, 1}, Data: []any{true, false}}, {Name: "f", Datatype: "BYTES", Shape: []int64{2, 2}, Data: []any{"a", "", "é", "d"}},
			}, nil
		}}
		in := rankdtest.WithFloats(rankdtest.Rows(1, 2), 2001, 1.0, 2.0)
		k := modelCase(t, s, inferenceHead+tensorOf("input", "x", "FP32", "[-1]", `columns = ["solid"]`)+outputs, in, "s2", "f1", "v2", "solid", "i1", "b1", "f2")
		k.Params["missing"] = "fail"
		out, err := rankdtest.Run(specNamed(t, "remote"), k)
		require.NoError(t, err)
		for id, want := range map[registry.KeyID][]any{1001: {float64(float32(0.1)), -2.5}, 1002: {0.1, 2.0}, 2001: {1.0, 3.0}, 7001: {[]float32{1, 2}, []float32{3, 4}},
			5001: {int64(math.MinInt64), int64(258)}, 5101: {true, false}, 3002: {"", "d"}, 3001: nil} {
			if want == nil {
				assert.False(t, out.Batch.Has(id))
				continue
			}
			assert.Equal(t, want, rankdtest.Values(out, id), id)
		}
	})
}

// A row whose value its tensor cannot carry has no score, and the others keep theirs. So has a row whose score is not finite.
func TestOneBadRowCostsThatRow(t *testing.T) {
	both(t, func(t *testing.T, extensions []string) {
		for name, c := range map[string]struct {
			input string
			infer func(map[string]modelserver.Tensor) ([]modelserver.Tensor, error)
			want  []any
			told  string
			err   string
		}{
			"too large for FP32":  {tensorOf("input", "x", "FP32", "[-1]", `columns = ["solid"]`), firstColumn, []any{1.0, nil, 3.0}, "input x has a value that FP32 cannot carry", ""},
			"too large for INT32": {tensorOf("input", "x", "FP32", "[-1]", `columns = ["i1"]`) + tensorOf("input", "i", "INT32", "[-1]", `columns = ["whole"]`), firstColumn, []any{10.0, nil, 30.0}, "input i has a value that INT32 cannot carry", ""},
		} {
			t.Run(name, func(t *testing.T) {
				in := rankdtest.WithFloats(rankdtest.Rows(1, 2, 3), 2001, 1.0, 1e300, 3.0)
				in = rankdtest.WithInts(rankdtest.WithInts(in, 7002, int64(1), int64(1<<40), int64(3)), 5001, int64(10), int64(20), int64(30))
				s := &modelserver.Inference{Model: "m", Extensions: extensions, Infer: c.infer}
				k := modelCase(t, s, inferenceHead+c.input+tensorOf("output", "y", "FP32", "[-1]", `columns = ["f2"]`), in, "f2")
				var shortfall task.Shortfall
				k.Shortfall = &shortfall
				out, err := rankdtest.Run(specNamed(t, "remote"), k)
				require.NoError(t, err)
				assert.Equal(t, c.want, rankdtest.Values(out, 1002))
				require.NotNil(t, shortfall.Malformed)
				assert.Equal(t, task.MalformedIDs{Count: 1, Of: 3, First: c.told, Key: "f2", Values: true}, *shortfall.Malformed)
				assert.Equal(t, []int64{2}, s.Requests()[0].Inputs["x"].Shape)
			})
		}
	})
	s := &modelserver.Inference{Model: "m", Extensions: []string{"binary_tensor_data"}, Infer: firstColumn}
	s.Infer = func(map[string]modelserver.Tensor) ([]modelserver.Tensor, error) {
		return []modelserver.Tensor{{Name: "y", Datatype: "FP32", Shape: []int64{3}, Data: []any{math.NaN(), 0.5, math.Inf(1)}}}, nil
	}
	in := rankdtest.WithFloats(rankdtest.Rows(1, 2, 3), 2001, 1.0, 2.0, 3.0)
	k := modelCase(t, s, inferenceHead+tensorOf("input", "x", "FP32", "[-1]", `columns = ["solid"]`)+tensorOf("output", "y", "FP32", "[-1]", `columns = ["f2"]`), in, "f2")
	var shortfall task.Shortfall
	k.Shortfall = &shortfall
	out, err := rankdtest.Run(specNamed(t, "remote"), k)
	require.NoError(t, err)
	assert.Equal(t, []any{nil, 0.5, nil}, rankdtest.Values(out, 1002))
	assert.Equal(t, task.MalformedIDs{Count: 2, Of: 3, First: "NaN", Key: "f2", Values: true}, *shortfall.Malformed)
}

// A server that answers something else than it was asked makes the node fail, and the error says what was wrong.
func TestInferenceFaults(t *testing.T) {
	score := func(change func(*modelserver.Tensor)) func(map[string]modelserver.Tensor) ([]modelserver.Tensor, error) {
		return func(map[string]modelserver.Tensor) ([]modelserver.Tensor, error) {
			y := modelserver.Tensor{Name: "y", Datatype: "FP32", Shape: []int64{2}, Data: []any{0.5, 0.25}}
			change(&y)
			return []modelserver.Tensor{y}, nil
		}
	}
	fine := score(func(*modelserver.Tensor) {})
	ofInfer := func(fault func(*modelserver.Answer)) func(*modelserver.Answer) {
		return func(a *modelserver.Answer) {
			if a.Request.Method == http.MethodPost {
				fault(a)
			}
		}
	}
	const header = "Inference-Header-Content-Length"
	both(t, func(t *testing.T, extensions []string) {
		binary := len(extensions) > 0
		for name, c := range map[string]struct {
			infer      func(map[string]modelserver.Tensor) ([]modelserver.Tensor, error)
			fault      func(*modelserver.Answer)
			err        string
			onlyBinary bool
		}{
			"a row too few":    {score(func(y *modelserver.Tensor) { y.Shape, y.Data = []int64{1}, y.Data[:1] }), nil, `output "y" has the shape [1], must be [2 1]`, false},
			"a row too many":   {score(func(y *modelserver.Tensor) { y.Shape, y.Data = []int64{3}, append(y.Data, 1.0) }), nil, `output "y" has the shape [3], must be [2 1]`, false},
			"transposed":       {score(func(y *modelserver.Tensor) { y.Shape = []int64{1, 2} }), nil, `output "y" has the shape [1 2], must be [2 1]`, false},
			"another datatype": {score(func(y *modelserver.Tensor) { y.Datatype = "FP64" }), nil, `output "y" has the datatype "FP64", must be FP32`, false},
			"another name":     {fine, ofInfer(func(a *modelserver.Answer) { a.Body = bytes.Replace(a.Body, []byte(`"y"`), []byte(`"z"`), 1) }), `output "y" is missing`, false},
			"only NaN":         {score(func(y *modelserver.Tensor) { y.Data = []any{math.NaN(), math.NaN()} }), nil, "columns.f2 has no value of type float: NaN is none", true},
			"an error": {func(map[string]modelserver.Tensor) ([]modelserver.Tensor, error) {
				return nil, errors.New("out of memory")
			}, nil, `status: 400: {"error":"out of memory"}`, false},
			"half of a body":    {fine, ofInfer(func(a *modelserver.Answer) { a.Body = a.Body[:len(a.Body)-3] }), map[bool]string{true: "has 8 bytes of binary data, and the body has 5 more", false: "not JSON"}[binary], false},
			"the header lies":   {fine, ofInfer(func(a *modelserver.Answer) { a.Header.Set(header, "7000") }), header, false},
			"the header cuts":   {fine, ofInfer(func(a *modelserver.Answer) { a.Header.Set(header, strconv.Itoa(20)) }), "not JSON", false},
			"no header":         {fine, ofInfer(func(a *modelserver.Answer) { a.Header.Del(header) }), "something follows the JSON document", true},
			"not what it wants": {fine, ofInfer(func(a *modelserver.Answer) { a.Body = []byte(`{"outputs":{}}`); a.Header.Del(header) }), "outputs is", false},
			"the extension lies": {fine, func(a *modelserver.Answer) {
				if a.Request.Method == http.MethodPost && a.Request.Header.Get(header) != "" { // It reads JSON alone.
					a.Status, a.Body, a.Header = 400, []byte(`{"error":"failed to parse the request JSON buffer"}`), http.Header{}
				}
			}, "status: 400", true},
		} {
			t.Run(name, func(t *testing.T) {
				if c.onlyBinary && !binary {
					return
				}
				s := &modelserver.Inference{Model: "m", Extensions: extensions, Infer: c.infer, Fault: c.fault}
				in := rankdtest.WithFloats(rankdtest.Rows(1, 2), 2001, 1.0, 2.0)
				k := modelCase(t, s, inferenceHead+tensorOf("input", "x", "FP32", "[-1]", `columns = ["solid"]`)+tensorOf("output", "y", "FP32", "[-1]", `columns = ["f2"]`), in, "f2")
				_, err := rankdtest.Run(specNamed(t, "remote"), k)
				require.ErrorIs(t, err, task.ErrRemote)
				assert.ErrorContains(t, err, c.err)
				assert.NotContains(t, err.Error(), "\n")
			})
		}
	})
}

// A version that the address pins is the one that answers.
func TestPinnedVersions(t *testing.T) {
	for answered, want := range map[string]string{"": "", `,"model_version":"3"`: "", `,"model_version":"2"`: `version "2" of the model has answered, in place of version "3"`} {
		s := &modelserver.Inference{Model: "m", Version: "3", Infer: func(map[string]modelserver.Tensor) ([]modelserver.Tensor, error) {
			return []modelserver.Tensor{{Name: "y", Datatype: "FP32", Shape: []int64{2}, Data: []any{0.5, 0.25}}}, nil
		}, Fault: func(a *modelserver.Answer) {
			if a.Request.Method == http.MethodPost {
				a.Body = []byte(`{"model_name":"m"` + answered + `,"outputs":[{"name":"y","datatype":"FP32","shape":[2],"data":[0.5,0.25]}]}`)
			}
		}}
		in := rankdtest.WithFloats(rankdtest.Rows(1, 2), 2001, 1.0, 2.0)
		tables := strings.Replace(inferenceHead, "/v2/models/m/infer", "/v2/models/m/versions/3/infer", 1) + tensorOf("input", "x", "FP32", "[-1]", `columns = ["solid"]`) + tensorOf("output", "y", "FP32", "[-1]", `columns = ["f2"]`)
		_, err := rankdtest.Run(specNamed(t, "remote"), modelCase(t, s, tables, in, "f2"))
		if want == "" {
			require.NoError(t, err, answered)
			continue
		}
		require.ErrorIs(t, err, task.ErrRemote)
		require.ErrorContains(t, err, want)
	}
}

// Tables and nodes that do not fit each other are refused when the plan loads.
func TestTensorsThatDoNotFit(t *testing.T) {
	x, y := tensorOf("input", "x", "FP32", "[-1]", `columns = ["solid"]`), tensorOf("output", "y", "FP32", "[-1]", `columns = ["f2"]`)
	for _, c := range []struct{ tables, column, want string }{
		{tensorOf("input", "x", "FP32", "[-1]", `columns = ["nothing"]`) + y, "f2", `input "x": there is no key "nothing" in the registry`},
		{tensorOf("input", "x", "FP32", "[-1]", `columns = ["s1"]`) + y, "f2", "s1 is a key of type string, which FP32 does not carry"},
		{tensorOf("input", "x", "INT64", "[-1]", `columns = ["solid"]`) + y, "f2", "solid is a key of type float, which INT64 does not carry"},
		{tensorOf("input", "x", "FP32", "[-1, 3]", `columns = ["solid", "f1"]`) + y, "f2", "its columns have 2 elements for each row, and its shape is [-1 3]"},
		{tensorOf("input", "x", "FP32", "[-1, -1]", `columns = ["v2"]`) + y, "f2", "its columns have 2 elements"},
		{tensorOf("input", "x", "FP32", "[-1, 3]", `columns = ["v2", "f1"]`) + y, "f2", ""},
		{tensorOf("input", "x", "INT64", "[-1]", `columns = ["i1"]`) + y, "f2", "i1 may have no value, and INT64 has nothing that says so"},
		{tensorOf("input", "x", "BYTES", "[-1]", `columns = ["s1"]`) + y, "f2", "s1 may have no value"},
		{tensorOf("input", "x", "BYTES", "[-1, -1]", `columns = ["t1"]`) + y, "f2", ""},
		{tensorOf("input", "x", "BYTES", "[-1, 2]", `columns = ["t1", "s1"]`) + y, "f2", "t1 is a set, and stands beside other columns"},
		{tensorOf("input", "x", "FP32", "[1, 1]", `param = "nothing"`) + y, "f2", `there is no parameter "nothing"`},
		{tensorOf("input", "x", "INT64", "[1, 1]", `param = "hour"`) + y, "f2", "hour may have no value"},
		{tensorOf("input", "x", "INT64", "[1, -1]", `param = "bm25"`) + y, "f2", "bm25 is a parameter of type float_list, which INT64 does not carry"},
		{tensorOf("input", "x", "FP32", "[1, 3]", `param = "taste"`) + y, "f2", "taste has 2 elements, and the shape is [1 3]"},
		{x + tensorOf("output", "y", "INT64", "[-1]", `columns = ["f2"]`), "f2", "f2 is a key of type float, which INT64 does not carry"},
		{x + tensorOf("output", "y", "FP64", "[-1, 2]", `columns = ["v2"]`), "v2", "v2 is a key of type vector(2), which FP64 does not carry"},
		{x + tensorOf("output", "y", "FP32", "[-1, 3]", `columns = ["v2"]`), "v2", "its columns have 2 elements"},
		{x + y, "f1", "no output of endpoint model has the column f1"},
		{x + y + tensorOf("output", "z", "FP32", "[-1]", `columns = ["f2"]`), "f2", "two outputs have the column f2"},
	} {
		s := &modelserver.Inference{Model: "m", Infer: func(map[string]modelserver.Tensor) ([]modelserver.Tensor, error) { return nil, errors.New("asked") }}
		in := rankdtest.WithFloats(rankdtest.Rows(1), 2001, 1.0)
		_, err := rankdtest.Run(specNamed(t, "remote"), modelCase(t, s, inferenceHead+c.tables, in, c.column))
		if c.want == "" {
			assert.NotContains(t, err.Error(), "nodes[0].params", c.tables)
			continue
		}
		require.ErrorContains(t, err, "nodes[0].params", c.tables)
		require.ErrorContains(t, err, c.want, c.tables)
	}
	k := modelCase(t, http.NotFoundHandler(), inferenceHead+x+y, rankdtest.Rows(1), "f2")
	k.Params["send"] = []any{"f1"}
	_, err := rankdtest.Run(specNamed(t, "remote"), k)
	require.ErrorContains(t, err, "nodes[0].params.send: the endpoint's table says what a service of dialect open_inference gets")
	delete(k.Params, "send")
	_, err = rankdtest.Run(specNamed(t, "remote_candidates"), k)
	require.ErrorContains(t, err, "nodes[0].params.endpoint: model has the dialect open_inference, which brings no rows")
}

// Ids and users that are texts go as BYTES alone, also where a null would have a value.
func TestTensorsOfTexts(t *testing.T) {
	for _, c := range []struct{ datatype, source, want string }{
		{"FP32", `columns = ["id"]`, "has the id as FP32: only BYTES carries a text"},
		{"INT64", "columns = [\"id\"]\nmissing = 0", "has the id as INT64: only BYTES carries a text"},
		{"BYTES", `columns = ["id"]`, ""},
		{"INT64", "param = \"user_id\"\nmissing = 0", "user_id is a text, which INT64 does not carry"},
		{"BYTES", `param = "user_id"`, ""},
	} {
		s := &modelserver.Inference{Model: "m", Extensions: []string{"binary_tensor_data"}, Infer: func(inputs map[string]modelserver.Tensor) ([]modelserver.Tensor, error) {
			return []modelserver.Tensor{{Name: "y", Datatype: "FP32", Shape: []int64{2}, Data: []any{0.5, 0.25}}}, nil
		}}
		h := httptest.NewServer(s)
		t.Cleanup(h.Close)
		tables := modelTables(strings.ReplaceAll(inferenceHead+tensorOf("input", "x", c.datatype, "[-1]", c.source)+tensorOf("output", "y", "FP32", "[-1]", `columns = ["f2"]`), "ADDRESS", h.URL)).FS()
		tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"user\"\nid = \"string\"\n[[entity]]\nname = \"product\"\nid = \"string\"\n")}
		reg, err := registry.Load(tables, "test")
		require.NoError(t, err)
		ids := rowset.NewIDDict()
		rows, err := ids.Number(nil, []byte("a"), []byte("b"))
		require.NoError(t, err)
		_, err = rankdtest.Run(specNamed(t, "remote"), rankdtest.Case{Params: map[string]any{"endpoint": "ep_0002", "columns": []any{"f2"}}, Registry: reg, UserIDText: "u",
			Entity: "product", IDs: ids, Inputs: rankdtest.Inputs(rankdtest.Rows(rows...)), Online: true})
		if c.want == "" {
			require.NoError(t, err, c)
			continue
		}
		require.ErrorContains(t, err, c.want, c)
		require.ErrorContains(t, err, "nodes[", c)
		assert.Empty(t, s.Requests())
	}
}

// A request that becomes too large is given up before its tensors take memory.
func TestTensorsTooLarge(t *testing.T) {
	both(t, func(t *testing.T, extensions []string) {
		seen, ids := make([]any, 1000), make([]int64, 20000)
		for i := range seen {
			seen[i] = 1000 + i
		}
		for i := range ids {
			ids[i] = int64(i)
		}
		for name, inputs := range map[string]string{
			"one":     tensorOf("input", "x", "INT64", "[-1, -1]", `param = "seen"`),
			"several": tensorOf("input", "x", "INT64", "[-1, 3]", `param = "seen"`) + tensorOf("input", "z", "INT64", "[-1, 3]", `param = "seen"`),
		} {
			s := &modelserver.Inference{Model: "m", Extensions: extensions, Infer: firstColumn}
			head := strings.Replace(inferenceHead, "policy.", "policy.max_request_bytes = 500000\npolicy.", 1)
			k := modelCase(t, s, head+tensorOf("input", "n", "INT32", "[-1]", `lengths_of = "x"`)+inputs+tensorOf("output", "y", "INT64", "[-1]", `columns = ["i1"]`), rankdtest.Rows(ids...), "i1")
			k.Context = map[string]any{"seen": seen}
			_, err := rankdtest.Run(specNamed(t, "remote"), k)
			require.ErrorIs(t, err, remote.ErrTooLarge, name)
			require.ErrorIs(t, err, task.ErrRemote, name)
			require.Regexp(t, `http 127\.0\.0\.1:\d+: too large: the request has more than 500000 bytes`, err.Error(), name)
			assert.Empty(t, s.Requests())
		}
	})
}
