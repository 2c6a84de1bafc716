package recorder

import (
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/trace/record"
)

// fill fills in what became of a request: its runs, and its answer or error.
func (d *digester) fill(r *record.Request, c *scheduler.Capture, result *scheduler.Result) {
	d.reset()
	r.AllRows, r.Degraded, r.Failure = c.AllRows, result.Degraded(), failure(result.Err)
	if result.Err == nil {
		r.Answer = d.answerOf(c, result)
	}
	for i := range c.Runs {
		r.Runs = append(r.Runs, d.runOf(&c.Runs[i]))
	}
}

// Fill fills in what became of a request: its runs, and its answer or error.
func Fill(r *record.Request, c *scheduler.Capture, result *scheduler.Result) {
	new(digester).fill(r, c, result)
}

// runOf returns the record of a run.
func (d *digester) runOf(c *scheduler.CapturedRun) record.Run {
	g := c.Graph
	run := record.Run{Plan: g.Name, Digest: g.Digest, Nodes: make([]record.Node, len(g.Nodes)), Failure: failure(c.Result.Err)}
	for i, n := range g.Nodes {
		run.Nodes[i] = d.nodeOf(n, c)
	}
	return run
}

// nodeOf returns the record of a node. The tape of one that the engine has ended may still be its body's.
func (d *digester) nodeOf(n *plan.Node, c *scheduler.CapturedRun) record.Node {
	was, t := &c.Nodes[n.Index], &c.Tapes[n.Index]
	r := record.Node{ID: n.ID, Op: n.Op, Failure: failure(was.Err)}
	switch {
	case was.Err != nil && (was.Stopped() || t.Stop != nil):
		r.End = record.Stopped
	case was.Err != nil:
		r.End = record.Failed
	case was.Ran:
		r.End = record.Ended
	}
	if r.End == record.Ended || r.End == record.Failed {
		r.Values, r.Asked, r.Outside = valuesOf(t), t.Asked(), t.Outside
		r.Cached, r.Age = was.Cached.Values, was.Cached.Age
	}
	if was.Ran {
		texts := c.Texts
		if !n.Entity.TextIDs() {
			texts = nil
		}
		r.Rows = d.rowsOf(was.Out, texts, c.Graph.Registry, false, append(was.Inputs, was.Refs...)...)
	}
	return r
}

// answerOf returns the record of an answer.
func (d *digester) answerOf(c *scheduler.Capture, result *scheduler.Result) *record.Answer {
	run := &c.Runs[len(c.Runs)-1]
	if result.FailedFallback() != nil { // The plan before it has answered.
		run = &c.Runs[0]
	}
	g := run.Graph
	a := &record.Answer{Plan: g.Name}
	texts := result.IDTexts()
	for i, out := range result.Outputs {
		var own *rowset.IDTexts
		if texts != nil {
			own = texts[i]
		}
		a.Outputs = append(a.Outputs, d.rowsOf(out, own, g.Registry, true))
	}
	return a
}

// valuesOf returns what a tape has.
func valuesOf(t *taskrun.Tape) []record.Value {
	if len(t.Values) == 0 {
		return nil
	}
	var all []record.Value
	var text []byte // of replies
	replies, bytes, errs := t.Replies.Replies(), t.Bytes, t.Errors
	next := 0
	for _, v := range t.Values {
		switch v.Kind {
		case taskrun.TapeReply:
			for range v.N {
				reply := replies.At(next)
				next++
				from := len(text)
				text = reply.Append(text)
				value := record.Value{Kind: record.Reply, Bytes: text[from:len(text):len(text)]}
				if reply.Kind() == resp.Error {
					value.Failure = lostReply(reply.Err())
				}
				all = append(all, value)
			}
		case taskrun.TapeBroken:
			all = append(all, record.Value{Kind: record.Broken, Failure: failure(errs[0])})
			errs = errs[1:]
		default:
			all = append(all, record.Value{Kind: record.Kind(v.Kind), Bytes: bytes[:v.N:v.N]})
			bytes = bytes[v.N:]
		}
	}
	return all
}

// lostReply returns what a record says of an error in place of a reply; nil: the server has sent it.
func lostReply(err error) *record.Failure {
	if _, sent := err.(*resp.ServerError); sent {
		return nil
	}
	return failure(err)
}
