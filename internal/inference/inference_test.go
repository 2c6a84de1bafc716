package inference_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/inference"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/testing/modelserver"
	"github.com/rankd/rankd/registry"
)

// echoes sends tensors to a server that gives them back, and returns what it got and what came.
func echoes(t *testing.T, known inference.Known, parts ...inference.Part) (sent modelserver.Request, got *inference.Answer) {
	s := &modelserver.Inference{Model: "m", Version: "3", Extensions: []string{"binary_tensor_data"}, Infer: func(inputs map[string]modelserver.Tensor) (all []modelserver.Tensor, err error) {
		for _, p := range parts {
			all = append(all, inputs[p.Name])
		}
		return all, nil
	}}
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	body, header := inference.AppendRequest(nil, known, 0, parts, names)
	request := httptest.NewRequest("POST", "/v2/models/m/infer", strings.NewReader(string(body)))
	for name, values := range header {
		request.Header[name] = values
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, request)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	got, err := inference.ReadAnswer(w.Result().Header.Get(inference.BinaryHeader), w.Body.Bytes(), 1<<20)
	require.NoError(t, err)
	assert.Equal(t, "3", got.ModelVersion)
	return s.Requests()[0], got
}

// The table has values of each datatype at its bounds. A server that was written by the specification alone gets them, and they come
// back.
func TestElements(t *testing.T) {
	for datatype, values := range map[string][]any{
		"FP64":  {0.1, math.Copysign(0, -1), 1e308, 5e-324, math.NaN()},
		"FP32":  {float64(float32(0.1)), -3.5, math.MaxFloat32, float64(float32(1e-45)), math.NaN()},
		"FP16":  {0.5, -65504.0, 0x1p-24, 1.0009765625, math.NaN()},
		"INT64": {int64(math.MinInt64), int64(math.MaxInt64), int64(-1), int64(0), int64(258)},
		"INT32": {int64(math.MinInt32), int64(math.MaxInt32), int64(-1), int64(0), int64(258)},
		"UINT8": {int64(255), int64(0), int64(1), int64(2), int64(128)},
		"BOOL":  {true, false, true, true, false},
		"BYTES": {"", "a", "é\x00\"", strings.Repeat("x", 300), "{}"},
	} {
		for _, binary := range []bool{true, false} {
			t.Run(fmt.Sprint(datatype, binary), func(t *testing.T) {
				p := inference.Part{Name: "x", Datatype: datatype}
				var want []any
				for _, v := range values {
					f, isFloat := v.(float64)
					cannot := !binary && (datatype == "FP16" || isFloat && f != f)
					if !binary && len(want) > 0 && !cannot {
						p.Elements = append(p.Elements, ',')
					}
					before := len(p.Elements)
					var ok bool
					p.Elements, ok = inference.AppendElement(p.Elements, datatype, binary, inference.ValueOf(v))
					require.Equal(t, !cannot, ok, v)
					if !ok {
						require.Len(t, p.Elements, before)
						continue
					}
					want = append(want, v)
				}
				if len(want) == 0 {
					return
				}
				p.Shape = []int64{int64(len(want)), 1}
				sent, got := echoes(t, inference.Known{Binary: binary}, p)
				assert.Equal(t, binary, sent.Binary)
				o, ok := got.Output("x")
				require.True(t, ok)
				for i := range want {
					if f, isFloat := want[i].(float64); isFloat && f != f {
						assert.True(t, math.IsNaN(sent.Inputs["x"].Data[i].(float64)) && math.IsNaN(o.Elements[i].(float64)))
						continue
					}
					assert.Equal(t, want[i], sent.Inputs["x"].Data[i])
					assert.Equal(t, want[i], o.Elements[i])
				}
			})
		}
	}
}

// Values that a datatype does not have.
func TestElementsThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		datatype string
		value    any
	}{
		{"FP32", 1e39}, {"FP16", 65520.0}, {"FP16", 1e300}, {"FP64", "x"}, {"INT32", int64(1 << 31)}, {"INT32", int64(-1<<31 - 1)}, {"UINT8", int64(256)}, {"UINT8", int64(-1)},
		{"INT64", 1.0}, {"INT64", nil}, {"INT64", "1"}, {"BOOL", int64(1)}, {"BOOL", nil}, {"BYTES", nil}, {"BYTES", int64(1)},
	} {
		for _, binary := range []bool{true, false} {
			dst, ok := inference.AppendElement([]byte("x"), c.datatype, binary, inference.ValueOf(c.value))
			assert.False(t, ok, "%s %v", c.datatype, c.value)
			assert.Equal(t, "x", string(dst))
		}
	}
}

