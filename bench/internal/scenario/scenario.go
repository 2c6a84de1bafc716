// Package scenario, which is not covered by the compatibility promise, has the standing loads of "rankd bench
// compare": a plan with its data, its users and the context of their requests.
package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/examples"
	articles "github.com/rankd/rankd/examples/articles/data"
	feed "github.com/rankd/rankd/examples/feed/data"
	shop "github.com/rankd/rankd/examples/shop/data"
	"github.com/rankd/rankd/internal/devredis"
)

// A Scenario is a plan with all that requests for it need. Immutable.
type Scenario struct {
	Name, Doc string // Name is the plan's name, too
	Example   bool   // the plan and its tables are those of package examples; otherwise they are built in
	Context   string // of each request, JSON as in a request; empty means none
	Users     string // all users, in the form that load.ParseUsers reads
	// Fill writes the data into the Redis that server names. It replaces the keys of the same name.
	Fill func(ctx context.Context, server string) error
}

// users is how many users each example has.
const users = 10_000

// All returns the scenarios.
func All() []Scenario {
	demo, everyone := fmt.Sprintf("1-%d", devredis.Users), fmt.Sprintf("1-%d", users)
	return []Scenario{
		{
			Name: "feed", Doc: "the example feed: three sources, some 300 commands a request", Example: true, Users: everyone,
			Context: `{"country": "DE", "topics": ["music"], "muted": ["Chen Eik 218"]}`,
			Fill: func(ctx context.Context, server string) error {
				return feed.Fill(ctx, server, feed.Size{Posts: 100_000, Users: users}, time.Now())
			},
		},
		{
			Name: "articles", Doc: "the example articles: one source, some 100 commands", Example: true, Users: everyone,
			Context: `{"topic": "science", "lang": "de", "hour": 20}`,
			Fill: func(ctx context.Context, server string) error {
				return articles.Fill(ctx, server, articles.Size{Articles: 100_000, Users: users}, time.Now())
			},
		},
		{
			Name: "shop", Doc: "the example shop: ids that are strings, features of user and item, a model, two shelves", Example: true, Users: fmt.Sprintf("u-{1-%d}", users),
			Fill: func(ctx context.Context, server string) error {
				return shop.Fill(ctx, server, shop.Size{Products: 20_000, Users: users}, time.Now())
			},
		},
		{Name: "concat_plan", Doc: "a small plan on the demo data, some 10 commands", Users: demo, Fill: devredis.Load},
		{Name: "complex_dag", Doc: "a wide plan on the demo data, up to 400 commands", Users: demo, Fill: devredis.Load},
	}
}

// Options returns the plan with its tables and models; of a built-in plan its name alone.
func (s *Scenario) Options() (rankd.Options, error) {
	if !s.Example {
		return rankd.Options{Plan: s.Name}, nil
	}
	return examples.Options(s.Name)
}
