package registry

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
)

// Dialect says in which form a service is asked, and answers.
type Dialect string

// The dialects of endpoints of kind http.
const (
	Document      Dialect = "" // a JSON document of rankd's own; "json" in a table
	OpenInference Dialect = "open_inference"
	Reranking     Dialect = "rerank"
)

// Rerank says how texts are made of rows for a reranking model. Immutable once built; any goroutine.
type Rerank struct {
	Query    string // a template of the query
	Document string // a template of the document of a row
	Texts    bool   // the documents are the member "texts", and the server cuts what is too long; otherwise "documents"
	Model    string // the member "model"; empty: none
	MaxBatch int    // documents of a call; 0: DefaultMaxBatch
	// Pointwise says that a document's score does not depend on the others of its call, so that more documents may be
	// several calls.
	Pointwise        bool
	MaxDocumentBytes int // rows with a longer document are left out; 0: none is
}

// DefaultMaxBatch is the most documents of a call to a reranker whose table says nothing.
const DefaultMaxBatch = 1000

// Most returns the most documents of a call.
func (r *Rerank) Most() int { return cmp.Or(r.MaxBatch, DefaultMaxBatch) }

// A Tensor is one that a model takes, or gives. Its elements come from one of Columns, Param, MaskOf and LengthsOf; an
// output has Columns. Immutable once built; any goroutine.
type Tensor struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	// Shape has one or two dimensions. The first is -1, the number of rows, or 1, once for all rows; the second is how many
	// elements a row has, or -1: as many as the longest list of the rows has.
	Shape     []int64  `json:"shape"`
	Columns   []string `json:"columns,omitempty"`    // names of keys, one beside the other
	Param     string   `json:"param,omitempty"`      // the name of a parameter
	MaskOf    string   `json:"mask_of,omitempty"`    // another tensor, of the same shape: which of its elements have a value
	LengthsOf string   `json:"lengths_of,omitempty"` // another tensor: this one has how many elements each of its rows has without the padding
	Missing   any      `json:"missing,omitempty"`    // in place of a null, and for padding: a float64, an int64, a bool or a string
	PadLeft   bool     `json:"pad_left,omitempty"`   // shorter lists begin with padding, and do not end with it
}

// Width returns how many elements a row has; -1: as many as the longest list.
func (t *Tensor) Width() int64 {
	if len(t.Shape) == 1 {
		return 1
	}
	return t.Shape[1]
}

// Once reports whether the tensor has the same shape for any number of rows.
func (t *Tensor) Once() bool { return t.Shape[0] == 1 }

// Float reports whether its elements may be NaN.
func (t *Tensor) Float() bool { return strings.HasPrefix(t.Datatype, "FP") }

// datatypes are those of tensors.
var datatypes = []string{"FP32", "FP64", "FP16", "INT64", "INT32", "UINT8", "BOOL", "BYTES"}

// inferPath is the path of a service whose dialect is OpenInference.
var inferPath = regexp.MustCompile(`^(.*/v2)(/models/[^/]+(?:/versions/([^/]+))?)/infer$`)

// ModelPaths returns where a service of dialect OpenInference tells of itself and of its model, and the version that the URL pins;
// "": none.
func (s *Service) ModelPaths() (server, model, version string) {
	if m := inferPath.FindStringSubmatch(s.Path); m != nil {
		return m[1], m[1] + m[2], m[3]
	}
	return "", "", ""
}

// tensorRow is one [[endpoint.input]] or [[endpoint.output]].
type tensorRow struct {
	Name      string `toml:"name"`
	Datatype  string `toml:"datatype"`
	Shape     any    `toml:"shape"`
	Columns   any    `toml:"columns"`
	Param     string `toml:"param"`
	MaskOf    string `toml:"mask_of"`
	LengthsOf string `toml:"lengths_of"`
	Missing   any    `toml:"missing"`
	Pad       string `toml:"pad"`
}

// listOf returns the items of a value of a table, nil if it is no list of T.
func listOf[T any](value any) (list []T) {
	items, _ := value.([]any)
	for _, item := range items {
		v, ok := item.(T)
		if !ok {
			return nil
		}
		list = append(list, v)
	}
	return list
}

