package builtin

import (
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

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
func recallRule(n *plan.Node, shape, prefix string) taskrun.RecallRule {
	if n.Params.Bool("fresh") {
		shape = ""
	}
	return taskrun.RecallRule{Shape: shape, Prefix: prefix, MaxAge: time.Duration(n.Params.Float("cache_age") * float64(time.Second))}
}

// The states of a kept value. The value follows only if there is one.
const (
	valueThere     = 1
	valueMissing   = 2 // the key has none
	valueMalformed = 3 // its text does not parse
)

// appendKept appends a value to a kept row.
func appendKept(dst []byte, state byte, column rowset.Column, row int) []byte {
	dst = append(dst, state)
	if state == valueThere {
		dst = column.AppendBinary(dst, row)
	}
	return dst
}

// keyReads is how a node reads many keys, by a command each. They are functions instead of an interface, so that they
// and what they refer to stay on the stack. Only the body uses it.
type keyReads struct {
	key    func(dst []byte, k int) []byte                         // appends the text of key k
	ask    func(b *resp.Batch, k int)                             // appends the command that reads key k
	encode func(dst []byte, reply resp.Reply) (_ []byte, ok bool) // appends the values of a reply; false if the reply is of the wrong kind
	refuse func(reply resp.Reply, k int) error                    // takes such a reply to the command for key k
	take   func(values *taskrun.Values) error                     // takes what encode has written
}

// recallKeys reads keys from to to-1: from the engine's memory if they are there, and otherwise with commands in b,
// which is empty. If no command is needed, it does not wait, unless earlier keys were read: then other requests get
// their turns in between.
func recallKeys(c *task.Ctx, redis task.Redis, recall *taskrun.Recall, r keyReads, b *resp.Batch, from, to int) error {
	v := recall.Find(from, to, r.key)
	if len(v.Misses) > 0 {
		if err := readMisses(redis, recall, r, b, v); err != nil {
			return err
		}
	} else if from > 0 {
		if err := c.Sleep(time.Nanosecond); err != nil {
			return err
		}
	}
	return r.take(v)
}

// readMisses reads the keys that were not found, by commands in b, and keeps what it reads.
func readMisses(redis task.Redis, recall *taskrun.Recall, r keyReads, b *resp.Batch, v *taskrun.Values) error {
	for _, k := range v.Misses {
		r.ask(b, k)
	}
	v.Keep()
	recall.Sending()
	var key []byte
	parts := redis.Parts(b)
	for parts.Next() {
		replies := parts.Replies()
		for i := range replies.Len() {
			k, start, ok := v.Misses[parts.From()+i], len(v.Bytes), false
			if v.Bytes, ok = r.encode(v.Bytes, replies.At(i)); !ok {
				if err := r.refuse(replies.At(i), k); err != nil {
					return err
				}
				continue
			}
			v.Add(k, start)
			key = r.key(key[:0], k)
			recall.Put(key, v.Bytes[start:])
		}
	}
	return parts.Err()
}
