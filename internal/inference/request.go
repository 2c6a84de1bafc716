package inference

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/jsondoc"
)

// Known is what a server says of itself. Immutable.
type Known struct {
	Binary  bool // it has the extension binary_tensor_data
	Timeout bool // it has schedule_policy: a request may say how long it may take
}

// String returns the words of what the server has.
func (k Known) String() string {
	words := ""
	if k.Binary {
		words = "binary "
	}
	if k.Timeout {
		words += "timeout"
	}
	return words
}

// KnownOf returns the Known of a text that String has made.
func KnownOf(words string) Known {
	return Known{Binary: strings.Contains(words, "binary"), Timeout: strings.Contains(words, "timeout")}
}

// A Part is an input tensor of a request. One goroutine.
type Part struct {
	Name, Datatype string
	Shape          []int64
	// Elements are those of AppendElement, one behind the other; as JSON with commas between them.
	Elements []byte
}

// BinaryHeader is the header that says how many bytes of a body are JSON. The rest is binary data.
const BinaryHeader = "Inference-Header-Content-Length"

// AppendRequest appends a request for outputs. The parts are in binary if the server takes that. The header goes with it; nil: none.
func AppendRequest(dst []byte, known Known, left time.Duration, parts []Part, outputs []string) (_ []byte, header http.Header) {
	from := len(dst)
	dst = append(dst, '{')
	if known.Timeout && left > 0 {
		dst = strconv.AppendInt(append(dst, `"parameters":{"timeout":`...), max(1, left.Microseconds()), 10)
		dst = append(dst, "},"...)
	}
	dst = append(dst, `"inputs":[`...)
	for i := range parts {
		p := &parts[i]
		dst = jsondoc.AppendString(append(jsondoc.AppendComma(dst, i), `{"name":`...), p.Name)
		dst = jsondoc.AppendString(append(dst, `,"datatype":`...), p.Datatype)
		dst = jsondoc.AppendInts(append(dst, `,"shape":`...), p.Shape)
		if known.Binary {
			dst = strconv.AppendInt(append(dst, `,"parameters":{"binary_data_size":`...), int64(len(p.Elements)), 10)
			dst = append(dst, "}}"...)
		} else {
			dst = append(append(append(dst, `,"data":[`...), p.Elements...), "]}"...)
		}
	}
	dst = append(dst, `],"outputs":[`...)
	for i, name := range outputs {
		dst = jsondoc.AppendString(append(jsondoc.AppendComma(dst, i), `{"name":`...), name)
		if known.Binary {
			dst = append(dst, `,"parameters":{"binary_data":true}`...)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, "]}"...)
	if !known.Binary {
		return dst, nil
	}
	header = http.Header{
		BinaryHeader:   {strconv.Itoa(len(dst) - from)},
		"Content-Type": {"application/octet-stream"}, "Accept": {"application/octet-stream, application/json"},
	}
	for i := range parts {
		dst = append(dst, parts[i].Elements...)
	}
	return dst, header
}
