package engines

import (
	"context"
	"fmt"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
)

// Target is an engine that runs its own plan for users. It closes the engine. Any goroutine.
type Target struct {
	engine  *rankd.Engine
	request rankd.Request // of each user
	json    bool          // requests are parsed from JSON, and answers written as JSON
}

// Open opens an engine and makes a target of it. The options choose the plan.
func Open(o rankd.Options) (*Target, error) {
	e, err := rankd.Open(o)
	if err != nil {
		return nil, err
	}
	return NewTarget(e), nil
}

// NewTarget makes a target of an engine that has a plan of its own.
func NewTarget(e *rankd.Engine) *Target { return &Target{engine: e} }

// SetContext gives all requests the same context, JSON as in a request. It must come before the first client.
func (t *Target) SetContext(json string) (err error) {
	t.request, err = t.engine.ParseRequest(fmt.Appendf(nil, `{"user_id": 1, "request_id": "", "context": %s}`, json))
	return err
}

// PassJSON has each request parsed from JSON, and each answer written as JSON, as rankd does for its users. It
// must come before the first client.
func (t *Target) PassJSON() { t.json = true }

// NewClient implements load.Target.
func (t *Target) NewClient(answered func(err error)) load.Client {
	if t.json {
		c := &jsonClient{engine: t.engine, answered: answered}
		c.done = c.finished
		return c
	}
	return &client{engine: t.engine, request: t.request, done: func(_ *rankd.Answer, err error) { answered(err) }}
}

// Close implements load.Target.
func (t *Target) Close() { _ = t.engine.Close() } // fails only inside a callback

// Traffic implements load.Counting: the sum over the endpoints.
func (t *Target) Traffic() load.Traffic {
	var sum load.Traffic
	for _, s := range t.engine.Metrics().Redis {
		sum.RoundTrips += s.RoundTrips
		sum.Asked += s.Asked
		sum.Commands += s.Commands
		sum.BytesSent += s.BytesSent
		sum.BytesReceived += s.BytesReceived
	}
	return sum
}

// client keeps the callback, so that sending allocates nothing of its own.
type client struct {
	engine  *rankd.Engine
	request rankd.Request
	done    func(*rankd.Answer, error)
}

// Send implements load.Client.
func (c *client) Send(user int64) {
	r := c.request
	r.UserID = user
	c.engine.Submit(context.Background(), r, c.done)
}

// jsonClient keeps its texts and the callback, for the same reason.
type jsonClient struct {
	engine    *rankd.Engine
	doc, text []byte // of the request, of its answer
	answered  func(err error)
	done      func(*rankd.Answer, error)
}

// Send implements load.Client.
func (c *jsonClient) Send(user int64) {
	c.doc = fmt.Appendf(c.doc[:0], `{"user_id":%d}`, user)
	r, err := c.engine.ParseRequest(c.doc)
	if err != nil {
		go c.answered(err) // never inside Send
		return
	}
	c.engine.Submit(context.Background(), r, c.done)
}

func (c *jsonClient) finished(a *rankd.Answer, err error) {
	if err == nil {
		c.text = a.AppendJSON(c.text[:0], rankd.FormatFlat)
	}
	c.answered(err)
}

var _ load.Counting = (*Target)(nil)
