// Package data, which is not covered by the compatibility promise, makes the data of the example feed: posts
// of authors, and what belongs to each user.
package data

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/rankd/rankd/internal/devredis"
)

// A Size says how much data there is. Immutable.
type Size struct{ Posts, Users int }

// What belongs to each user, and to each post.
const (
	friendsEach = 30  // authors whom a user follows
	inboxEach   = 100 // posts that wait for a user
	likedEach   = 10
	seenEach    = 40
	similarEach = 10
	popularEach = 500 // posts in the list of a country
)

// oldest is the age of the oldest posts.
const oldest = 10 * 24 * time.Hour

var (
	topics    = []string{"food", "music", "news", "science", "sport", "travel"}
	countries = []string{"BR", "DE", "IN", "JP", "US"}
	subjects  = map[string][]string{
		"food":    {"A bakery", "The night market", "An old recipe", "The sour plum"},
		"music":   {"A street choir", "The lost tape", "The deaf drummer", "A small festival"},
		"news":    {"The new mayor", "A quiet strike", "The harbour", "An old law"},
		"science": {"A slow comet", "The oldest reef", "A tiny robot", "The warm winter"},
		"sport":   {"The underdog", "A young keeper", "The relay team", "A late goal"},
		"travel":  {"The night train", "A border river", "The mountain hut", "An empty beach"},
	}
	deeds = []string{"surprises", "divides", "delights", "returns to", "changes", "waits for"}
	goals = []string{"the city", "its rivals", "everybody", "the north", "a generation", "the experts"}
	given = []string{"Ada", "Ben", "Chen", "Dana", "Emil", "Flo", "Gia", "Hugo"}
	names = []string{"Berg", "Cole", "Du", "Eik", "Fara", "Gomez", "Hart", "Ito"}
)

// Topics returns the topics of posts.
func Topics() []string { return slices.Clone(topics) }

// Countries returns the countries that have popular posts.
func Countries() []string { return slices.Clone(countries) }

// Check returns an error if there are too few posts for every topic to have similar ones, or no users.
func (s Size) Check() error {
	if least := len(topics) * similarEach * 10; s.Posts < least || s.Users < 1 {
		return fmt.Errorf("--posts must be at least %d, and --users at least 1", least)
	}
	return nil
}

// Fill writes the data into the Redis that server names, "host:port" or a URL. It replaces the keys of the same name.
func Fill(ctx context.Context, server string, s Size, now time.Time) error {
	return devredis.Refill(ctx, server, New(s, now).EachCommand)
}

// A Post is one hash of Redis. Immutable.
type Post struct {
	ID, Author   int // ids
	Title, Topic string
	Created      time.Time
	Likes, Views int
}

// World is all the data. The same size gives the same data each time, but for the times, which count back from now. Immutable once made.
type World struct {
	Size
	Now      time.Time
	ByID     []Post           // posts by id, from 1; ByID[0] is none
	byAuthor map[int][]int    // posts of each author, newest first
	byTopic  map[string][]int // posts of each topic
}

// New makes a world.
func New(s Size, now time.Time) *World {
	w := &World{Size: s, Now: now, ByID: make([]Post, s.Posts+1), byAuthor: make(map[int][]int), byTopic: make(map[string][]int)}
	for id := 1; id <= s.Posts; id++ {
		p := w.post(id)
		w.ByID[id] = p
		w.byAuthor[p.Author] = append(w.byAuthor[p.Author], id)
		w.byTopic[p.Topic] = append(w.byTopic[p.Topic], id)
	}
	for _, ids := range w.byAuthor {
		slices.SortFunc(ids, func(a, b int) int { return w.ByID[b].Created.Compare(w.ByID[a].Created) })
	}
	return w
}

// post makes the post of that id.
func (w *World) post(id int) Post {
	r := rand.New(rand.NewPCG(1, uint64(id)))
	topic := pick(r, topics)
	p := Post{ID: id, Author: 1 + r.IntN(w.Users), Topic: topic}
	p.Title = fmt.Sprintf("%s %s %s (%d)", pick(r, subjects[topic]), pick(r, deeds), pick(r, goals), id)
	p.Created = w.Now.Add(-time.Duration(r.Float64() * r.Float64() * float64(oldest)))
	p.Views = 20 + int(r.ExpFloat64()*800)
	p.Likes = int(float64(p.Views) * r.Float64() * r.Float64() / 2)
	return p
}

