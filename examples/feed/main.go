// Feed is an example of a feed with several sources: posts of authors whom a user follows, popular ones, and ones like those
// that the user liked. The plan drops duplicates and posts that the user has seen, scores, boosts, diversifies and blends.
// See README.md beside it.
//
//	feed fill --redis 127.0.0.1:6379            writes the data
//	feed rank --redis 127.0.0.1:6379 --user 7   ranks and prints titles; without --redis in a Redis inside the process
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/examples"
	"github.com/rankd/rankd/examples/feed/data"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:], time.Now()); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "feed:", err)
		}
		os.Exit(2)
	}
}

// run does what the arguments ask for.
func run(ctx context.Context, w io.Writer, args []string, now time.Time) error {
	if len(args) == 0 {
		return errors.New("say what to do: fill or rank")
	}
	flags := flag.NewFlagSet("feed "+args[0], flag.ContinueOnError)
	var s data.Size
	redis := flags.String("redis", "", "`address` of the Redis")
	flags.IntVar(&s.Posts, "posts", 100_000, "`number` of posts")
	flags.IntVar(&s.Users, "users", 10_000, "`number` of users")
	user := flags.Int64("user", 7, "rank for this `user`")
	country := flags.String("country", "DE", "`country` of the user: "+strings.Join(data.Countries(), ", "))
	chosen := flags.String("topics", "", "chosen `topics`, separated by commas: "+strings.Join(data.Topics(), ","))
	muted := flags.String("muted", "", "`names` of muted authors, separated by commas")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if err := s.Check(); err != nil {
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
		_, err := fmt.Fprintf(w, "wrote %d posts and %d users to %s\n", s.Posts, s.Users, *redis)
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
		e, err := open(rankd.Options{Redis: *redis})
		if err != nil {
			return err
		}
		defer e.Close()
		answer, err := e.Rank(ctx, rankd.Request{UserID: *user, Context: map[string]any{
			"country": *country, "topics": listed(*chosen), "muted": listed(*muted)}})
		if err != nil {
			return err
		}
		return show(w, answer, now)
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

// listed returns the parts of a text between commas.
func listed(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, ",")
}

// open opens an engine with the registry and the plan of the feed.
func open(o rankd.Options) (*rankd.Engine, error) {
	var err error
	if o.Registry == nil {
		if o.Registry, err = examples.Registry("feed"); err != nil {
			return nil, err
		}
	}
	if o.Plans, err = examples.Plans("feed"); err != nil {
		return nil, err
	}
	o.Plan = "feed"
	return rankd.Open(o)
}

// show prints the posts of an answer.
func show(w io.Writer, answer *rankd.Answer, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCORE\tAGE\tSOURCE\tAUTHOR\tTITLE")
	for c := range answer.Candidates() {
		score, _ := c.Float("final_score")
		created, _ := c.Int("created_at")
		source, _ := c.Set("source")
		author, _ := c.String("author")
		title, _ := c.String("title")
		age := now.Sub(time.Unix(created, 0))
		fmt.Fprintf(table, "%.3f\t%.0f h\t%s\t%s\t%s\n", score, age.Hours(), strings.Join(source, ", "), author, title)
	}
	return table.Flush()
}
