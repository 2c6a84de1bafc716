package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// keyTextMax bounds the bytes that one field of the context brings into a Redis key.
const keyTextMax = 512

// RedisKey is a key template with the request's values in it: the same for all rows of one run. Immutable;
// any goroutine.
type RedisKey struct {
	Prefix, Suffix string // before and after what a row fills in; Prefix is the whole key if rows fill in nothing
	// Between has, for each mark that a row fills in, the text between it and the previous mark; the first is empty.
	// It is nil if there are fewer than two such marks.
	Between []string

	perRow bool
	texts  *rowset.IDTexts // what rows fill in, by number; nil: the number itself
}

// OfTexts returns the key for rows that fill in texts: Append and Ask put texts.At(n) in place of the number n. Without
// texts they put the number itself.
func (k RedisKey) OfTexts(texts *rowset.IDTexts) RedisKey {
	k.texts = texts
	return k
}

// Append appends the key of that number to dst. If {id} is the only mark, the number is the row's id.
func (k *RedisKey) Append(dst []byte, id int64) []byte {
	dst = append(dst, k.Prefix...)
	switch {
	case !k.perRow:
		return dst
	case k.texts != nil:
		dst = append(dst, k.texts.At(id)...)
	default:
		dst = strconv.AppendInt(dst, id, 10)
	}
	if k.Suffix == "" {
		return dst
	}
	return append(dst, k.Suffix...)
}

// RedisKey returns the keys of a template for this request. The error, a *expr.ParamError of class ErrInvalid, says
// that the request lacks a field of the context that the template needs, or that the field is too long for a key.
func (c *Ctx) RedisKey(t *plan.KeyTemplate) (key RedisKey, err error) {
	key.perRow = t.PerRow()
	if key.Prefix, err = c.keyText(t.Before); err != nil {
		return RedisKey{}, err
	}
	if key.Suffix, err = c.keyText(t.After); err != nil {
		return RedisKey{}, err
	}
	if len(t.Row) == 1 {
		return key, nil
	}
	from := 0
	for i := range t.Row {
		if t.Row[i].Column == nil {
			continue
		}
		between, err := c.keyText(t.Row[from:i])
		if err != nil {
			return RedisKey{}, err
		}
		key.Between, from = append(key.Between, between), i+1
	}
	return key, nil
}

// keyText joins the parts of a template. A single literal costs no allocation.
func (c *Ctx) keyText(parts []plan.TemplatePart) (string, error) {
	if len(parts) == 1 && parts[0].Param == nil && !parts[0].User {
		return parts[0].Text, nil
	}
	var b strings.Builder
	for i := range parts {
		part := &parts[i]
		switch {
		case part.User:
			b.WriteString(c.UserIDText())
		case part.Param != nil:
			value, err := c.keyField(part.Param)
			if err != nil {
				return "", withKind(ErrInvalid, &expr.ParamError{Param: part.Param.ID, Err: err})
			}
			b.WriteString(value)
		default:
			b.WriteString(part.Text)
		}
	}
	return b.String(), nil
}

// keyField returns a field of the request's context as a key has it, or an argument of a command: a bool as 1 or 0, a vector as floats of
// 4 bytes, little end first.
func (c *Ctx) keyField(param *registry.Param) (text string, err error) {
	ok := false
	switch param.Type {
	case registry.Int:
		var n int64
		n, ok = c.Params.Int(param.ID)
		text = strconv.FormatInt(n, 10)
	case registry.Bool:
		text = "0"
		var yes bool
		if yes, ok = c.Params.Bool(param.ID); yes {
			text = "1"
		}
	case registry.Float:
		var f float64
		f, ok = c.Params.Float(param.ID)
		if text = strconv.FormatFloat(f, 'g', -1, 64); f == math.Trunc(f) && math.Abs(f) < 1<<63 { // as a number that the plan states
			text = strconv.FormatInt(int64(f), 10)
		}
	case registry.Vector:
		var vector []float32
		vector, ok = c.Params.Vector(param.ID)
		bytes := make([]byte, 0, 4*len(vector))
		for _, f := range vector {
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(f))
		}
		text = string(bytes)
	default:
		text, ok = c.Params.String(param.ID)
	}
	switch {
	case !ok:
		return "", errors.New("there is no value, and a key template of the plan needs one")
	case len(text) > keyTextMax && param.Type == registry.String:
		return "", fmt.Errorf("the value has %d bytes, and a Redis key takes %d at most", len(text), keyTextMax)
	}
	return text, nil
}
