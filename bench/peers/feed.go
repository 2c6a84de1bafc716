package peers

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"
)

// Source is a set of the sources of a post.
type Source uint8

// The sources.
const (
	Follow Source = 1 << iota
	Popular
	Similar
)

// Post is a candidate of the feed. Immutable in an answer.
type Post struct {
	ID, AuthorID         int64
	Title, Author, Topic string
	CreatedAt            int64 // Unix seconds
	Likes, Views         int64
	Sources              Source
	SourceRank           int64   // within the first of its sources that counts, from 1
	Popularity           float64 // with Popular
	PopularRank          float64 // with Popular: 1 / (60 + rank)
	Closeness            float64 // with Close
	Close                bool    // the reader follows the author
	Score, Final         float64
}

// What the feed reads, and how much of it.
var (
	firstTen     = []string{"0", "9"}
	firstHundred = []string{"0", "99"}
	bestHundred  = []string{"0", "99", "WITHSCORES"}
	postFields   = []string{"title", "author_id", "author", "topic", "c_ts", "likes", "views"}
)

const (
	feedDay     = 24 * 3600.0 // seconds
	feedScored  = 100
	feedAnswer  = 20
	authorApart = 5 // an author has one of so many neighbours
)

// posts is the reusable memory of a feed. One goroutine at a time.
type posts struct {
	rows   []Post
	byID   index
	fields []float64 // scores
	order  []int32
	close  []friend
	friend index
}

type friend struct {
	author    int64
	closeness float64
}

// feed is examples/feed. It takes posts of three sources without duplicates, without those seen
// in the last week and without muted authors. It keeps the best hundred by boosted score, and
// moves apart posts by the same author. Then it takes two posts of the sources that the user
// follows, one from elsewhere, and so on.
func (r *Ranker) feed(ctx context.Context, req Request) ([]Candidate, error) {
	p, ok := r.posts.Get().(*posts)
	if !ok {
		p = new(posts)
	}
	defer r.posts.Put(p)
	now := req.Now
	if now == 0 {
		now = seconds(time.Now())
	}
	b := r.batches.get()
	defer r.batches.put(b)
	if err := r.gather(ctx, req, b, p); err != nil {
		return nil, err
	}
	b.reset()
	r.dropSeen(ctx, req.UserID, now-7*feedDay, b, p)
	b.reset()
	if err := r.fillIn(ctx, req.Muted, b, p); err != nil {
		return nil, err
	}
	for i := range p.rows {
		row := &p.rows[i]
		if at := p.friend.find(row.AuthorID); at >= 0 {
			row.Closeness, row.Close = p.close[at].closeness, true
		}
		row.Score = row.score(now)
		p.fields = append(p.fields, row.Score)
	}
	if err := finite(p.fields); err != nil {
		return nil, err
	}
	best := topK(p.fields, feedScored)
	for i := range best {
		row := &p.rows[best[i].row]
		row.Final = row.Score
		if slices.Contains(req.Topics, row.Topic) {
			row.Final *= 1.5
		}
		if row.Sources&(Follow|Popular) == Follow|Popular {
			row.Final *= 1.2
		}
	}
	slices.SortStableFunc(best, func(a, b scored) int { return cmp.Compare(p.rows[b.row].Final, p.rows[a.row].Final) })
	return p.blend(best), nil
}

// score is the plan's formula. Its conversions keep the compiler from fusing operations, which
// would change the last digit.
func (p *Post) score(now float64) float64 {
	quality := (float64(p.Likes) + 2) / (float64(p.Views) + 50)
	score := float64(float64(quality*decay(now-float64(p.CreatedAt), feedDay)) * (1 + p.Closeness))
	return score + p.PopularRank
}

