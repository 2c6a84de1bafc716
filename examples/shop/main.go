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
	"os"
	"time"

	"github.com/rankd/rankd/examples/shop/data"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:], time.Now()); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "shop:", err)
		}
		os.Exit(2)
	}
}

// run does what the arguments ask for.
func run(ctx context.Context, w io.Writer, args []string, now time.Time) error {
	if len(args) == 0 {
		return errors.New("say what to do: fill or clicks")
	}
	flags := flag.NewFlagSet("shop "+args[0], flag.ContinueOnError)
	var s data.Size
	redis := flags.String("redis", "127.0.0.1:6379", "`address` of the Redis")
	flags.IntVar(&s.Products, "products", 5000, "`number` of products")
	flags.IntVar(&s.Users, "users", 1000, "`number` of users")
	rows := flags.Int("rows", 20_000, "`number` of products shown, for clicks")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if s.Products < 1 || s.Users < 1 || *rows < 1 {
		return errors.New("--products, --users and --rows must be at least 1")
	}
	switch args[0] {
	case "fill":
		if err := data.Fill(ctx, *redis, s, now); err != nil {
			return fmt.Errorf("filling Redis at %s: %w", *redis, err)
		}
		_, err := fmt.Fprintf(w, "wrote %d products and %d users to %s\n", s.Products, s.Users, *redis)
		return err
	case "clicks":
		return printClicks(w, data.New(s, now).Clicks(*rows))
	default:
		return fmt.Errorf("cannot %s: say fill or clicks", args[0])
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
