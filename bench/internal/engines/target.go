package engines

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
)

// Target is an engine that runs its own plan for users. It closes the engine. Any goroutine.
type Target struct {
	engine  *rankd.Engine
	request rankd.Request   // of each user
	json    bool            // requests are parsed from JSON, and answers written as JSON
	users   *userName       // of users whose ids are strings; nil: they are integers
	asked   []rankd.Request // that users ask with, in place of request; nil: users have nothing but their ids
	docs    [][]byte        // of asked
}

// userName is what stands before and after the integer of a user in an id that is a string. Immutable.
type userName struct{ before, after string }

func (n *userName) of(user int64) string { return n.before + strconv.FormatInt(user, 10) + n.after }

// Open opens an engine and makes a target of it. The options choose the plan.
func Open(o rankd.Options) (*Target, error) {
	e, err := rankd.Open(o)
	if err != nil {
		return nil, err
	}
	return NewTarget(e), nil
}

// NewTarget makes a target of an engine that has a plan of its own.
func NewTarget(e *rankd.Engine) *Target {
	t := &Target{engine: e}
	if e.Registry().User().TextIDs() {
		t.users = new(userName)
	}
	return t
}

// SetUserName says of what text the ids of users are made, if they are strings: see load.Users. Without it they are the digits of the
// integers. It must come before the first client.
func (t *Target) SetUserName(name string) error {
	if t.users == nil {
		return fmt.Errorf("the ids of users are integers in %s, not strings such as %s", t.engine.Registry().Name(), strings.Replace(name, "{}", "1", 1))
	}
	before, after, _ := strings.Cut(name, "{}")
	t.users = &userName{before, after}
	return nil
}

// SetContext gives all requests the same context, JSON as in a request. It must come before the first client.
func (t *Target) SetContext(json string) (err error) {
	t.request, err = t.engine.ParseRequest(fmt.Appendf(nil, `{"user_id": "1", "request_id": "", "context": %s}`, json))
	return err
}

// SetRequests has user k ask with document k-1, a request as on stdin, which has its own context. It must come before the first client. The error
// names the line.
func (t *Target) SetRequests(documents [][]byte) error {
	info, err := t.engine.PlanInfo("")
	if err != nil {
		return err
	}
	t.asked, t.docs = make([]rankd.Request, len(documents)), documents
	for i, doc := range documents {
		r, err := t.engine.ParseRequest(doc)
		switch {
		case err != nil:
			return fmt.Errorf("line %d: %w", i+1, err)
		case r.Plan != "" && r.Plan != info.Name:
			return fmt.Errorf("line %d: the request is for the plan %s, and %s is measured", i+1, errtext.Quote(r.Plan), info.Name)
		}
		r.Plan = ""
		t.asked[i] = r
	}
	return nil
}

// PassJSON has each request parsed from JSON, and each answer written as JSON, as rankd does for its users. It
// must come before the first client.
func (t *Target) PassJSON() { t.json = true }

// NewClient implements load.Target.
func (t *Target) NewClient(answered func(err error)) load.Client {
	c := &client{Target: t, answered: answered}
	c.done = c.finished
	return c
}

// setUser sets the user of a request that is not JSON.
func (t *Target) setUser(r *rankd.Request, user int64) {
	switch {
	case t.asked != nil:
		r.UserID, r.UserIDText = t.asked[user-1].UserID, t.asked[user-1].UserIDText
	case t.users == nil:
		r.UserID = user
	default:
		r.UserIDText = t.users.of(user)
	}
}

// Close implements load.Target.
func (t *Target) Close() { _ = t.engine.Close() } // fails only inside a callback

// Traffic implements load.Counting: the sum over the endpoints.
func (t *Target) Traffic() load.Traffic {
	var sum load.Traffic
	m := t.engine.Metrics()
	for _, s := range m.Redis {
		sum.RoundTrips += s.RoundTrips
		sum.Asked += s.Asked
		sum.Commands += s.Commands
		sum.BytesSent += s.BytesSent
		sum.BytesReceived += s.BytesReceived
	}
	for _, s := range m.Caches {
		if s.Bytes == 0 { // The endpoint has no table.
			continue
		}
		if sum.Cache == nil {
			sum.Cache = new(load.Cache)
		}
		sum.Cache.Hits += s.Hits
		sum.Cache.Misses += s.Misses
		sum.Cache.Invalidated += s.Invalidated
		sum.Cache.Evicted += s.Evicted
		sum.Cache.Bytes += uint64(s.Bytes)
		sum.Cache.HitAge += s.HitAge / 1e9
	}
	return sum
}

// client keeps its texts and the callback, so that sending allocates nothing of its own.
type client struct {
	*Target
	doc, text []byte // of the request and of its answer, if they are JSON
	answered  func(err error)
	done      func(*rankd.Answer, error)
}

// Send implements load.Client.
func (c *client) Send(user int64) {
	if !c.json {
		r := c.request
		if c.asked != nil {
			r = c.asked[user-1]
		} else {
			c.setUser(&r, user)
		}
		c.engine.Submit(context.Background(), r, c.done)
		return
	}
	if c.docs != nil {
		c.doc = append(c.doc[:0], c.docs[user-1]...)
	} else if c.users == nil {
		c.doc = fmt.Appendf(c.doc[:0], `{"user_id":%d}`, user)
	} else {
		c.doc = append(jsondoc.AppendString(append(c.doc[:0], `{"user_id":`...), c.users.of(user)), '}')
	}
	r, err := c.engine.ParseRequest(c.doc)
	if err != nil {
		go c.answered(err) // never inside Send
		return
	}
	c.engine.Submit(context.Background(), r, c.done)
}

func (c *client) finished(a *rankd.Answer, err error) {
	if c.json && err == nil {
		c.text = a.AppendJSON(c.text[:0], rankd.FormatFlat)
	}
	c.answered(err)
}

var _ load.Counting = (*Target)(nil)
