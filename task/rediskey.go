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
	Prefix, Suffix string // before and after what a row fills in; Prefix is the whole key if rows fill in nothing
	// Between is, for each mark that a row fills in, what stands between it and the mark before; empty for the first. It is nil if there is one
	// such mark or none.
	Between []string

	perRow bool
	texts  []string // what rows fill in, by number; nil: the number itself
}

// OfTexts returns the key with texts[n] in the place of what a row fills in, for each number n that Append and Ask take. No texts: the number
// stands there.
func (k RedisKey) OfTexts(texts []string) RedisKey {
	k.texts = texts
	return k
}

// Append appends the key of that number to dst: of the row with that id, if the template has {id} alone.
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
	if len(t.Row) > 1 {
		return c.withBetween(key, t.Row)
	}
	return key, true, nil
}

// withBetween returns a key with what stands between the marks that a row fills in.
func (c *Ctx) withBetween(key RedisKey, row []plan.TemplatePart) (_ RedisKey, ok bool, err error) {
	from := 0
	for i := range row {
		if row[i].Column == nil {
			continue
		}
		between, ok, err := c.keyText(row[from:i])
		if !ok {
			return RedisKey{}, false, err
		}
		key.Between, from = append(key.Between, between), i+1
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