// AuthorName returns the name of a user as an author.
func AuthorName(user int) string {
	return fmt.Sprintf("%s %s %d", given[user%len(given)], names[user/len(given)%len(names)], user)
}

// EachCommand calls write with the commands that fill an empty Redis. It ends with the first error.
func (w *World) EachCommand(write func(command ...string) error) error {
	for id := 1; id <= w.Size.Posts; id++ {
		p := &w.ByID[id]
		if err := write("HSET", "post:"+strconv.Itoa(id), "title", p.Title, "author_id", strconv.Itoa(p.Author), "author", AuthorName(p.Author),
			"topic", p.Topic, "c_ts", unix(p.Created), "likes", strconv.Itoa(p.Likes), "views", strconv.Itoa(p.Views)); err != nil {
			return err
		}
		if err := write(push("similar:"+strconv.Itoa(id), w.Similar(p))...); err != nil {
			return err
		}
	}
	for i, country := range countries {
		if err := write(w.Popular(i, country)...); err != nil {
			return err
		}
	}
	for user := 1; user <= w.Users; user++ {
		for _, command := range w.OfUser(user) {
			if err := write(command...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Similar returns posts of the topic of p.
func (w *World) Similar(p *Post) []int {
	r := rand.New(rand.NewPCG(2, uint64(p.ID)))
	same := w.byTopic[p.Topic]
	ids := make([]int, similarEach)
	for i := range ids {
		ids[i] = same[r.IntN(len(same))]
	}
	return ids
}

// Popular returns the command for the popular posts of a country: those with the most likes of every fifth post, the best first.
func (w *World) Popular(i int, country string) []string {
	var ids []int
	for id := i + 1; id <= w.Size.Posts; id += len(countries) {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int) int { return cmp.Compare(w.ByID[b].Likes, w.ByID[a].Likes) })
	command := []string{"ZADD", "popular:" + country}
	for _, id := range ids[:min(len(ids), popularEach)] {
		command = append(command, strconv.Itoa(w.ByID[id].Likes), strconv.Itoa(id))
	}
	return command
}

// OfUser returns the commands for a user: friends, inbox, liked and seen.
func (w *World) OfUser(user int) [][]string {
	r := rand.New(rand.NewPCG(3, uint64(user)))
	key := strconv.Itoa(user)
	friends, inbox := []string{"ZADD", "friends:" + key}, []int{}
	for range friendsEach {
		author := 1 + r.IntN(w.Users)
		closeness := math.Round(r.Float64()*100) / 100
		friends = append(friends, strconv.FormatFloat(closeness, 'f', -1, 64), strconv.Itoa(author))
		inbox = append(inbox, w.byAuthor[author]...)
	}
	slices.SortFunc(inbox, func(a, b int) int { return w.ByID[b].Created.Compare(w.ByID[a].Created) })
	inbox = slices.Compact(inbox)
	inbox = inbox[:min(len(inbox), inboxEach)]

	favourite := w.byTopic[pick(r, topics)]
	liked := make([]int, likedEach)
	for i := range liked {
		liked[i] = pick(r, favourite)
	}
	seen := []string{"ZADD", "seen:" + key}
	for range seenEach {
		id := 1 + r.IntN(w.Size.Posts)
		if len(inbox) > 0 && r.IntN(2) == 0 {
			id = pick(r, inbox)
		}
		seen = append(seen, unix(w.Now.Add(-time.Duration(r.Float64()*float64(oldest)))), strconv.Itoa(id))
	}
	commands := [][]string{friends, push("liked:"+key, liked), seen}
	if len(inbox) > 0 {
		commands = append(commands, push("inbox:"+key, inbox))
	}
	return commands
}

// push returns the command for a list of ids.
func push(key string, ids []int) []string {
	command := []string{"RPUSH", key}
	for _, id := range ids {
		command = append(command, strconv.Itoa(id))
	}
	return command
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }
