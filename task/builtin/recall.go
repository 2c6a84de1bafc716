package builtin

import (
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// tasks is the view that the built-in tasks have of package task, beside what authors see.
var tasks = task.Engine(taskrun.Key{})

// withRecallParams adds the parameters with which a node says how old what it reads may be.
func withRecallParams(params ...plan.ParamSchema) []plan.ParamSchema {
	age := 0.001
	return append(params,
		plan.ParamSchema{Name: "fresh", Type: plan.Bool, Doc: "Whether to read from Redis even what the engine has in memory."},
		plan.ParamSchema{Name: "cache_age", Type: plan.Float, Source: plan.SourceRule{FloatMin: &age},
			Doc: "The age in seconds beyond which what the engine has in memory is read again. The bound of the endpoint holds besides."},
	)
}

// recallOf returns what the engine keeps of the keys that a node reads, or nil. shape says what a read of a key means.
func recallOf(c *task.Ctx, shape string) *taskrun.Recall {
	p := &c.Node.Params
	if p.Bool("fresh") {
		return nil
	}
	return tasks.Recall(c, c.Node.Endpoint, shape, time.Duration(p.Float("cache_age")*float64(time.Second)))
}

// The states of a value that is kept. A value itself follows only if it is there.
const (
	valueThere     = 1
	valueMissing   = 2 // the key has none
	valueMalformed = 3 // its text does not parse
)

// appendKept appends a value to one that is kept.
func appendKept(dst []byte, state byte, column rowset.Column, row int) []byte {
	dst = append(dst, state)
	if state == valueThere {
		dst = column.AppendBinary(dst, row)
	}
	return dst
}
