package task

import (
	"strconv"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// keyTextMax bounds the bytes that one field of the context brings into a Redis key.
const keyTextMax = 512

// RedisKey is a key template with the request's values in it: the same for all rows of one run. Immutable;
// any goroutine.
type RedisKey struct {
	Prefix, Suffix string // before and after the id; Prefix is the whole key of a template without {id}

	perRow bool
	texts  []string // in the place of {id}, by id; nil: the id itself
}

// Append appends the key for the row with that id to dst.
func (k RedisKey) Append(dst []byte, id int64) []byte {
	dst = append(dst, k.Prefix...)
	if !k.perRow {
		return dst
	}
	if k.texts != nil {
		return append(append(dst, k.texts[id]...), k.Suffix...)
	}
	return append(strconv.AppendInt(dst, id, 10), k.Suffix...)
}

// RedisKey returns the keys of a template for this request. It returns false if a field of the context is
// null: there is no key then, so it stands for one that does not exist. The error, of class ErrInvalid,
// says that a field is too long for a key.
func (c *Ctx) RedisKey(t *plan.KeyTemplate) (key RedisKey, ok bool, err error) {
	key.perRow = t.PerRow()
	if key.Prefix, ok, err = c.keyText(t.Before); !ok {
		return RedisKey{}, false, err
	}
	if key.Suffix, ok, err = c.keyText(t.After); !ok {
		return RedisKey{}, false, err
	}
	return key, true, nil
}

// keyText joins the parts of a template. A single literal costs no allocation.
func (c *Ctx) keyText(parts []plan.TemplatePart) (text string, ok bool, err error) {
	if len(parts) == 1 && parts[0].Param == nil && !parts[0].User {
		return parts[0].Text, true, nil
	}
	var b strings.Builder
	for i := range parts {
		part := &parts[i]
		switch {
		case part.User:
			b.WriteString(c.UserIDText())
		case part.Param != nil:
			value, ok := c.keyField(part)
			if !ok {
				return "", false, nil
			}
			if len(value) > keyTextMax {
				return "", false, Invalidf("%s has %d bytes, and a Redis key takes %d at most", part.Param.Name, len(value), keyTextMax)
			}
			b.WriteString(value)
		default:
			b.WriteString(part.Text)
		}
	}
	return b.String(), true, nil
}

// keyField returns a field of the request's context as a key has it: a bool as 1 or 0. It returns false if
// the field is null.
func (c *Ctx) keyField(part *plan.TemplatePart) (text string, ok bool) {
	id := part.Param.ID
	switch part.Param.Type {
	case registry.Int:
		n, ok := c.Params.Int(id)
		return strconv.FormatInt(n, 10), ok
	case registry.Bool:
		b, ok := c.Params.Bool(id)
		if b {
			return "1", ok
		}
		return "0", ok
	default:
		return c.Params.String(id)
	}
}
