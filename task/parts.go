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
	batch   *resp.Batch // whose replies come

	played error // behind the replies of a tape
	got    bool  // these
}

// Parts sends all commands of b at once, as Send does, and returns their replies part by part.
func (r Redis) Parts(b *resp.Batch) Parts {
	p := Parts{redis: r, left: b.Len()}
	switch {
	case p.left == 0:
	case r.tape != nil && r.tape.Plays:
		p.replies, p.played = r.play(b)
	default:
		p.batch = b
		r.tape.Call()
		p.fail(r.waiter.Begin(r.endpoint, b))
	}
	return p
}

// fail notes an error of the waiter; it may be nil.
func (p *Parts) fail(err error) {
	if err != nil {
		p.err = p.redis.tape.Fail(p.redis.wrap(err))
	}
}

// Next waits for the next part and reports whether there is one. Each reply comes once, in
// order. The views of the part before become invalid.
func (p *Parts) Next() bool {
	if p.left == 0 || p.err != nil {
		return false
	}
	t := p.redis.tape
	if t != nil && t.Plays {
		if p.from, p.left = 0, p.left-p.replies.Len(); p.replies.Len() == 0 || p.got {
			p.replies, p.err = resp.Replies{}, p.played
		}
		p.got = true
		return p.replies.Len() > 0
	}
	var err error
	p.from, p.replies, err = p.redis.waiter.Next()
	p.fail(err)
	if p.left -= p.replies.Len(); t != nil && err == nil && p.replies.Len() > 0 {
		t.Replied(p.replies, p.batch.Span(p.from, p.from+p.replies.Len()))
	}
	return p.replies.Len() > 0 && p.err == nil
}

// From returns the number of the command that the first reply of the part answers.
func (p *Parts) From() int { return p.from }

// Replies returns the part: views, valid until the next wait. Error replies are among them.
func (p *Parts) Replies() resp.Replies { return p.replies }

// Err returns why the batch as a whole has failed, an error of class ErrRedis, or nil.
func (p *Parts) Err() error { return p.err }
