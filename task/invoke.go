package task

import (
	"runtime/debug"

	"github.com/rankd/rankd/rowset"
)

// Invoke runs body, which is spec.Run or spec.RunAsync, for one node: it
// checks the number of inputs, contains a panic, counts the rows that the body has made and
// not counted, and checks the output. The error is of the body, or matches ErrContract,
// ErrInvalid, ErrTooManyRows or ErrPanic.
func Invoke(spec *Spec, body Body, c *Ctx) (out rowset.RowSet, err error) {
	if len(c.Inputs) != spec.Inputs {
		return rowset.RowSet{}, withKind(ErrInvalid, &arityError{got: len(c.Inputs), want: spec.Inputs})
	}
	defer func() {
		if v := recover(); v != nil {
			out, err = rowset.RowSet{}, &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	c.counted = 0
	out, err = body(c)
	if err == nil {
		err = c.countResult(out)
	}
	if err != nil {
		return rowset.RowSet{}, err
	}
	if err := check(spec, c, out); err != nil {
		return rowset.RowSet{}, err
	}
	return out, nil
}
