package main

import (
	"strconv"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// fans writes how many users follow each row's user into a float column.
func fans() task.Spec {
	return task.Spec{
		Op:  "shop::fans",
		Doc: "Writes how many users follow each row's user into a float column.",
		Params: []plan.ParamSchema{
			{Name: "endpoint", Type: plan.Endpoint, Required: true},
			{Name: "out_key", Type: plan.Key, Required: true, Source: plan.SourceRule{KeyTypes: []registry.Type{registry.Float}, Writes: true}},
		},
		Inputs: 1,
		Output: task.SameRows,
		Writes: task.KeyParams("out_key"),
		Place:  task.Waits,
		Ask: func(c *task.Ctx, r *task.Reads, _ int) error {
			if err := c.MakeRows(int64(c.Inputs[0].Batch.Len())); err != nil {
				return err
			}
			f := &fanRead{c: c, counts: make([]float64, c.Inputs[0].Len())}
			f.memo = r.Add(c, c.Node.Endpoint, &task.Recall{Shape: "LLEN", Prefix: "fans:"}, f)
			return nil
		},
		Make: func(c *task.Ctx, r *task.Reads) (rowset.RowSet, error) {
			counts := rowset.NewFloatBuilder(c.Node.Params.Key("out_key").ID, c.Inputs[0].Len())
			for _, n := range r.At(0).(*fanRead).counts {
				counts.Append(n)
			}
			return rowset.Scatter(c.Memory, c.Inputs[0], counts.Column()), nil
		},
	}
}

// fanRead reads the length of the list at fans:{id} for each row.
type fanRead struct {
	c      *task.Ctx
	counts []float64
	memo   *task.Memo // nil: nothing is kept
}

func (f *fanRead) Keys() int { return len(f.counts) }

func (f *fanRead) Batch(from int) (to int) { return min(len(f.counts), from+task.PartCommands) }

func (f *fanRead) Key(dst []byte, k int) []byte {
	return strconv.AppendInt(append(dst, "fans:"...), f.c.Inputs[0].ID(k), 10)
}

func (f *fanRead) Ask(b *resp.Batch, from, to int) {
	for k := from; k < to; k++ {
		b.Begin(2)
		b.ArgString("LLEN")
		b.ArgKey("fans:", f.c.Inputs[0].ID(k))
	}
}

func (f *fanRead) Take(replies resp.Replies, at, to, k int) error {
	redis := f.c.Redis(f.c.Node.Endpoint)
	for ; at < to; at, k = at+1, k+1 {
		reply := replies.At(at)
		if err := redis.CheckKind(reply, resp.Integer, "LLEN", "fans:", f.c.Inputs[0].ID(k)); err != nil {
			return err
		}
		if f.counts[k] = float64(reply.Int()); f.memo != nil {
			f.memo.Bytes = strconv.AppendInt(f.memo.Bytes, reply.Int(), 10)
			f.memo.Keep()
		}
	}
	return nil
}

func (f *fanRead) Recall(value []byte, k int) (err error) {
	f.counts[k], err = strconv.ParseFloat(string(value), 64)
	return err
}
