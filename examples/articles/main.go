// Articles is an example of features of one's own: articles in a Redis, columns of several types, a request with
// context, and a plan that decays by age. See README.md beside it.
//
//	articles fill --redis 127.0.0.1:6379     writes the data
//	articles rank --user 7 --topic science   ranks and prints titles; without --redis in a Redis inside the process
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/examples"
	"github.com/rankd/rankd/examples/articles/data"
)

func main() { program().Main() }

// program returns the command line.
func program() *examples.Program {
	var s data.Size
	var user int64
	var topic, lang string
	var hour int
	return &examples.Program{
		Name: "articles", Verb: "rank",
		Flags: func(f *flag.FlagSet, now time.Time) {
			f.IntVar(&s.Articles, "articles", 100_000, "`number` of articles")
			f.IntVar(&s.Users, "users", 10_000, "`number` of users")
			f.Int64Var(&user, "user", 7, "rank for this `user`")
			f.StringVar(&topic, "topic", "", "`topic` of the page around the ranking: "+fmt.Sprint(data.Topics()))
			f.StringVar(&lang, "lang", "", "`language` of the reader: en, de or fr")
			f.IntVar(&hour, "hour", now.Hour(), "`hour` of the day, from 0 to 23")
		},
		Fill: func(ctx context.Context, redis string, now time.Time) error { return data.Fill(ctx, redis, s, now) },
		Data: func() string { return fmt.Sprintf("%d articles and the inboxes of %d users", s.Articles, s.Users) },
		Do: func(ctx context.Context, w io.Writer, redis string, now time.Time) error {
			request := map[string]any{"hour": hour}
			if topic != "" {
				request["topic"] = topic
			}
			if lang != "" {
				request["lang"] = lang
			}
			return rank(ctx, w, redis, user, request, now)
		},
	}
}

// rank ranks the inbox of a user and prints the best articles.
func rank(ctx context.Context, w io.Writer, redis string, user int64, request map[string]any, now time.Time) error {
	o, err := examples.Options("articles")
	if err != nil {
		return err
	}
	o.Redis = redis
	e, err := rankd.Open(o)
	if err != nil {
		return err
	}
	defer e.Close()
	answer, err := e.Rank(ctx, rankd.Request{UserID: user, Context: request})
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "SCORE\tLIKES\tAGE\t  TITLE")
	for c := range answer.Candidates() {
		score, _ := c.Float("score")
		likes, _ := c.Int("likes")
		created, _ := c.Int("created_at")
		title, _ := c.String("title")
		age := now.Sub(time.Unix(created, 0)).Round(time.Hour)
		fmt.Fprintf(table, "%.3f\t%d\t%.0f h\t  %s\n", score, likes, age.Hours(), title)
	}
	return table.Flush()
}
