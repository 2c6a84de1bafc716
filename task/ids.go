package task

import (
	"strconv"

	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
)

// UserIDText returns the id of the request's user as text: the digits of an integer.
func (c *Ctx) UserIDText() string {
	if text := c.Params.User(); text != "" {
		return text
	}
	return strconv.FormatInt(c.UserID, 10)
}

// IDTexts returns the texts of the ids of the inputs' rows, by the numbers that the rows have as ids. It is nil if
// the ids are integers. A task sees such rows only if its Spec.IDs allows them.
func (c *Ctx) IDTexts() *rowset.IDTexts {
	if !c.Node.InputEntity.TextIDs() || c.Params.IDs() == nil {
		return nil
	}
	return c.Params.IDs().Texts()
}

// NumberIDs appends to ids the numbers that stand for these texts in rows of the request, in order. It is for a body that makes rows whose
// ids are texts (Node.Entity). Each text has 1 to rowset.IDBytesMax bytes. The error, of class ErrTooManyRows, says that the texts
// of the request are too many.
func (c *Ctx) NumberIDs(ids []int64, texts ...[]byte) ([]int64, error) {
	if c.Params.IDs() == nil {
		return nil, Invalidf("no rows of this plan have texts as ids")
	}
	ids, err := c.Params.IDs().Number(ids, texts...)
	if err != nil {
		return nil, withKind(ErrTooManyRows, err)
	}
	return ids, nil
}

// IDText returns the id of a row of the inputs as text: the digits of an integer.
func (c *Ctx) IDText(id int64) string {
	if texts := c.IDTexts(); texts != nil {
		return texts.At(id)
	}
	return strconv.FormatInt(id, 10)
}

// Ask appends the command t for each number, with its text where the key has texts.
func (k *RedisKey) Ask(b *resp.Batch, t *resp.Template, ids []int64) {
	if k.texts != nil {
		for _, id := range ids {
			b.CmdText(t, k.texts.At(id))
		}
		return
	}
	for _, id := range ids {
		b.CmdID(t, id)
	}
}

// Text returns what a row of that number fills in: its text, or the digits of the number.
func (k *RedisKey) Text(id int64) string {
	if k.texts != nil {
		return k.texts.At(id)
	}
	return strconv.FormatInt(id, 10)
}

// AskFor appends what rows of these numbers fill in, each as an argument of a command.
func (k *RedisKey) AskFor(b *resp.Batch, ids []int64) {
	for _, id := range ids {
		if k.texts != nil {
			b.ArgString(k.texts.At(id))
		} else {
			b.ArgInt(id)
		}
	}
}
