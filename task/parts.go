package task

import "github.com/rankd/rankd/resp"

// PartCommands is the most commands that a body should put into one batch: encoding more keeps the loop busy for over
// 0.1 ms.
const PartCommands = 4096

// Parts hands the replies to a batch to a body, part by part:
//
//	parts := redis.Parts(b)
//	for parts.Next() {
//		for i, reply := range parts.Replies().All() {
//			… // the answer to command parts.From()+i
//		}
//	}
//	if err := parts.Err(); err != nil {
//
// A body with many commands or long replies should use Parts: it holds few replies at a time, and other requests get
// their turns in between. Only the body uses it.
type Parts struct {
	redis   Redis
	left    int // replies still to come
	from    int
	replies resp.Replies
	err     error
}

// Parts sends all commands of b at once, as Send does, and returns their replies part by part.
func (r Redis) Parts(b *resp.Batch) Parts {
	p := Parts{redis: r, left: b.Len()}
	if p.left > 0 {
		p.err = r.waiter.Begin(r.endpoint, b)
	}
	return p
}

// Next waits for the next part and reports whether there is one. Each reply comes once, in
// order. The views of the part before become invalid.
func (p *Parts) Next() bool {
	if p.left == 0 || p.err != nil {
		return false
	}
	p.from, p.replies, p.err = p.redis.waiter.Next()
	p.left -= p.replies.Len()
	return p.replies.Len() > 0 && p.err == nil
}

// From returns the number of the command that the first reply of the part answers.
func (p *Parts) From() int { return p.from }

// Replies returns the part: views, valid until the next wait. Error replies are among them.
func (p *Parts) Replies() resp.Replies { return p.replies }

// Err returns why the batch as a whole has failed, an error of class ErrRedis, or nil.
func (p *Parts) Err() error {
	if p.err == nil {
		return nil
	}
	return p.redis.wrap(p.err)
}
