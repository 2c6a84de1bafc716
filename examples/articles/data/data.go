// Package data, which is not covered by the compatibility promise, makes the data of the example articles:
// articles and the inboxes of users.
package data

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/devredis"
)

// A Size says how much data there is. Immutable.
type Size struct{ Articles, Users int }

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

// Topics returns the topics of articles.
func Topics() []string { return slices.Clone(topics) }

// Fill writes the data into the Redis that server names, "host:port" or a URL. It replaces the keys of the same name.
func Fill(ctx context.Context, server string, s Size, now time.Time) error {
	return devredis.Refill(ctx, server, func(write func(command ...string) error) error {
		for id := 1; id <= s.Articles; id++ {
			a := Make(id, now)
			if err := write(a.command()...); err != nil {
				return err
			}
		}
		for user := 1; user <= s.Users; user++ {
			if err := write(InboxCommand(user, s, now)...); err != nil {
				return err
			}
		}
		return nil
	})
}

// An Article is one hash of Redis. Immutable.
type Article struct {
	ID           int
	Title, Topic string
	Author, Lang string
	Tags         []string
	Created      time.Time
	Likes, Views int
	Premium      bool
}

// Make returns the article of that id, the same one each time but for its creation, which counts back from now.
func Make(id int, now time.Time) Article {
	r := rand.New(rand.NewPCG(1, uint64(id)))
	topic := pick(r, topics)
	a := Article{
		ID: id, Topic: topic, Author: pick(r, authors), Lang: pick(r, languages), Premium: r.IntN(10) == 0,
		Title: fmt.Sprintf("%s %s %s (%d)", pick(r, subjects[topic]), pick(r, deeds), pick(r, objects), id),
	}
	a.Created = now.Add(-time.Duration(r.Float64() * r.Float64() * float64(oldest)))
	a.Likes = int(r.ExpFloat64() * 40)
	a.Views = a.Likes*8 + r.IntN(400)
	for _, tag := range []string{"long-read", "interview", "local"} {
		if r.IntN(4) == 0 {
			a.Tags = append(a.Tags, tag)
		}
	}
	return a
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// key is the key of the hash.
func (a *Article) key() string { return "article:" + strconv.Itoa(a.ID) }

// command returns the command that stores the article. Some articles have no likes yet, so the field is missing.
func (a *Article) command() []string {
	args := []string{
		"HSET", a.key(), "title", a.Title, "topic", a.Topic, "author", a.Author, "lang", a.Lang,
		"c_ts", strconv.FormatInt(a.Created.Unix(), 10), "views", strconv.Itoa(a.Views),
		"tags", strings.Join(a.Tags, ","), "premium", strconv.FormatBool(a.Premium),
	}
	if a.Likes > 0 {
		args = append(args, "likes", strconv.Itoa(a.Likes))
	}
	return args
}

// inboxKey is the key of the articles that wait for a user.
func inboxKey(user int) string { return "inbox:" + strconv.Itoa(user) }

// InboxCommand returns the command that stores the inbox of a user: articles with the instants of their creation.
func InboxCommand(user int, s Size, now time.Time) []string {
	r := rand.New(rand.NewPCG(2, uint64(user)))
	args := []string{"ZADD", inboxKey(user)}
	drawn := make(map[int]bool)
	for len(drawn) < min(inboxArticles, s.Articles) {
		id := 1 + r.IntN(s.Articles)
		if drawn[id] {
			continue
		}
		drawn[id] = true
		a := Make(id, now)
		args = append(args, strconv.FormatInt(a.Created.Unix(), 10), strconv.Itoa(a.ID))
	}
	return args
}
