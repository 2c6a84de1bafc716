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
	"time"

	"golang.org/x/sync/errgroup"
)

// Request asks for the candidates for one user. Immutable.
type Request struct {
	UserID                int64
	Weight                *float64 // overrides complex_dag's weight
	MediaAgePenaltyWeight *float64 // overrides reels_plan_a's weight

	// Now is when the request arrived, in Unix seconds, for feed and articles. Zero means now.
	Now float64
	Context
}

// Context is what requests for feed and articles contain. Immutable.
type Context struct {
	Country       *string  `json:"country"`
	Topics, Muted []string // of feed

	Topic, Lang *string // of articles
	Hour        *int64
	Seen        []int64
	Subscriber  bool
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
	Score   float64  // meaningful in the plans that compute one: complex_dag, reels_plan_a, feed, articles
	Country Text     // known only in the plans whose rows are users
	Post    *Post    // of feed
	Article *Article // of articles
}

// Plan answers requests. Any goroutine.
type Plan func(context.Context, Request) ([]Candidate, error)

// ErrUnknownPlan says that this package does not have a plan.
var ErrUnknownPlan = errors.New("no such plan here")

// Waves says how the reads of different branches of a plan leave within one wave.
type Waves uint8

// The ways.
const (
	Fused  Waves = iota // all in one batch, on the request's goroutine
	Groups              // a batch and a goroutine for each branch, joined by an errgroup
)

// Ranker answers requests from a store. Immutable once built.
type Ranker struct {
	store  Store
	waves  Waves
	fanout int // overrides the fanout of every plan; 0 keeps the plan's

	batches batches
	posts   sync.Pool // of *posts
}

// NewRanker returns a ranker. A fanout other than 0 overrides the fanout of every read of
// lists in every plan.
func NewRanker(store Store, waves Waves, fanout int) *Ranker {
	return &Ranker{store: store, waves: waves, fanout: fanout}
}

