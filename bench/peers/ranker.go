package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

// Request asks for the candidates for one user. Immutable.
type Request struct {
	UserID int64

	// Now is when the request of feed arrived, in Unix seconds. Zero means now.
	Now float64
	Context
}

// Context is what requests for feed contain. Immutable.
type Context struct {
	Country       *string `json:"country"`
	Topics, Muted []string
}

// ParseContext reads the context of a request, JSON. An empty text is an empty context.
func ParseContext(text string) (c Context, err error) {
	if text == "" {
		return c, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Context{}, fmt.Errorf("the context of requests: %w", err)
	}
	return c, nil
}

// Candidate is one row of an answer. Immutable.
type Candidate struct {
	ID      int64
	Score   float64 // of feed
	Country Text    // of concat_plan
	Post    *Post   // of feed
}

// Plan answers requests. Any goroutine.
type Plan func(context.Context, Request) ([]Candidate, error)

// ErrUnknownPlan says that this package does not have a plan.
var ErrUnknownPlan = errors.New("no such plan here")

// Ranker answers requests from a store. Immutable once built.
type Ranker struct {
	store  Store
	fanout int // overrides that of concat_plan, unless it is 0

	batches batches
	posts   sync.Pool // of *posts
}

// NewRanker returns a ranker. A fanout other than 0 overrides that of every read of lists.
func NewRanker(store Store, fanout int) *Ranker {
	return &Ranker{store: store, fanout: fanout}
}

// Plan returns a plan by its name. The error is ErrUnknownPlan.
func (r *Ranker) Plan(name string) (Plan, error) {
	switch name {
	case "concat_plan":
		return r.concatPlan, nil
	case "feed":
		return r.feed, nil
	default:
		return nil, fmt.Errorf("%w: %q", ErrUnknownPlan, name)
	}
}

// concatPlan: the users followed, then those recommended; the first eight.
func (r *Ranker) concatPlan(ctx context.Context, req Request) ([]Candidate, error) {
	const count = 8
	branches, err := r.expandBoth(ctx, req, 4)
	if err != nil {
		return nil, err
	}
	answer := make([]Candidate, 0, min(count, len(branches[0].IDs)+len(branches[1].IDs)))
	for _, b := range branches {
		for i := 0; i < len(b.IDs) && len(answer) < count; i++ {
			answer = append(answer, Candidate{ID: b.IDs[i], Country: b.Countries[i]})
		}
	}
	return answer, nil
}

// viewer reads the user of the request.
func (r *Ranker) viewer(ctx context.Context, req Request) (Text, error) {
	users := []Users{{IDs: []int64{req.UserID}}}
	if err := r.readUsers(ctx, users); err != nil {
		return Text{}, err
	}
	return users[0].Countries[0], nil
}

// expandBoth reads the viewer, the lists of users followed and recommended, and
// those users, the followed first.
func (r *Ranker) expandBoth(ctx context.Context, req Request, fanout int) ([]Users, error) {
	if _, err := r.viewer(ctx, req); err != nil {
		return nil, err
	}
	viewer := []int64{req.UserID}
	lists := []Lists{
		{Prefix: "follow:", Of: viewer, Fanout: r.width(fanout)},
		{Prefix: "recommendation:", Of: viewer, Fanout: r.width(fanout)},
	}
	if err := r.readLists(ctx, lists); err != nil {
		return nil, err
	}
	users := []Users{{IDs: lists[0].IDs}, {IDs: lists[1].IDs}}
	return users, r.readUsers(ctx, users)
}

// readLists reads lists in one batch.
func (r *Ranker) readLists(ctx context.Context, lists []Lists) error {
	b := r.batches.get()
	defer r.batches.put(b)
	for i := range lists {
		l := &lists[i]
		stop := strconv.Itoa(l.Fanout - 1)
		args := []string{"0", stop}
		for _, id := range l.Of {
			b.add("LRANGE", l.Prefix, id, args...)
		}
	}
	r.store.Read(ctx, b)
	first := 0
	for i := range lists {
		l := &lists[i]
		var err error
		if l.IDs, err = b.ids(first, first+len(l.Of)); err != nil {
			return err
		}
		first += len(l.Of)
	}
	return nil
}

// readUsers reads users in one batch.
func (r *Ranker) readUsers(ctx context.Context, users []Users) error {
	b := r.batches.get()
	defer r.batches.put(b)
	for i := range users {
		for _, id := range users[i].IDs {
			b.add("HGETALL", userPrefix, id)
		}
	}
	r.store.Read(ctx, b)
	command := 0
	for i := range users {
		u := &users[i]
		u.Countries = make([]Text, len(u.IDs))
		for j := range u.Countries {
			fields, err := b.Reply(command)
			if err != nil {
				return err
			}
			u.Countries[j] = country(fields)
			command++
		}
	}
	return nil
}

// country finds the country in a reply to HGETALL: field, value, field, value.
func country(fields []Text) Text {
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i].Value == countryField {
			return fields[i+1]
		}
	}
	return Text{}
}

func (r *Ranker) width(fanout int) int {
	if r.fanout > 0 {
		return r.fanout
	}
	return fanout
}

// errNotFinite is the error where the engine also refuses a score.
var errNotFinite = errors.New("the score of some row is not finite")

func finite(scores []float64) error {
	for _, s := range scores {
		if math.IsInf(s, 0) || math.IsNaN(s) {
			return errNotFinite
		}
	}
	return nil
}
