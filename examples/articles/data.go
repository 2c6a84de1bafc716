package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// A size says how much data there is.
type size struct{ articles, users int }

// inboxArticles is how many articles wait for each user.
const inboxArticles = 100

// oldest is the age of the oldest articles.
const oldest = 14 * 24 * time.Hour

var (
	topics    = []string{"politics", "sport", "science", "music", "food", "travel"}
	languages = []string{"en", "en", "en", "de", "fr"} // as often as they stand here
	subjects  = map[string][]string{
		"politics": {"A small party", "The new mayor", "Parliament", "An old coalition"},
		"sport":    {"The underdog", "A young keeper", "The relay team", "A veteran coach"},
		"science":  {"A quiet comet", "The oldest reef", "A new battery", "The smallest robot"},
		"music":    {"A street choir", "The lost tape", "A blind pianist", "The summer festival"},
		"food":     {"A village baker", "The honest soup", "A forgotten grain", "The night market"},
		"travel":   {"The slow train", "A harbour town", "The mountain hut", "A border river"},
	}
	deeds   = []string{"surprises", "divides", "delights", "returns to", "changes", "waits for"}
	objects = []string{"the city", "its rivals", "everybody", "the north", "a generation", "the experts"}
	authors = []string{"Ada Berg", "Ben Cole", "Chen Du", "Dana Eik", "Emil Fara", "Flo Gomez", "Gia Hart", "Hugo Ito"}
)

// An article is one hash of Redis.
type article struct {
	id           int
	title, topic string
	author, lang string
	tags         []string
	created      time.Time
	likes, views int
	premium      bool
}

// makeArticle returns the article of that id, the same one each time but for its creation, which counts back from now.
func makeArticle(id int, now time.Time) article {
	r := rand.New(rand.NewPCG(1, uint64(id)))
	topic := pick(r, topics)
	a := article{
		id: id, topic: topic, author: pick(r, authors), lang: pick(r, languages), premium: r.IntN(10) == 0,
		title: fmt.Sprintf("%s %s %s (%d)", pick(r, subjects[topic]), pick(r, deeds), pick(r, objects), id),
	}
	a.created = now.Add(-time.Duration(r.Float64() * r.Float64() * float64(oldest)))
	a.likes = int(r.ExpFloat64() * 40)
	a.views = a.likes*8 + r.IntN(400)
	for _, tag := range []string{"long-read", "interview", "local"} {
		if r.IntN(4) == 0 {
			a.tags = append(a.tags, tag)
		}
	}
	return a
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// key is the key of the hash.
func (a *article) key() string { return "article:" + strconv.Itoa(a.id) }

// command returns the command that stores the article. Some articles have no likes yet, so the field is missing.
func (a *article) command() []string {
	args := []string{
		"HSET", a.key(), "title", a.title, "topic", a.topic, "author", a.author, "lang", a.lang,
		"c_ts", strconv.FormatInt(a.created.Unix(), 10), "views", strconv.Itoa(a.views),
		"tags", strings.Join(a.tags, ","), "premium", strconv.FormatBool(a.premium),
	}
	if a.likes > 0 {
		args = append(args, "likes", strconv.Itoa(a.likes))
	}
	return args
}

// inboxKey is the key of the articles that wait for a user.
func inboxKey(user int) string { return "inbox:" + strconv.Itoa(user) }

// inboxCommand returns the command that stores the inbox of a user: articles with the instants of their creation.
func inboxCommand(user int, s size, now time.Time) []string {
	r := rand.New(rand.NewPCG(2, uint64(user)))
	args := []string{"ZADD", inboxKey(user)}
	drawn := make(map[int]bool)
	for len(drawn) < min(inboxArticles, s.articles) {
		id := 1 + r.IntN(s.articles)
		if drawn[id] {
			continue
		}
		drawn[id] = true
		a := makeArticle(id, now)
		args = append(args, strconv.FormatInt(a.created.Unix(), 10), strconv.Itoa(a.id))
	}
	return args
}
