// Shop makes the data of an example: a shop whose products and users have strings as ids, and a log of what users clicked, from which train.py makes a
// model. See README.md beside it.
//
//	shop fill --redis 127.0.0.1:6379   writes the data
//	shop clicks > clicks.csv           prints the log
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/rankd/rankd/examples"
	"github.com/rankd/rankd/examples/shop/data"
)

func main() { program().Main() }

// program returns the command line.
func program() *examples.Program {
	var s data.Size
	var rows int
	return &examples.Program{
		Name: "shop", Redis: "127.0.0.1:6379", Verb: "clicks",
		Flags: func(f *flag.FlagSet, _ time.Time) {
			f.IntVar(&s.Products, "products", 5000, "`number` of products")
			f.IntVar(&s.Users, "users", 1000, "`number` of users")
			f.IntVar(&rows, "rows", 20_000, "`number` of products shown, for clicks")
		},
		Check: func() error {
			if s.Products < 1 || s.Users < 1 || rows < 1 {
				return errors.New("--products, --users and --rows must be at least 1")
			}
			return nil
		},
		Fill: func(ctx context.Context, redis string, now time.Time) error { return data.Fill(ctx, redis, s, now) },
		Data: func() string { return fmt.Sprintf("%d products and %d users", s.Products, s.Users) },
		Do: func(_ context.Context, w io.Writer, _ string, now time.Time) error {
			return printClicks(w, data.New(s, now).Clicks(rows))
		},
	}
}

// printClicks prints a table with the names of the columns that the plans have.
func printClicks(w io.Writer, clicks []data.Click) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "clicked,price,rating,sold,age_days,over_budget,views,buys")
	for _, c := range clicks {
		clicked := 0
		if c.Clicked {
			clicked = 1
		}
		fmt.Fprintf(out, "%d,%g,%g,%d,%g,%g,%d,%d\n", clicked, c.Price, c.Rating, c.Sold, c.AgeDays, c.OverBudget, c.Views, c.Buys)
	}
	return out.Flush()
}
