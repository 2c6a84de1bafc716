// Feed is an example of a feed with several sources: posts of authors whom a user follows, popular ones, and ones like those
// that the user liked. The plan drops duplicates and posts that the user has seen, scores, boosts, diversifies and blends.
// See README.md beside it.
//
//	feed fill --redis 127.0.0.1:6379            writes the data
//	feed rank --redis 127.0.0.1:6379 --user 7   ranks and prints titles; without --redis in a Redis inside the process
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/examples"
	"github.com/rankd/rankd/examples/feed/data"
)

func main() { program().Main() }

// program returns the command line.
func program() *examples.Program {
	var s data.Size
	var user int64
	var country, chosen, muted string
	return &examples.Program{
		Name: "feed", Verb: "rank",
		Flags: func(f *flag.FlagSet, _ time.Time) {
			f.IntVar(&s.Posts, "posts", 100_000, "`number` of posts")
			f.IntVar(&s.Users, "users", 10_000, "`number` of users")
			f.Int64Var(&user, "user", 7, "rank for this `user`")
			f.StringVar(&country, "country", "DE", "`country` of the user: "+strings.Join(data.Countries(), ", "))
			f.StringVar(&chosen, "topics", "", "chosen `topics`, separated by commas: "+strings.Join(data.Topics(), ","))
			f.StringVar(&muted, "muted", "", "`names` of muted authors, separated by commas")
		},
		Check: func() error { return s.Check() },
		Fill:  func(ctx context.Context, redis string, now time.Time) error { return data.Fill(ctx, redis, s, now) },
		Data:  func() string { return fmt.Sprintf("%d posts and %d users", s.Posts, s.Users) },
		Do: func(ctx context.Context, w io.Writer, redis string, now time.Time) error {
			o, err := examples.Options("feed")
			if err != nil {
				return err
			}
			o.Redis = redis
			e, err := rankd.Open(o)
			if err != nil {
				return err
			}
			defer e.Close()
			answer, err := e.Rank(ctx, rankd.Request{UserID: user, Context: map[string]any{
				"country": country, "topics": listed(chosen), "muted": listed(muted)}})
			if err != nil {
				return err
			}
			return show(w, answer, now)
		},
	}
}

// listed returns the parts of a text between commas.
func listed(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, ",")
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