// gather reads the sources and the friends, and makes rows without duplicates. A popular post
// has the place and the rank that it has among the popular posts. Only the inbox must answer.
func (r *Ranker) gather(ctx context.Context, req Request, b *Batch, p *posts) error {
	b.add("LRANGE", "inbox:", req.UserID, firstHundred...)
	b.add("LRANGE", "liked:", req.UserID, firstTen...)
	b.add("ZREVRANGE", "friends:", req.UserID, bestHundred...)
	if req.Country != nil {
		b.addNamed("ZREVRANGE", "popular:"+*req.Country, bestHundred...)
	}
	r.store.Read(ctx, b)
	inbox, err := b.Reply(0)
	if err != nil {
		return err
	}
	p.reset()
	p.addAll(inbox, Follow, 0)
	if req.Country != nil {
		if popular, err := b.Reply(3); err == nil {
			p.addPopular(popular)
		}
	}
	if friends, err := b.Reply(2); err == nil {
		p.addFriends(friends)
	}
	if liked, err := b.Reply(1); err == nil && len(liked) > 0 {
		r.addSimilar(ctx, liked, p)
	}
	return nil
}

// addSimilar reads posts like those that the user liked. It adds none if a list fails.
func (r *Ranker) addSimilar(ctx context.Context, liked []Text, p *posts) {
	b := r.batches.get()
	defer r.batches.put(b)
	for _, entry := range liked {
		if id, ok := whole(entry); ok {
			b.add("LRANGE", "similar:", id, firstTen...)
		}
	}
	r.store.Read(ctx, b)
	for i := range b.len() {
		if _, err := b.Reply(i); err != nil {
			return
		}
	}
	rank := int64(0)
	for i := range b.len() {
		entries, _ := b.Reply(i)
		rank = p.addAll(entries, Similar, rank)
	}
}

// dropSeen drops the posts that the user has seen since that time. All posts stay if Redis
// fails.
func (r *Ranker) dropSeen(ctx context.Context, user int64, since float64, b *Batch, p *posts) {
	if len(p.rows) == 0 {
		return
	}
	b.addScores("seen:", user)
	for i := range p.rows {
		b.addMember(p.rows[i].ID)
	}
	r.store.Read(ctx, b)
	scores, err := b.Reply(0)
	if err != nil || len(scores) != len(p.rows) {
		return
	}
	kept := p.rows[:0]
	for i := range scores {
		if scores[i].Known {
			if at, err := strconv.ParseFloat(scores[i].Value, 64); err == nil && at >= since {
				continue
			}
		}
		kept = append(kept, p.rows[i])
	}
	p.rows = kept
}

// fillIn reads the fields of the posts. It drops posts that lack one, and those of muted
// authors.
func (r *Ranker) fillIn(ctx context.Context, muted []string, b *Batch, p *posts) error {
	for i := range p.rows {
		b.addFields("post:", p.rows[i].ID, postFields)
	}
	kept := p.rows[:0]
	err := read(ctx, r.store, b, func(i int, reply []Text) {
		row := &p.rows[i]
		if row.decode(reply) && !slices.Contains(muted, row.Author) {
			if kept = kept[:len(kept)+1]; &kept[len(kept)-1] != row {
				kept[len(kept)-1] = *row
			}
		}
	})
	p.rows = kept
	return err
}

// decode reads the fields. It reports whether all are there and parse.
func (p *Post) decode(fields []Text) (ok bool) {
	if len(fields) != len(postFields) || !fields[0].Known || !fields[2].Known || !fields[3].Known {
		return false
	}
	p.Title, p.Author, p.Topic = fields[0].Value, fields[2].Value, fields[3].Value
	for i, to := range [...]*int64{1: &p.AuthorID, 4: &p.CreatedAt, 5: &p.Likes, 6: &p.Views} {
		if to == nil {
			continue
		}
		if *to, ok = whole(fields[i]); !ok {
			return false
		}
	}
	return true
}