// tensor makes a tensor of a row. The error says what is wrong, behind the name of the row.
func (row *tensorRow) tensor(output bool) (t Tensor, err error) {
	t = Tensor{
		Name: row.Name, Datatype: row.Datatype, Shape: listOf[int64](row.Shape), Columns: listOf[string](row.Columns),
		Param: row.Param, MaskOf: row.MaskOf, LengthsOf: row.LengthsOf, Missing: row.Missing, PadLeft: row.Pad == "left",
	}
	sources := 0
	for _, given := range []bool{row.Columns != nil, t.Param != "", t.MaskOf != "", t.LengthsOf != ""} {
		if given {
			sources++
		}
	}
	switch dims := len(t.Shape); {
	case t.Name == "" || !isName(t.Name):
		return t, fmt.Errorf("name must be the name of a tensor, in one line")
	case !slices.Contains(datatypes, t.Datatype):
		return t, fmt.Errorf("datatype must be one of %s, not %s", strings.Join(datatypes, ", "), errtext.Quote(t.Datatype))
	case dims < 1 || dims > 2 || t.Shape[0] != -1 && t.Shape[0] != 1 || dims == 2 && t.Shape[1] != -1 && (t.Shape[1] < 1 || t.Shape[1] > 1<<20):
		return t, fmt.Errorf("shape must be [-1] or [-1, n] for rows, or [1] or [1, n] for all rows together; n is from 1 to %d, or -1", 1<<20)
	case row.Columns != nil && len(t.Columns) == 0:
		return t, fmt.Errorf("columns must be a list of names of keys")
	case output && (row.Columns == nil || sources > 1 || t.Missing != nil || row.Pad != ""):
		return t, fmt.Errorf("has name, datatype, shape and columns, and nothing else")
	case output && (t.Once() || t.Width() < 0):
		return t, fmt.Errorf("shape must be [-1] or [-1, n]")
	case sources != 1:
		return t, fmt.Errorf("needs one of columns, param, mask_of and lengths_of")
	case row.Columns != nil && t.Once():
		return t, fmt.Errorf("shape begins with -1, since columns have a value for each row")
	case row.Pad != "" && row.Pad != "left" && row.Pad != "right":
		return t, fmt.Errorf("pad must be left or right, not %s", errtext.Quote(row.Pad))
	case t.LengthsOf != "" && t.Width() != 1, t.LengthsOf != "" && !strings.Contains(t.Datatype, "INT"):
		return t, fmt.Errorf("lengths have the shape [-1] or [-1, 1], or [1] or [1, 1], and a datatype of integers")
	case t.MaskOf != "" && t.Datatype == "BYTES":
		return t, fmt.Errorf("a mask has a datatype of numbers, or BOOL")
	case (t.MaskOf != "" || t.LengthsOf != "") && t.Missing != nil:
		return t, fmt.Errorf("missing is for tensors of columns and of parameters")
	}
	if !t.fits() {
		return t, fmt.Errorf("missing must be a value of %s", t.Datatype)
	}
	return t, nil
}

// fits makes Missing a value of the datatype: a float64, an int64, a bool or a string.
func (t *Tensor) fits() bool {
	if v, ok := t.Missing.(int64); ok && t.Float() {
		t.Missing = float64(v)
	}
	switch v := t.Missing.(type) {
	case nil:
		return true
	case int64:
		return t.Datatype == "INT64" || t.Datatype == "INT32" && v == int64(int32(v)) || t.Datatype == "UINT8" && v == int64(uint8(v))
	case float64:
		most, ok := map[string]float64{"FP32": math.MaxFloat32, "FP16": 65504, "FP64": math.MaxFloat64}[t.Datatype]
		return ok && math.Abs(v) <= most
	case bool:
		return t.Datatype == "BOOL"
	case string:
		return t.Datatype == "BYTES"
	}
	return false
}

// tensors reads the tensors of an endpoint: its member input or output.
func (l *loader) tensors(file, label, member string, rows []tensorRow, e *Endpoint) (list []Tensor) {
	for i := range rows {
		at := fmt.Sprintf("%s[%d]", member, i)
		t, err := rows[i].tensor(member == "output")
		switch {
		case err != nil:
			l.problem(file, label, "%s %w", at, err)
		case slices.ContainsFunc(list, func(other Tensor) bool { return other.Name == t.Name }):
			l.problem(file, label, "%s: there is a tensor %s already", at, errtext.Quote(t.Name))
		default:
			list = append(list, t)
		}
	}
	return list
}

