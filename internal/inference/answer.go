package inference

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
)

// An Answer is a server's answer to a request. One goroutine.
type Answer struct {
	ModelVersion string // "": it does not say
	Outputs      []Output
}

// An Output is a tensor of an answer. One goroutine.
type Output struct {
	Name, Datatype string
	Shape          []int64
	// Elements are in row-major order: float64, int64, bool and string. Nil stands for what is no value of the datatype. An output with more
	// elements than the caller of ReadAnswer takes has none.
	Elements []any

	count   int64 // elements that came as JSON
	size    int64 // of its binary data
	inBytes bool
	hasData bool
}

// elementsMost bounds the elements of an output, as bodies do.
const elementsMost = 1 << 28

// outputsMost bounds the outputs of an answer.
const outputsMost = 1024

// ReadAnswer reads the body of an answer, of which given is the BinaryHeader. It takes outputs of at most so many elements; of a larger one,
// which nobody can have asked for, it keeps the shape. The error says what is wrong, in one line.
func ReadAnswer(given string, body []byte, most int64) (*Answer, error) {
	text, raw := body, []byte(nil)
	if given != "" {
		n, err := strconv.ParseUint(given, 10, 63)
		if err != nil || n > uint64(len(body)) {
			return nil, fmt.Errorf("%s is %s, and the body has %d bytes", BinaryHeader, errtext.Quote(given), len(body))
		}
		text, raw = body[:n], body[n:]
	}
	r := &answerReader{most: most}
	r.Reader = jsondoc.NewLenientReader(text, r)
	if err := r.Object("", r.member); err != nil {
		return nil, err
	}
	if !r.AtEnd() {
		return nil, errors.New("something follows the JSON document")
	}
	for i := range r.answer.Outputs {
		o := &r.answer.Outputs[i]
		if slices.ContainsFunc(r.answer.Outputs[:i], func(other Output) bool { return other.Name == o.Name }) {
			return nil, fmt.Errorf("output %s is there twice", errtext.Quote(o.Name))
		}
		if err := o.finish(&raw, most); err != nil {
			return nil, fmt.Errorf("output %s %w", errtext.Quote(o.Name), err)
		}
	}
	if len(raw) > 0 {
		return nil, fmt.Errorf("%d bytes follow the binary data of the outputs", len(raw))
	}
	return &r.answer, nil
}

// Output returns the output of a name.
func (a *Answer) Output(name string) (*Output, bool) {
	i := slices.IndexFunc(a.Outputs, func(o Output) bool { return o.Name == name })
	if i < 0 {
		return nil, false
	}
	return &a.Outputs[i], true
}

// finish checks the output against its shape, and takes its binary data from the front of raw.
func (o *Output) finish(raw *[]byte, most int64) error {
	n := int64(1)
	for _, d := range o.Shape {
		if d < 0 || d > 0 && n > elementsMost/d {
			return fmt.Errorf("has the shape %v", o.Shape)
		}
		n *= d
	}
	switch {
	case o.Shape == nil || o.Datatype == "":
		return errors.New("lacks its shape or its datatype")
	case o.inBytes == o.hasData:
		return errors.New("must have either data or binary data")
	case o.hasData && o.count != n:
		return fmt.Errorf("has %d elements, and the shape %v", o.count, o.Shape)
	case o.hasData && n > most:
		o.Elements = nil
		return nil
	case o.hasData:
		for i, v := range o.Elements {
			o.Elements[i] = ofJSON(o.Datatype, v.(jsontext.Value))
		}
		return nil
	case o.size < 0 || o.size > int64(len(*raw)):
		return fmt.Errorf("has %d bytes of binary data, and the body has %d more", o.size, len(*raw))
	}
	data := (*raw)[:o.size]
	*raw = (*raw)[o.size:]
	size := int64(sizeOf(o.Datatype))
	switch {
	case size == 0 && o.Datatype != "BYTES":
		return nil // an unknown datatype: nobody asked for it
	case size > 0 && n*size != o.size, size == 0 && n > o.size/4:
		return fmt.Errorf("has %d bytes of binary data, and the shape %v of %s", o.size, o.Shape, o.Datatype)
	}
	if n > most {
		return nil
	}
	o.Elements = make([]any, 0, n)
	for range n {
		length := size
		if size == 0 {
			if len(data) < 4 {
				return errors.New("has an element without its length")
			}
			length, data = int64(binary.LittleEndian.Uint32(data)), data[4:]
		}
		switch {
		case length > int64(len(data)):
			return errors.New("has an element that ends early")
		case size == 0:
			o.Elements = append(o.Elements, string(data[:length]))
		default:
			o.Elements = append(o.Elements, elementAt(o.Datatype, data))
		}
		data = data[length:]
	}
	if len(data) > 0 {
		return fmt.Errorf("has %d bytes behind its last element", len(data))
	}
	return nil
}