// whole reads an integer.
func whole(t Text) (int64, bool) {
	if !t.Known || t.Value == "" || t.Value[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(t.Value, 10, 64)
	return n, err == nil
}

func (p *posts) reset() {
	p.rows, p.fields, p.order, p.close = p.rows[:0], p.fields[:0], p.order[:0], p.close[:0]
	p.byID.reset()
	p.friend.reset()
}

// addAll adds the posts that entries name. The row of a post that already has one gets the
// source in addition. rank is the rank of the post before the first entry. addAll returns the
// rank of the last one.
func (p *posts) addAll(entries []Text, source Source, rank int64) int64 {
	for _, entry := range entries {
		id, ok := whole(entry)
		if !ok {
			continue
		}
		rank++
		if at := p.byID.put(id, len(p.rows)); at < len(p.rows) {
			p.rows[at].Sources |= source
		} else {
			p.rows = append(p.rows, Post{ID: id, Sources: source, SourceRank: rank})
		}
	}
	return rank
}

// addPopular adds posts with their popularity, the best first. Posts that are equally popular
// share the best of their ranks.
func (p *posts) addPopular(reply []Text) {
	followed := len(p.rows)
	rank, moved := 0, false
	for i := 0; i+1 < len(reply); i += 2 {
		id, ok := whole(reply[i])
		popularity, err := strconv.ParseFloat(reply[i+1].Value, 64)
		if !ok || err != nil {
			continue
		}
		place := len(p.rows) - followed
		if place == 0 || p.rows[len(p.rows)-1].Popularity != popularity {
			rank = place + 1
		}
		row := Post{ID: id, Sources: Popular, SourceRank: int64(place + 1), Popularity: popularity, PopularRank: 1 / (60 + float64(rank))}
		if at := p.byID.put(id, len(p.rows)); at < followed {
			row.Sources |= p.rows[at].Sources
			p.rows[at].Sources = 0 // its place is here
			p.byID.move(id, len(p.rows))
			moved = true
		}
		p.rows = append(p.rows, row)
	}
	if !moved {
		return
	}
	kept := p.rows[:0]
	for i := range p.rows {
		if p.rows[i].Sources != 0 {
			p.byID.move(p.rows[i].ID, len(kept))
			kept = append(kept, p.rows[i])
		}
	}
	p.rows = kept
}

// addFriends notes how close the user is to authors.
func (p *posts) addFriends(reply []Text) {
	for i := 0; i+1 < len(reply); i += 2 {
		author, ok := whole(reply[i])
		closeness, err := strconv.ParseFloat(reply[i+1].Value, 64)
		if ok && err == nil && p.friend.put(author, len(p.close)) == len(p.close) {
			p.close = append(p.close, friend{author, closeness})
		}
	}
}

// blend returns the answer from the best rows, in order. It takes no more of them than the answer needs.
func (p *posts) blend(best []scored) []Candidate {
	const waits = -1
	answer, shown := make([]Candidate, 0, feedAnswer), make([]Post, feedAnswer)
	var spread []int32 // the rows with authors apart, so far
	var next [2]int    // of spread: where to look for the next followed row, and the next other one
	spread, left := p.order, len(best)
	first := 0 // no row before it waits
	// take returns the next row, followed or other. It returns waits if there is none.
	take := func(followed bool) int32 {
		stream := 1
		if followed {
			stream = 0
		}
		for {
			for next[stream] < len(spread) {
				row := spread[next[stream]]
				next[stream]++
				if (p.rows[row].Sources&Follow != 0) == followed {
					return row
				}
			}
			if left == 0 {
				return waits
			}
			for best[first].row == waits {
				first++
			}
			at := first
			for i := first; i < len(best); i++ {
				if best[i].row != waits && p.apart(spread, p.rows[best[i].row].Author) {
					at = i
					break
				}
			}
			spread = append(spread, int32(best[at].row))
			best[at].row = waits
			left--
		}
	}
	for turn, ended := 0, 0; len(answer) < feedAnswer && ended < 2; turn++ {
		row := take(turn%3 != 2)
		if row == waits {
			if ended++; turn%3 == 0 { // the second turn of the followed is as empty as the first
				turn++
			}
			continue
		}
		ended = 0
		post := &shown[len(answer)]
		*post = p.rows[row]
		answer = append(answer, Candidate{ID: post.ID, Score: post.Final, Post: post})
	}
	p.order = spread
	return answer
}

// apart reports whether none of the last rows is the author's.
func (p *posts) apart(rows []int32, author string) bool {
	for _, row := range rows[max(0, len(rows)-authorApart+1):] {
		if p.rows[row].Author == author {
			return false
		}
	}
	return true
}