// Plan returns a plan by its name. The error is ErrUnknownPlan.
func (r *Ranker) Plan(name string) (Plan, error) {
	switch name {
	case "concat_plan":
		return r.concatPlan, nil
	case "complex_dag":
		return r.complexDAG, nil
	case "reels_plan_a":
		return r.reelsPlanA, nil
	case "regex_plan":
		return r.regexPlan, nil
	case "feed":
		return r.feed, nil
	case "articles":
		return r.articles, nil
	case "parallel_sleep_plan":
		return r.parallelSleepPlan, nil
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

// complexDAG: the media of the users followed and of those recommended, by weighted
// id; the best fifty.
func (r *Ranker) complexDAG(ctx context.Context, req Request) ([]Candidate, error) {
	const fanout, count = 100, 50
	branches, err := r.expandBoth(ctx, req, fanout)
	if err != nil {
		return nil, err
	}
	media := []Lists{
		{Prefix: "media:", Of: branches[0].IDs, Fanout: r.width(fanout)},
		{Prefix: "media:", Of: branches[1].IDs, Fanout: r.width(fanout)},
	}
	if err := r.readLists(ctx, media); err != nil {
		return nil, err
	}
	followed, recommended := media[0].IDs, media[1].IDs
	weight := orElse(req.Weight, 0.1)
	scores := make([]float64, 0, len(followed)+len(recommended))
	for _, ids := range [...][]int64{followed, recommended} {
		for _, id := range ids {
			scores = append(scores, float64(id)*weight)
		}
	}
	if err := finite(scores); err != nil {
		return nil, err
	}
	best := topK(scores, count)
	answer := make([]Candidate, len(best))
	for i, s := range best {
		if s.row < len(followed) {
			answer[i] = Candidate{ID: followed[s.row], Score: s.score}
		} else {
			answer[i] = Candidate{ID: recommended[s.row-len(followed)], Score: s.score}
		}
	}
	return answer, nil
}

// reelsPlanA: the users followed whose weighted id is at least 0.6; the first five.
func (r *Ranker) reelsPlanA(ctx context.Context, req Request) ([]Candidate, error) {
	const count = 5
	users, err := r.expandFollow(ctx, req, 10)
	if err != nil {
		return nil, err
	}
	weight := orElse(req.MediaAgePenaltyWeight, 0.2)
	scores := make([]float64, len(users.IDs))
	for i, id := range users.IDs {
		scores[i] = float64(id) * weight
	}
	if err := finite(scores); err != nil {
		return nil, err
	}
	answer := make([]Candidate, 0, min(count, len(users.IDs)))
	for i := 0; i < len(users.IDs) && len(answer) < count; i++ {
		if scores[i] >= 0.6 {
			answer = append(answer, Candidate{ID: users.IDs[i], Score: scores[i], Country: users.Countries[i]})
		}
	}
	return answer, nil
}

// regexPlan: the users followed whose country matches "US"; the first five. The
// pattern being a literal, a search for it is the same and cheaper.
func (r *Ranker) regexPlan(ctx context.Context, req Request) ([]Candidate, error) {
	const count = 5
	users, err := r.expandFollow(ctx, req, 10)
	if err != nil {
		return nil, err
	}
	answer := make([]Candidate, 0, min(count, len(users.IDs)))
	for i := 0; i < len(users.IDs) && len(answer) < count; i++ {
		if c := users.Countries[i]; c.Known && strings.Contains(c.Value, "US") {
			answer = append(answer, Candidate{ID: users.IDs[i], Country: c})
		}
	}
	return answer, nil
}

// parallelSleepPlan: the viewer, after each of two branches has slept.
func (r *Ranker) parallelSleepPlan(ctx context.Context, req Request) ([]Candidate, error) {
	const pause = 20 * time.Millisecond
	viewer, err := r.viewer(ctx, req)
	if err != nil {
		return nil, err
	}
	var g errgroup.Group
	g.Go(func() error { return sleep(ctx, pause) })
	err = sleep(ctx, pause)
	if other := g.Wait(); err == nil {
		err = other
	}
	if err != nil {
		return nil, err
	}
	c := Candidate{ID: req.UserID, Country: viewer}
	return []Candidate{c, c}, nil
}

// viewer reads the user of the request.
func (r *Ranker) viewer(ctx context.Context, req Request) (Text, error) {
	users := []Users{{IDs: []int64{req.UserID}}}
	if err := r.readUserBatch(ctx, users); err != nil {
		return Text{}, err
	}
	return users[0].Countries[0], nil
}

// expandFollow reads the viewer, the list of users followed, and those users.
func (r *Ranker) expandFollow(ctx context.Context, req Request, fanout int) (Users, error) {
	if _, err := r.viewer(ctx, req); err != nil {
		return Users{}, err
	}
	lists := []Lists{{Prefix: "follow:", Of: []int64{req.UserID}, Fanout: r.width(fanout)}}
	if err := r.readLists(ctx, lists); err != nil {
		return Users{}, err
	}
	users := []Users{{IDs: lists[0].IDs}}
	err := r.readUsers(ctx, users)
	return users[0], err
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

func (r *Ranker) readLists(ctx context.Context, lists []Lists) error {
	if r.waves == Fused || len(lists) == 1 {
		return r.readListBatch(ctx, lists)
	}
	return branch(lists, func(l []Lists) error { return r.readListBatch(ctx, l) })
}

// readListBatch reads lists in one batch.
func (r *Ranker) readListBatch(ctx context.Context, lists []Lists) error {
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

func (r *Ranker) readUsers(ctx context.Context, users []Users) error {
	if r.waves == Fused || len(users) == 1 {
		return r.readUserBatch(ctx, users)
	}
	return branch(users, func(u []Users) error { return r.readUserBatch(ctx, u) })
}

// readUserBatch reads users in one batch.
func (r *Ranker) readUserBatch(ctx context.Context, users []Users) error {
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

// branch reads each part of a wave on another goroutine, except the last part, which it reads
// on this goroutine.
//
// The group does not have a context. A cancellable context would cost each branch an
// allocation. It would also make rueidis select on two channels, where it can wait on one. It
// would only shorten a read of some microseconds after another read has failed.
func branch[T any](parts []T, read func([]T) error) error {
	var g errgroup.Group
	last := len(parts) - 1
	for i := range last {
		g.Go(func() error { return read(parts[i : i+1]) })
	}
	err := read(parts[last:])
	if other := g.Wait(); other != nil {
		return other
	}
	return err
}

func (r *Ranker) width(fanout int) int {
	if r.fanout > 0 {
		return r.fanout
	}
	return fanout
}

func orElse(override *float64, value float64) float64 {
	if override != nil {
		return *override
	}
	return value
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

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