// Each binary16 is read as its value and written as itself; between two of them the nearer one counts, and of equally near ones
// the even one.
func TestHalves(t *testing.T) {
	read := func(h uint16) float64 {
		const body = `{"outputs":[{"name":"x","datatype":"FP16","shape":[1],"parameters":{"binary_data_size":2}}]}`
		a, err := inference.ReadAnswer(fmt.Sprint(len(body)), append([]byte(body), byte(h), byte(h>>8)), 1<<20)
		require.NoError(t, err)
		return a.Outputs[0].Elements[0].(float64)
	}
	write := func(f float64) uint16 {
		dst, ok := inference.AppendElement(nil, "FP16", true, inference.ValueOf(f))
		require.True(t, ok, f)
		return uint16(dst[0]) | uint16(dst[1])<<8
	}
	assert.Equal(t, []float64{1, -2, 65504, 0x1p-24, 0x1p-14}, []float64{read(0x3c00), read(0xc000), read(0x7bff), read(1), read(0x400)})
	for h := range uint16(0x7bff) {
		f, next := read(h), read(h+1)
		require.Less(t, f, next)
		require.Equal(t, h, write(f))
		require.Equal(t, h|0x8000, write(math.Copysign(f, -1)))
		middle := (f + next) / 2
		require.Equal(t, h, write(math.Nextafter(middle, 0)))
		require.Equal(t, h+1, write(math.Nextafter(middle, next)))
		require.Equal(t, h+h&1, write(middle))
	}
}

// Answers that are refused. The table has the binary data behind "|".
func TestAnswersThatAreRefused(t *testing.T) {
	const fp32 = `{"name":"x","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}`
	for answer, want := range map[string]string{
		``:                         "not JSON",
		`[]`:                       "must be an object",
		`{"outputs":3}`:            "outputs is",
		`{"outputs":[{"name":3}]}`: "outputs[0].name is",
		`{"outputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]},{"name":"x","datatype":"FP32","shape":[1],"data":[1]}]}`: "is there twice",
		`{"outputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1]}]}`:                                                       "has 1 elements",
		`{"outputs":[{"name":"x","datatype":"FP32","shape":[-1],"data":[1]}]}`:                                                      "has the shape",
		`{"outputs":[{"name":"x","datatype":"FP32","shape":[4294967296,4294967296],"data":[]}]}`:                                    "has the shape",
		`{"outputs":[{"name":"x","datatype":"FP32","data":[1]}]}`:                                                                   "lacks its shape",
		`{"outputs":[{"name":"x","datatype":"FP32","shape":[1]}]}`:                                                                  "either data or binary data",
		`{"outputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1,2],"parameters":{"binary_data_size":8}}]}|12345678`:        "either data or binary data",
		`{"outputs":[` + fp32 + `]}`:                                      "has 8 bytes of binary data, and the body has 0 more",
		`{"outputs":[` + fp32 + `]}|1234567`:                              "has 8 bytes of binary data, and the body has 7 more",
		`{"outputs":[` + fp32 + `]}|123456789`:                            "1 bytes follow",
		`{"outputs":[` + strings.Replace(fp32, "8", "4", 1) + `]}|1234`:   "has 4 bytes of binary data, and the shape [2]",
		`{"outputs":[` + strings.Replace(fp32, "8", "-1", 1) + `]}|1234`:  "has -1 bytes",
		`{"outputs":[` + strings.Replace(fp32, "8", "1e3", 1) + `]}|1234`: "binary_data_size is",
		`{"outputs":[{"name":"x","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":4}}]}|` + "\x01\x00\x00\x00":      "ends early",
		`{"outputs":[{"name":"x","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":8}}]}|` + "\x04\x00\x00\x00abcd":  "without its length",
		`{"outputs":[{"name":"x","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":6}}]}|` + "\x01\x00\x00\x00ab":    "1 bytes behind its last element",
		`{"outputs":[{"name":"x","datatype":"BYTES","shape":[99],"parameters":{"binary_data_size":8}}]}|` + "\x00\x00\x00\x00abcd": "has 8 bytes",
		`{"outputs":[]} 1`: "something follows",
	} {
		text, raw, binary := strings.Cut(answer, "|")
		length := ""
		if binary {
			length = fmt.Sprint(len(text))
		}
		_, err := inference.ReadAnswer(length, []byte(text+raw), 1<<20)
		require.ErrorContains(t, err, want, answer)
		assert.NotContains(t, err.Error(), "\n")
	}
	for _, length := range []string{"3000", "-1", "x", "2"} { // beyond the body, no number, in the middle of the JSON
		_, err := inference.ReadAnswer(length, []byte(`{"outputs":[]}`), 1<<20)
		require.Error(t, err, length)
	}
}

// Outputs are so many at most, and one that is larger than the caller takes keeps no elements. Its data must still fit its shape.
func TestAnswersAreBounded(t *testing.T) {
	const two = `{"outputs":[{"name":"x","datatype":"UINT8","shape":[2],"data":[1,2]},{"name":"big","datatype":"UINT8","shape":[3],"data":[[1],[2],[3]]},` +
		`{"name":"raw","datatype":"UINT8","shape":[3],"parameters":{"binary_data_size":3}}]}`
	a, err := inference.ReadAnswer(fmt.Sprint(len(two)), []byte(two+"abc"), 2)
	require.NoError(t, err)
	assert.Equal(t, []any{int64(1), int64(2)}, a.Outputs[0].Elements)
	assert.Nil(t, a.Outputs[1].Elements)
	assert.Nil(t, a.Outputs[2].Elements)
	_, err = inference.ReadAnswer("", []byte(`{"outputs":[{"name":"x","datatype":"UINT8","shape":[2],"data":[1,2,3]}]}`), 2)
	require.ErrorContains(t, err, "has 3 elements, and the shape [2]")
	outputs := func(n int) []byte {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"name":"o%d","datatype":"UINT8","shape":[0],"data":[]}`, i))
		}
		return []byte(`{"outputs":[` + strings.Join(list, ",") + `]}`)
	}
	_, err = inference.ReadAnswer("", outputs(1024), 2)
	require.NoError(t, err)
	_, err = inference.ReadAnswer("", outputs(1025), 2)
	require.ErrorContains(t, err, "outputs has more than 1024 items")
}

// Values of JSON that are none of their datatype, and data that is nested.
func TestValuesOfAnswers(t *testing.T) {
	a, err := inference.ReadAnswer("", []byte(`{"model_name":"m","outputs":[{"name":"f","datatype":"FP32","shape":[2,3],"data":[[0.1,null,"NaN"],[1e300,true,2]]},
		{"name":"i","datatype":"UINT8","shape":[4],"data":[1,256,1.5,"1"]},{"name":"b","datatype":"BOOL","shape":[2],"data":[true,1]},{"name":"t","datatype":"BYTES","shape":[2],"data":["a",1]},
		{"name":"other","datatype":"UINT64","shape":[1],"data":[1]}]}`), 1<<20)
	require.NoError(t, err)
	assert.Equal(t, []any{float64(float32(0.1)), nil, nil, math.Inf(1), nil, 2.0}, a.Outputs[0].Elements)
	assert.Equal(t, []any{int64(1), nil, nil, nil}, a.Outputs[1].Elements)
	assert.Equal(t, []any{true, nil}, a.Outputs[2].Elements)
	assert.Equal(t, []any{"a", nil}, a.Outputs[3].Elements)
	assert.Equal(t, "", a.ModelVersion)
}

// The model must take and give what the tables of the endpoint say.
func TestDescribe(t *testing.T) {
	ep := &registry.Endpoint{ID: "ep_1", Name: "ctr", Kind: registry.HTTP}
	ep.Service = registry.Service{Dialect: registry.OpenInference, Path: "/v2/models/ctr/versions/7/infer",
		Inputs:  []registry.Tensor{{Name: "x", Datatype: "FP32", Shape: []int64{-1, 2}}},
		Outputs: []registry.Tensor{{Name: "y", Datatype: "FP32", Shape: []int64{-1}}}}
	const x, y = `{"name":"x","datatype":"FP32","shape":[-1,2]}`, `{"name":"y","datatype":"FP32","shape":[-1,1]}`
	about := func(extensions string) string { return `{"name":"s","version":"1","extensions":[` + extensions + `]}` }
	for _, c := range []struct{ server, model, err string }{
		{about(``), `{"name":"ctr","platform":"p","inputs":[` + x + `],"outputs":[` + y + `]}`, ""},
		{about(`"binary_tensor_data","schedule_policy"`), `{"name":"ctr","platform":"p"}`, ""},
		{"404", `{"inputs":[{"name":"x","datatype":"FP32","shape":[-1,-1]}]}`, ""},
		{"501", `{"inputs":[` + x + `]}`, ""},
		{"503", `{"inputs":[` + x + `]}`, "status: 503"}, // in its start: it may have extensions
		{"429", `{"inputs":[` + x + `]}`, "status: 429"},
		{about(``), `{"inputs":[{"name":"x","datatype":"FP64","shape":[-1,2]}]}`, `input "x" is FP32 [-1 2] in the table, and FP64 [-1 2] in the model`},
		{about(``), `{"inputs":[{"name":"x","datatype":"FP32","shape":[8,2]}]}`, `FP32 [8 2] in the model`},
		{about(``), `{"inputs":[{"name":"x","datatype":"FP32","shape":[-1,3]}]}`, `FP32 [-1 3] in the model`},
		{about(``), `{"inputs":[{"name":"x","datatype":"FP32","shape":[-1]}]}`, `FP32 [-1] in the model`},
		{about(``), `{"inputs":[]}`, `the table has an input "x", and the model has none`},
		{about(``), `{"inputs":[` + x + `,{"name":"z","datatype":"FP32","shape":[-1,2]}]}`, `the model takes an input "z", and the table has none`},
		{about(``), `{"outputs":[{"name":"z","datatype":"FP32","shape":[-1]}]}`, `the table has an output "y", and the model has none`},
		{about(``), `{"outputs":[{"name":"y","datatype":"FP32","shape":[-1,2]}]}`, `output "y" is FP32 [-1] in the table, and FP32 [-1 2] in the model`},
		{about(``), `[`, "does not say what the model is"},
		{`<html>`, `{}`, "does not say what the server is"},
		{"down", `{}`, "down"},
		{about(``), "404", "status: 404"},
	} {
		known, err := inference.Describe(ep)(func(path string) ([]byte, error) {
			text := map[string]string{"/v2": c.server, "/v2/models/ctr/versions/7": c.model}[path]
			if text == "down" {
				return nil, &remote.OpError{Kind: remote.ErrConnect, Cause: errors.New("down")}
			}
			if code, err := strconv.Atoi(text); err == nil {
				return nil, &remote.OpError{Kind: remote.ErrStatus, Cause: &remote.StatusError{Code: code}}
			}
			return []byte(text), nil
		})
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.model)
			assert.Equal(t, strings.Contains(c.err, "the model") && !strings.Contains(c.err, "does not"), errors.Is(err, inference.ErrDiffers), c.err)
			continue
		}
		require.NoError(t, err, c.model)
		yes := strings.Contains(c.server, "binary")
		assert.Equal(t, inference.Known{Binary: yes, Timeout: yes}, inference.KnownOf(known))
	}
	ep.Service.Inputs[0].Datatype = "FP16"
	_, err := inference.Describe(ep)(func(string) ([]byte, error) { return []byte(`{}`), nil })
	require.ErrorContains(t, err, "FP16, which only the extension binary_tensor_data can carry")
	assert.Nil(t, inference.Describe(new(registry.Endpoint)))
}

// Whatever a server sends, the result is an error of one line or outputs whose elements fit their shapes.
func FuzzReadAnswer(f *testing.F) {
	f.Add(`{"outputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[[1,2]]}]}`, "", "")
	f.Add(`{"model_version":"1","outputs":[{"name":"x","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}}]}`, "\x01\x00\x00\x00a", "103")
	f.Add(`{"outputs":[{"name":"x","datatype":"FP16","shape":[0],"parameters":{"binary_data_size":0}}]}`, "", "88")
	f.Fuzz(func(t *testing.T, text, raw, length string) {
		a, err := inference.ReadAnswer(length, []byte(text+raw), 1<<20)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for _, o := range a.Outputs {
			n := int64(1)
			for _, d := range o.Shape {
				n *= d
			}
			if o.Elements != nil {
				require.Len(t, o.Elements, int(n))
			}
		}
		_, err = json.Marshal(a.ModelVersion)
		require.NoError(t, err)
	})
}
