package task

import (
	"runtime/debug"

	"github.com/rankd/rankd/rowset"
)

// Invoke runs the body of spec for one node. It checks the number of inputs,
// contains a panic, counts the rows that the body has made and not counted, and checks the output unless the
// catalog trusts the task. A catalog for tests has it check that the inputs are as they were, too. The error is the body's, or
// matches ErrContract, ErrInvalid, ErrTooManyRows or ErrPanic. If the result lacks something and must not, it is the error of
// the part that failed. A body returns the error of a stopped kernel as it is: Invoke makes
// rowset.ErrStopped ErrCancelled.
func Invoke(spec *Spec, c *Ctx) (out rowset.RowSet, err error) {
	if n := len(c.Inputs); n != spec.Inputs && (n < spec.Inputs || n > spec.inputsMax()) {
		return rowset.RowSet{}, withKind(ErrInvalid, &arityError{got: n, least: spec.Inputs, most: spec.inputsMax()})
	}
	defer func() {
		c.endContext()
		if v := recover(); v != nil {
			out, err = rowset.RowSet{}, panicOf(v)
		}
	}()
	c.spec, c.counted, c.lack = spec, 0, Lack{}
	var given inputsCopy
	if spec.guardsInputs {
		given = copyInputs(c)
	}
	out, err = spec.Run(c)
	if err == nil {
		err = c.countResult(out)
	}
	if err == nil && c.lack.Err != nil && !c.mayLack() {
		err = c.lack.Err
	}
	if err == rowset.ErrStopped {
		err = ErrCancelled
	}
	if err != nil {
		return rowset.RowSet{}, err
	}
	if spec.unchecked {
		return out, nil
	}
	if err := given.check(c); err != nil {
		return rowset.RowSet{}, err
	}
	if err := check(spec, c, out); err != nil {
		return rowset.RowSet{}, err
	}
	return out, nil
}

// panicOf returns the error of a recovered value. It has been one already if the panic is that of a function of
// Ctx.Await.
func panicOf(recovered any) error {
	if p, ok := recovered.(*PanicError); ok {
		return p
	}
	return &PanicError{Value: recovered, Stack: debug.Stack()}
}