// dialect reads what an endpoint says of its dialect.
func (l *loader) dialect(file, label string, row endpointRow, e *Endpoint) {
	s, rows := &e.Service, [2][]tensorRow{}
	for i, member := range [...]string{"input", "output"} {
		rows[i] = row.fields.FieldByName(fieldName(member)).Interface().([]tensorRow)
	}
	s.Inputs, s.Outputs = l.tensors(file, label, "input", rows[0], e), l.tensors(file, label, "output", rows[1], e)
	server, _, _ := s.ModelPaths()
	switch {
	case s.Dialect != OpenInference && len(rows[0])+len(rows[1]) > 0:
		l.problem(file, label, "input and output are only for dialect %s", OpenInference)
	case s.Dialect == OpenInference && server == "":
		l.problem(file, label, "url must end with /v2/models/NAME/infer or /v2/models/NAME/versions/VERSION/infer")
	case s.Dialect == OpenInference && (len(rows[0]) == 0 || len(rows[1]) == 0):
		l.problem(file, label, "dialect %s needs [[endpoint.input]] and [[endpoint.output]]", OpenInference)
	case s.Dialect == Reranking && (s.Rerank.Query == "" || s.Rerank.Document == ""):
		l.problem(file, label, "dialect %s needs rerank.query and rerank.document", Reranking)
	}
	for i := range s.Inputs {
		t := &s.Inputs[i]
		of := cmp.Or(t.MaskOf, t.LengthsOf)
		j := slices.IndexFunc(s.Inputs, func(other Tensor) bool { return other.Name == of && len(other.Columns)+len(other.Param) > 0 })
		switch {
		case of == "":
		case j < 0:
			l.problem(file, label, "input %s: there is no input %s of columns or a parameter", errtext.Quote(t.Name), errtext.Quote(of))
		case t.MaskOf != "" && !slices.Equal(t.Shape, s.Inputs[j].Shape), t.Shape[0] != s.Inputs[j].Shape[0]:
			l.problem(file, label, "input %s has another shape than %s", errtext.Quote(t.Name), errtext.Quote(of))
		}
	}
}

// DialectLines returns the lines of a table that say in which dialect a service at another address is asked.
func (e *Endpoint) DialectLines(address string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "url = %q\n", address+e.Service.Path)
	for _, s := range settings {
		switch v := s.value(e).(type) {
		case []Tensor:
			if v != nil {
				fmt.Fprintf(&text, "%s = [", s.name)
				for i := range v {
					text.WriteString(v[i].inline() + ", ")
				}
				text.WriteString("]\n")
			}
		default:
			if (s.name == "dialect" || strings.HasPrefix(s.name, "rerank.")) && s.has(e) {
				fmt.Fprintf(&text, "%s = %#v\n", s.name, v)
			}
		}
	}
	return text.String()
}

// inline returns the tensor as a table of TOML in one line.
func (t *Tensor) inline() string {
	list := func(items ...any) string {
		var all []string
		for _, item := range items {
			all = append(all, fmt.Sprintf("%#v", item))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	var shape, columns []any
	for _, d := range t.Shape {
		shape = append(shape, d)
	}
	for _, c := range t.Columns {
		columns = append(columns, c)
	}
	line := fmt.Sprintf("{name = %q, datatype = %q, shape = %s", t.Name, t.Datatype, list(shape...))
	if columns != nil {
		line += ", columns = " + list(columns...)
	}
	for _, f := range [...]struct{ name, value string }{{"param", t.Param}, {"mask_of", t.MaskOf}, {"lengths_of", t.LengthsOf}} {
		if f.value != "" {
			line += fmt.Sprintf(", %s = %q", f.name, f.value)
		}
	}
	switch v := t.Missing.(type) {
	case nil:
	case float64:
		line += ", missing = " + strconv.FormatFloat(v, 'e', -1, 64)
	default:
		line += fmt.Sprintf(", missing = %#v", v)
	}
	if t.PadLeft {
		line += `, pad = "left"`
	}
	return line + "}"
}

func isReranking(e *Endpoint) error {
	return unless(e.Service.Dialect == Reranking, "is only for dialect rerank")
}

// tensorNames returns the names of tensors, for people.
func tensorNames(list []Tensor) string {
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	return errtext.Name(strings.Join(names, ","))
}
