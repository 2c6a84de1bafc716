package task_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

var errKey = errors.New("this key fails")

// fallingShort is a task that leaves out two rows if it may, and fails open if it is told to.
func fallingShort(drops, open bool) task.Spec {
	return task.Spec{Op: "test::lacking", Output: task.Source, Partial: true, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		if drops {
			c.DropRows(1, errKey)
			c.DropRows(1, nil)
		}
		if open {
			c.FailOpen(errors.New("open"))
		}
		return rankdtest.Rows(1), nil
	}}
}

func TestShortfall(t *testing.T) {
	for name, c := range map[string]struct {
		drops, open, partial, required bool
		shortfall                      task.Shortfall
		fails                          string
	}{
		"whole":                              {},
		"whole and required":                 {required: true},
		"rows dropped":                       {drops: true, partial: true, shortfall: task.Shortfall{Dropped: 2, Err: errKey}},
		"rows dropped without leave":         {drops: true, fails: errKey.Error()},
		"rows dropped of a required node":    {drops: true, partial: true, required: true, fails: errKey.Error()},
		"open":                               {open: true, shortfall: task.Shortfall{Err: errors.New("open")}},
		"open, and partial":                  {open: true, partial: true, shortfall: task.Shortfall{Err: errors.New("open")}},
		"a required node must not fail open": {open: true, required: true, fails: "open"},
		"both":                               {drops: true, open: true, partial: true, shortfall: task.Shortfall{Dropped: 2, Err: errKey}},
	} {
		t.Run(name, func(t *testing.T) {
			var shortfall task.Shortfall
			out, err := rankdtest.Run(fallingShort(c.drops, c.open), rankdtest.Case{Partial: c.partial, Required: c.required, Shortfall: &shortfall})
			if c.fails != "" {
				require.EqualError(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []int64{1}, rankdtest.IDs(out))
			assert.Equal(t, c.shortfall, shortfall)
		})
	}
}

func TestPartialIsForShapesThatMayHaveFewerRows(t *testing.T) {
	spec := fallingShort(false, false)
	spec.Output, spec.Inputs = task.SameRows, 1
	_, err := task.NewCatalog(spec)
	assert.ErrorContains(t, err, "Partial is for tasks whose Output may have fewer rows")
}
