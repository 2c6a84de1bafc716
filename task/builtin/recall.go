package builtin

import (
	"time"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// withRecallParams adds the parameters with which a node says how old what it reads may be.
func withRecallParams(params ...plan.ParamSchema) []plan.ParamSchema {
	age := 0.001
	return append(params,
		plan.ParamSchema{Name: "fresh", Type: plan.Bool, Doc: "Whether to read from Redis even what the engine has in memory."},
		plan.ParamSchema{Name: "cache_age", Type: plan.Float, Added: true, Source: plan.SourceRule{FloatMin: &age},
			Doc: "The age in seconds beyond which what the engine has in memory is read again. The bound of the endpoint holds besides."},
	)
}

// recallOf returns what the engine keeps of the keys that a node reads, which begin with prefix, or nil. shape says what a read of a key
// means; "" stands for one that must not be kept.
func recallOf(c *task.Ctx, shape, prefix string) *taskrun.Recall {
	p := &c.Node.Params
	if tasks.Env(c).Tables == nil || shape == "" || p.Bool("fresh") {
		return nil
	}
	return tasks.Recall(c, c.Node.Endpoint, shape, prefix, time.Duration(p.Float("cache_age")*float64(time.Second)))
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

// findKeys hands what the engine has in memory of each of n keys to found, up to its first error. key appends the text of key i to dst.
func findKeys(recall *taskrun.Recall, n int, key func(dst []byte, i int) []byte, found func(i int, value []byte, ok bool) error) error {
	for from := 0; from < n; from += taskrun.LookMax {
		chunk := min(n-from, taskrun.LookMax)
		recall.Look(chunk, func(dst []byte, i int) []byte { return key(dst, from+i) })
		for i := range chunk {
			value, ok := recall.Found(i)
			if err := found(from+i, value, ok); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyReads is how a node reads many keys, by a command each.
type keyReads interface {
	// key appends the text of key k.
	key(dst []byte, k int) []byte
	// ask appends the command that reads key k.
	ask(b *resp.Batch, k int)
	// encode appends what a reply says. It returns false if the reply is of a wrong kind.
	encode(dst []byte, reply resp.Reply) (_ []byte, ok bool)
	// refuse takes such a reply to the command for key k.
	refuse(reply resp.Reply, k int) error
	// take takes what encode has written.
	take(values *keptValues) error
}

// keptValues are the values of several keys, in their order. Only the body uses it.
type keptValues struct {
	bytes []byte
	from  int        // the first key
	spans []keptSpan // by key, from that on
}

// keptSpan says where a value is in the bytes of a keptValues.
type keptSpan struct {
	from, to int
	refused  bool // there is none
}

// add adds a value that ends the bytes.
func (v *keptValues) add(i, from int) { v.spans[i] = keptSpan{from: from, to: len(v.bytes)} }

// all yields the values by their keys, without those of keys that were refused.
func (v *keptValues) all(yield func(key int, value []byte) bool) {
	for i, s := range v.spans {
		if !s.refused && !yield(v.from+i, v.bytes[s.from:s.to]) {
			return
		}
	}
}

// recallKeys reads keys from to to-1: those that the engine has in memory from there, and the others by commands, in b, which is empty. Without a command it
// waits for nothing, unless keys came before: others get their turns in between.
func recallKeys(c *task.Ctx, redis task.Redis, recall *taskrun.Recall, r keyReads, b *resp.Batch, from, to int) error {
	v := keptValues{from: from, spans: make([]keptSpan, to-from)}
	var misses []int
	var key []byte
	_ = findKeys(recall, to-from, func(dst []byte, i int) []byte { return r.key(dst, from+i) }, func(i int, value []byte, ok bool) error {
		if ok {
			start := len(v.bytes)
			v.bytes = append(v.bytes, value...)
			v.add(i, start)
		} else {
			misses = append(misses, i)
			r.ask(b, from+i)
		}
		return nil
	})
	if len(misses) > 0 {
		recall.Sending()
	} else if from > 0 {
		if err := c.Sleep(time.Nanosecond); err != nil {
			return err
		}
	}
	parts := redis.Parts(b)
	for parts.Next() {
		replies := parts.Replies()
		for k := range replies.Len() {
			i, start, ok := misses[parts.From()+k], len(v.bytes), false
			if v.bytes, ok = r.encode(v.bytes, replies.At(k)); !ok {
				v.spans[i].refused = true
				if err := r.refuse(replies.At(k), from+i); err != nil {
					return err
				}
				continue
			}
			v.add(i, start)
			key = r.key(key[:0], from+i)
			recall.Put(key, v.bytes[start:])
		}
	}
	if err := parts.Err(); err != nil {
		return err
	}
	return r.take(&v)
}