// ofJSON returns an element that is given as JSON, nil if it is no value of the datatype.
func ofJSON(datatype string, v jsontext.Value) any {
	switch datatype {
	case "BYTES":
		if text, err := jsontext.AppendUnquote(nil, v); v.Kind() == '"' && err == nil {
			return string(text)
		}
	case "BOOL":
		if v.Kind() == 't' || v.Kind() == 'f' {
			return v.Kind() == 't'
		}
	case "FP64", "FP32", "FP16":
		if f, err := strconv.ParseFloat(string(v), 64); v.Kind() == '0' && err == nil {
			return Round(datatype, f)
		}
	case "INT64", "INT32", "UINT8":
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err == nil && (datatype == "INT64" || datatype == "INT32" && n == int64(int32(n)) || datatype == "UINT8" && n == int64(uint8(n))) {
			return n
		}
	}
	return nil
}

// answerReader reads the JSON of an answer. One goroutine.
type answerReader struct {
	jsondoc.Reader
	answer Answer
	most   int64 // elements of an output that are kept
}

func (r *answerReader) member(name string) error {
	switch name {
	case "model_version":
		return r.text("model_version", &r.answer.ModelVersion)
	case "outputs":
		r.answer.Outputs = nil // Of a name that stands twice the last value counts.
		return r.Array("outputs", func(i int) error {
			if i == outputsMost {
				return fmt.Errorf("outputs has more than %d items", outputsMost)
			}
			r.answer.Outputs = append(r.answer.Outputs, Output{})
			return r.output(&r.answer.Outputs[i], fmt.Sprintf("outputs[%d]", i))
		})
	}
	return r.Skip()
}

func (r *answerReader) output(o *Output, path string) error {
	return r.Object(path, func(name string) error {
		path := path + "." + name
		switch name {
		case "name":
			return r.text(path, &o.Name)
		case "datatype":
			return r.text(path, &o.Datatype)
		case "shape":
			o.Shape = []int64{}
			return r.Values(path, func(_ int, v jsontext.Value) error {
				d, err := strconv.ParseInt(string(v), 10, 64)
				o.Shape = append(o.Shape, d)
				if err != nil || len(o.Shape) > 8 {
					return fmt.Errorf("%s is no shape", path)
				}
				return nil
			})
		case "parameters":
			return r.Object(path, func(name string) error {
				if name != "binary_data_size" {
					return r.Skip()
				}
				v, err := r.ReadValue()
				if err != nil {
					return r.Syntax(err)
				}
				if o.size, err = strconv.ParseInt(string(v), 10, 64); err != nil {
					return fmt.Errorf("%s.binary_data_size is %s", path, errtext.Quote(string(v)))
				}
				o.inBytes = true
				return nil
			})
		case "data":
			o.Elements, o.count, o.hasData = nil, 0, true
			return r.elements(path, o, 0)
		}
		return r.Skip()
	})
}

// elements reads the data of an output, flat or nested.
func (r *answerReader) elements(path string, o *Output, depth int) error {
	return r.Array(path, func(int) error {
		if r.PeekKind() == '[' && depth < 8 {
			return r.elements(path, o, depth+1)
		}
		if o.count++; o.count > r.most {
			return r.Skip()
		}
		v, err := r.ReadValue()
		if err == nil {
			o.Elements = append(o.Elements, v.Clone())
		}
		return r.Syntax(err)
	})
}

// text reads a string. null is the empty one.
func (r *answerReader) text(path string, into *string) error {
	switch r.PeekKind() {
	case 'n':
		return r.Skip()
	case '"':
		token, err := r.ReadToken()
		if err == nil {
			*into = token.String()
		}
		return r.Syntax(err)
	}
	return r.Wrong(path, "a string")
}

// Wrong implements jsondoc.Faults.
func (r *answerReader) Wrong(path, want string) error {
	v, err := r.ReadValue()
	if err != nil {
		return r.Syntax(err)
	}
	if path == "" {
		path = "the answer"
	}
	return fmt.Errorf("%s is %s, must be %s", path, errtext.Quote(string(v)), want)
}

// Syntax implements jsondoc.Faults.
func (*answerReader) Syntax(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("not JSON: %w", err)
}
