package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// A size says how much data there is.
type size struct{ posts, users int }

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

// A post is one hash of Redis.
type post struct {
	id, author   int
	title, topic string
	created      time.Time
	likes, views int
}

// world is all the data. The same size gives the same world each time, but for the times, which count back from now.
type world struct {
	size
	now      time.Time
	posts    []post           // by id, from 1; posts[0] is none
	byAuthor map[int][]int    // posts of each author, newest first
	byTopic  map[string][]int // posts of each topic
}

func newWorld(s size, now time.Time) *world {
	w := &world{size: s, now: now, posts: make([]post, s.posts+1), byAuthor: make(map[int][]int), byTopic: make(map[string][]int)}
	for id := 1; id <= s.posts; id++ {
		p := w.post(id)
		w.posts[id] = p
		w.byAuthor[p.author] = append(w.byAuthor[p.author], id)
		w.byTopic[p.topic] = append(w.byTopic[p.topic], id)
	}
	for _, ids := range w.byAuthor {
		slices.SortFunc(ids, func(a, b int) int { return w.posts[b].created.Compare(w.posts[a].created) })
	}
	return w
}

// post makes the post of that id.
func (w *world) post(id int) post {
	r := rand.New(rand.NewPCG(1, uint64(id)))
	topic := pick(r, topics)
	p := post{id: id, author: 1 + r.IntN(w.users), topic: topic}
	p.title = fmt.Sprintf("%s %s %s (%d)", pick(r, subjects[topic]), pick(r, deeds), pick(r, goals), id)
	p.created = w.now.Add(-time.Duration(r.Float64() * r.Float64() * float64(oldest)))
	p.views = 20 + int(r.ExpFloat64()*800)
	p.likes = int(float64(p.views) * r.Float64() * r.Float64() / 2)
	return p
}

// authorName returns the name of a user as an author.
func authorName(user int) string {
	return fmt.Sprintf("%s %s %d", given[user%len(given)], names[user/len(given)%len(names)], user)
}

// eachCommand calls write with the commands that fill an empty Redis. It ends with the first error.
func (w *world) eachCommand(write func(command ...string) error) error {
	for id := 1; id <= w.size.posts; id++ {
		p := &w.posts[id]
		if err := write("HSET", "post:"+strconv.Itoa(id), "title", p.title, "author_id", strconv.Itoa(p.author), "author", authorName(p.author),
			"topic", p.topic, "c_ts", unix(p.created), "likes", strconv.Itoa(p.likes), "views", strconv.Itoa(p.views)); err != nil {
			return err
		}
		if err := write(push("similar:"+strconv.Itoa(id), w.similar(p))...); err != nil {
			return err
		}
	}
	for i, country := range countries {
		if err := write(w.popular(i, country)...); err != nil {
			return err
		}
	}
	for user := 1; user <= w.users; user++ {
		for _, command := range w.ofUser(user) {
			if err := write(command...); err != nil {
				return err
			}
		}
	}
	return nil
}

// similar returns posts of the topic of p.
func (w *world) similar(p *post) []int {
	r := rand.New(rand.NewPCG(2, uint64(p.id)))
	same := w.byTopic[p.topic]
	ids := make([]int, similarEach)
	for i := range ids {
		ids[i] = same[r.IntN(len(same))]
	}
	return ids
}

// popular returns the command for the popular posts of a country: those with the most likes of every fifth post, the best first.
func (w *world) popular(i int, country string) []string {
	var ids []int
	for id := i + 1; id <= w.size.posts; id += len(countries) {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int) int { return cmp.Compare(w.posts[b].likes, w.posts[a].likes) })
	command := []string{"ZADD", "popular:" + country}
	for _, id := range ids[:min(len(ids), popularEach)] {
		command = append(command, strconv.Itoa(w.posts[id].likes), strconv.Itoa(id))
	}
	return command
}

// ofUser returns the commands for a user: friends, inbox, liked and seen.
func (w *world) ofUser(user int) [][]string {
	r := rand.New(rand.NewPCG(3, uint64(user)))
	key := strconv.Itoa(user)
	friends, inbox := []string{"ZADD", "friends:" + key}, []int{}
	for range friendsEach {
		author := 1 + r.IntN(w.users)
		closeness := math.Round(r.Float64()*100) / 100
		friends = append(friends, strconv.FormatFloat(closeness, 'f', -1, 64), strconv.Itoa(author))
		inbox = append(inbox, w.byAuthor[author]...)
	}
	slices.SortFunc(inbox, func(a, b int) int { return w.posts[b].created.Compare(w.posts[a].created) })
	inbox = slices.Compact(inbox)
	inbox = inbox[:min(len(inbox), inboxEach)]

	favourite := w.byTopic[pick(r, topics)]
	liked := make([]int, likedEach)
	for i := range liked {
		liked[i] = pick(r, favourite)
	}
	seen := []string{"ZADD", "seen:" + key}
	for range seenEach {
		id := 1 + r.IntN(w.size.posts)
		if len(inbox) > 0 && r.IntN(2) == 0 {
			id = pick(r, inbox)
		}
		seen = append(seen, unix(w.now.Add(-time.Duration(r.Float64()*float64(oldest)))), strconv.Itoa(id))
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
