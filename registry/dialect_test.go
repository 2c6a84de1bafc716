package registry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

const (
	inferenceTable = "url = \"http://h/p/v2/models/m/versions/3/infer\"\ndialect = \"open_inference\"\n"
	inputX         = "[[endpoint.input]]\nname = \"x\"\ndatatype = \"FP32\"\nshape = [-1, 2]\ncolumns = [\"a\", \"b\"]\nmissing = 1\n"
	outputY        = "[[endpoint.output]]\nname = \"y\"\ndatatype = \"FP32\"\nshape = [-1]\ncolumns = [\"s\"]\n"
)

// Tensors and rerankers as tables have them, and as people and machines read them.
func TestDialects(t *testing.T) {
	reg, err := loadService(inferenceTable + inputX + "[[endpoint.input]]\nname = \"l\"\ndatatype = \"INT32\"\nshape = [-1, 1]\nlengths_of = \"x\"\n" + outputY)
	require.NoError(t, err)
	e := reg.Endpoints()[0]
	assert.Equal(t, registry.OpenInference, e.Service.Dialect)
	assert.Equal(t, []registry.Tensor{
		{Name: "x", Datatype: "FP32", Shape: []int64{-1, 2}, Columns: []string{"a", "b"}, Missing: 1.0}, {Name: "l", Datatype: "INT32", Shape: []int64{-1, 1}, LengthsOf: "x"},
	}, e.Service.Inputs)
	server, model, version := e.Service.ModelPaths()
	assert.Equal(t, []string{"/p/v2", "/p/v2/models/m/versions/3", "3"}, []string{server, model, version})
	text, err := json.Marshal(e)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"dialect":"open_inference","input":[{"name":"x","datatype":"FP32","shape":[-1,2],"columns":["a","b"],"missing":1},`)
	var shown strings.Builder
	require.NoError(t, reg.WriteText(&shown))
	assert.Contains(t, shown.String(), "dialect=open_inference input=x,l output=y")

	again, err := loadService(e.DialectLines("http://h"))
	require.NoError(t, err)
	assert.Equal(t, reg.Digest(), again.Digest())

	reg2, err := loadService(inferenceTable + strings.Replace(inputX, "missing = 1", "missing = 2", 1) + outputY)
	require.NoError(t, err)
	assert.NotEqual(t, reg.Digest(), reg2.Digest())

	reg, err = loadService("url = \"http://h/rerank\"\ndialect = \"rerank\"\n[endpoint.rerank]\nquery = \"{q}\"\ndocument = \"{a}\"\ntexts = true\nmodel = \"m\"\nmax_batch = 32\npointwise = true\nmax_document_bytes = 9\n")
	require.NoError(t, err)
	r := reg.Endpoints()[0].Service.Rerank
	assert.Equal(t, registry.Rerank{Query: "{q}", Document: "{a}", Texts: true, Model: "m", MaxBatch: 32, Pointwise: true, MaxDocumentBytes: 9}, r)
	again, err = loadService(reg.Endpoints()[0].DialectLines("http://h"))
	require.NoError(t, err)
	assert.Equal(t, reg.Digest(), again.Digest())
	assert.Equal(t, []int{32, registry.DefaultMaxBatch}, []int{r.Most(), new(registry.Rerank).Most()})

	reg, err = loadService("url = \"http://h/score\"\ndialect = \"json\"\n")
	require.NoError(t, err)
	assert.Equal(t, registry.Document, reg.Endpoints()[0].Service.Dialect)
}

// Tables that are refused, each with what is wrong.
func TestDialectsThatAreRefused(t *testing.T) {
	input := func(lines string) string { return inferenceTable + "[[endpoint.input]]\n" + lines + "\n" + outputY }
	for fields, want := range map[string]string{
		"url = \"http://h/\"\ndialect = \"grpc\"":                                                                                        `dialect must be json, rerank or open_inference, not "grpc"`,
		"url = \"http://h/v2/models/m\"\ndialect = \"open_inference\"\n" + inputX + outputY:                                              "url must end with /v2/models/NAME/infer",
		"url = \"http://h/score\"\n" + inputX:                                                                                            "input and output are only for dialect open_inference",
		inferenceTable + inputX:                                                                                                          "needs [[endpoint.input]] and [[endpoint.output]]",
		inferenceTable + inputX + inputX + outputY:                                                                                       `input[1]: there is a tensor "x" already`,
		input("name = \"x\"\ndatatype = \"FP8\"\nshape = [-1]\ncolumns = [\"a\"]"):                                                       "input[0] datatype must be one of FP32",
		input("datatype = \"FP32\"\nshape = [-1]\ncolumns = [\"a\"]"):                                                                    "input[0] name must be the name of a tensor",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [-1, 2, 3]\ncolumns = [\"a\"]"):                                                "input[0] shape must be",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [8]\ncolumns = [\"a\"]"):                                                       "input[0] shape must be",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = \"n\"\ncolumns = [\"a\"]"):                                                     "input[0] shape must be",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [-1, 0]\ncolumns = [\"a\"]"):                                                   "input[0] shape must be",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [1]\ncolumns = [\"a\"]"):                                                       "input[0] shape begins with -1",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [-1]\ncolumns = [1]"):                                                          "input[0] columns must be a list of names",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [-1]"):                                                                         "input[0] needs one of columns, param, mask_of and lengths_of",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [-1]\ncolumns = [\"a\"]\nparam = \"p\""):                                       "input[0] needs one of",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [-1]\ncolumns = [\"a\"]\npad = \"up\""):                                        "input[0] pad must be left or right",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [-1]\ncolumns = [\"a\"]\nmissing = \"0\""):                                     "input[0] missing must be a value of FP32",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [-1]\ncolumns = [\"a\"]\nmissing = nan"):                                       "input[0] missing must be a value of FP32",
		input("name = \"x\"\ndatatype = \"FP32\"\nshape = [-1]\ncolumns = [\"a\"]\nmissing = 1e39"):                                      "input[0] missing must be a value of FP32",
		input("name = \"x\"\ndatatype = \"UINT8\"\nshape = [-1]\ncolumns = [\"a\"]\nmissing = 256"):                                      "input[0] missing must be a value of UINT8",
		input("name = \"x\"\ndatatype = \"INT64\"\nshape = [-1]\ncolumns = [\"a\"]\nmissing = 0.0"):                                      "input[0] missing must be a value of INT64",
		input("name = \"x\"\ndatatype = \"BYTES\"\nshape = [-1]\ncolumns = [\"a\"]\nmissing = 0.0"):                                      "input[0] missing must be a value of BYTES",
		input("name = \"x\"\ndatatype = \"FP16\"\nshape = [-1]\ncolumns = [\"a\"]\nmissing = 70000"):                                     "input[0] missing must be a value of FP16",
		input("name = \"x\"\ndatatype = \"BOOL\"\nshape = [-1]\ncolumns = [\"a\"]\nmissing = 0"):                                         "input[0] missing must be a value of BOOL",
		input("name = \"x\"\ndatatype = \"BOOL\"\nshape = [-1]\nmask_of = \"z\""):                                                        `input "x": there is no input "z"`,
		inferenceTable + inputX + "[[endpoint.input]]\nname = \"m\"\ndatatype = \"BOOL\"\nshape = [-1]\nmask_of = \"x\"\n" + outputY:     `input "m" has another shape than "x"`,
		inferenceTable + inputX + "[[endpoint.input]]\nname = \"m\"\ndatatype = \"BYTES\"\nshape = [-1, 2]\nmask_of = \"x\"\n" + outputY: "a mask has a datatype of numbers",
		inferenceTable + inputX + "[[endpoint.input]]\nname = \"m\"\ndatatype = \"FP32\"\nshape = [-1]\nlengths_of = \"x\"\n" + outputY:  "a datatype of integers",
		inferenceTable + inputX + "[[endpoint.output]]\nname = \"y\"\ndatatype = \"FP32\"\nshape = [-1, -1]\ncolumns = [\"s\"]\n":        "output[0] shape must be [-1] or [-1, n]",
		inferenceTable + inputX + outputY + "missing = 1\n":                                                                              "output[0] has name, datatype, shape and columns, and nothing else",
		"url = \"http://h/rerank\"\ndialect = \"rerank\"\n":                                                                              "dialect rerank needs rerank.query and rerank.document",
		"url = \"http://h/rerank\"\n[endpoint.rerank]\nquery = \"{q}\"\n":                                                                "rerank.query is only for dialect rerank",
		"url = \"http://h/rerank\"\ndialect = \"rerank\"\n[endpoint.rerank]\nquery = \"q\"\ndocument = \"{a}\"\nmax_batch = 0\n":         "rerank.max_batch must be 1 to",
	} {
		_, err := loadService(fields)
		require.ErrorContains(t, err, want, fields)
	}
}
