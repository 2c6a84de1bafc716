// Articles is an example of features of one's own: articles in a Redis, columns of several types, a request with
// context, and a plan that decays by age. See README.md beside it.
//
//	articles fill --redis 127.0.0.1:6379     writes the data
//	articles rank --user 7 --topic science   ranks and prints titles; without --redis in a Redis inside the process
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/examples"
	"github.com/rankd/rankd/examples/articles/data"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:], time.Now()); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "articles:", err)
		}
		os.Exit(2)
	}
}

// run does what the arguments ask for.
func run(ctx context.Context, w io.Writer, args []string, now time.Time) error {
	if len(args) == 0 {
		return errors.New("say what to do: fill or rank")
	}
	flags := flag.NewFlagSet("articles "+args[0], flag.ContinueOnError)
	var s data.Size
	redis := flags.String("redis", "", "`address` of the Redis")
	flags.IntVar(&s.Articles, "articles", 100_000, "`number` of articles")
	flags.IntVar(&s.Users, "users", 10_000, "`number` of users")
	user := flags.Int64("user", 7, "rank for this `user`")
	topic := flags.String("topic", "", "`topic` of the page around the ranking: "+fmt.Sprint(data.Topics()))
	lang := flags.String("lang", "", "`language` of the reader: en, de or fr")
	hour := flags.Int("hour", now.Hour(), "`hour` of the day, from 0 to 23")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "fill":
		if *redis == "" {
			return errors.New("fill needs --redis")
		}
		if err := fill(ctx, *redis, s, now); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "wrote %d articles and the inboxes of %d users to %s\n", s.Articles, s.Users, *redis)
		return err
	case "rank":
		if *redis == "" {
			server, err := miniredis.Run()
			if err != nil {
				return err
			}
			defer server.Close()
			*redis = server.Addr()
			if err := fill(ctx, *redis, s, now); err != nil {
				return err
			}
		}
		request := map[string]any{"hour": *hour}
		if *topic != "" {
			request["topic"] = *topic
		}
		if *lang != "" {
			request["lang"] = *lang
		}
		return rank(ctx, w, *redis, *user, request, now)
	default:
		return fmt.Errorf("cannot %s: say fill or rank", args[0])
	}
}

// fill writes the data into a Redis.
func fill(ctx context.Context, redis string, s data.Size, now time.Time) error {
	if err := data.Fill(ctx, redis, s, now); err != nil {
		return fmt.Errorf("filling Redis at %s: %w", redis, err)
	}
	return nil
}

// rank ranks the inbox of a user and prints the best articles.
func rank(ctx context.Context, w io.Writer, redis string, user int64, request map[string]any, now time.Time) error {
	registry, err := examples.Registry("articles")
	if err != nil {
		return err
	}
	plans, err := examples.Plans("articles")
	if err != nil {
		return err
	}
	e, err := rankd.Open(rankd.Options{Redis: redis, Registry: registry, Plans: plans, Plan: "articles"})
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
