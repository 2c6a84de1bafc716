package jsondoc

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// Text is an id or a value of a document: a string, or a number as it is written. A null is "".
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(value []byte) (err error) {
	switch jsontext.Value(value).Kind() {
	case 'n':
		*t = ""
	case '0':
		*t = Text(value)
	case '"':
		value, err = jsontext.AppendUnquote(nil, value)
		*t = Text(value)
	default:
		err = errors.New("must be a string or a number")
	}
	return err
}
