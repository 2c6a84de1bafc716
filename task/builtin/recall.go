package builtin

import (
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
)

// tasks is the view that engines have of package task.
var tasks = task.Engine(taskrun.Key{})

// withRecallParams adds the parameters that say how old the values may be that a node reads.
func withRecallParams(params ...plan.ParamSchema) []plan.ParamSchema {
	age := 0.001
	return append(params,
		plan.ParamSchema{Name: "fresh", Type: plan.Bool, Doc: "Whether to read from Redis even what the engine has in memory."},
		plan.ParamSchema{Name: "cache_age", Type: plan.Float, Added: true, Source: plan.SourceRule{FloatMin: &age},
			Doc: "The age in seconds beyond which what the engine has in memory is read again. The bound of the endpoint holds besides."},
	)
}

// freshByDefault makes true the default of the parameter fresh.
func freshByDefault(params []plan.ParamSchema) []plan.ParamSchema {
	for i := range params {
		if p := &params[i]; p.Name == "fresh" {
			p.BoolValue, p.Doc = true, "Whether to read from Redis even what the engine has in memory. `cache_age` needs `false`."
		}
	}
	return params
}

// recallRule returns the rule for a node that reads keys with this prefix: which values it takes from memory. shape
// identifies the meaning of a read; "" means that values must not be kept.
func recallRule(n *plan.Node, shape, prefix string) task.Recall {
	if n.Params.Bool("fresh") {
		shape = ""
	}
	return task.Recall{Shape: shape, Prefix: prefix, MaxAge: time.Duration(n.Params.Float("cache_age") * float64(time.Second))}
}

// The states of a cell in a value that is kept. The cell itself follows only if it is there.
const (
	valueThere     = 1
	valueMissing   = 2 // the key has none
	valueMalformed = 3 // its text does not parse
)

// wrongReply returns the error for a reply about a key that is of another kind than it should be, or has another number of
// elements; zero: any.
func wrongReply(c *task.Ctx, command string, key []byte, reply resp.Reply, want resp.Kind, elements int) error {
	redis, about := c.Redis(c.Node.Endpoint), command+" "+errtext.Text(string(key))
	switch err := reply.Err(); {
	case err != nil:
		return redis.Errorf("%s: %w", about, err)
	case elements == 0 && reply.Kind() == want:
		return redis.Errorf("%s: reply is an %s of another shape", about, want)
	case elements > 0:
		return redis.Errorf("%s: reply is %s of %d, want %s of %d", about, reply.Kind(), reply.Len(), want, elements)
	}
	return redis.Errorf("%s: reply is %s, want %s", about, reply.Kind(), want)
}

// nextBatch is the Batch of a read of so many keys, as many at once as may be.
func nextBatch(from, keys int) (to int) { return min(keys, from+task.PartCommands) }
