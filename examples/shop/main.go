// Shop makes the data of an example: a shop whose products and users have strings as ids, and a log of what users clicked, from which train.py makes a
// model. See README.md beside it.
//
//	shop fill --redis 127.0.0.1:6379   writes the data
//	shop clicks > clicks.csv           prints the log
//	shop clicks --served served > clicks.jsonl    prints what users click of what rankd has served
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rankd/rankd/examples"
	"github.com/rankd/rankd/examples/shop/data"
)

func main() { program().Main() }

// program returns the command line.
func program() *examples.Program {
	var s data.Size
	var rows int
	var served string
	return &examples.Program{
		Name: "shop", Redis: "127.0.0.1:6379", Verb: "clicks",
		Flags: func(f *flag.FlagSet, _ time.Time) {
			f.IntVar(&s.Products, "products", 5000, "`number` of products")
			f.IntVar(&s.Users, "users", 1000, "`number` of users")
			f.StringVar(&served, "served", "", "a `folder` with the log of what was served, for clicks of that")
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
			if served != "" {
				return clickServed(w, served)
			}
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

// clickServed prints the clicks of users on what was served, as events for rankd log join: each row is clicked as it is likely, a second
// after the answer.
func clickServed(w io.Writer, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return err
	}
	r, out := rand.New(rand.NewPCG(4, 4)), bufio.NewWriter(w)
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = clickFile(out, f, r)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return out.Flush()
}

func clickFile(out io.Writer, f io.Reader, r *rand.Rand) error {
	events := json.NewEncoder(out)
	for lines := json.NewDecoder(f); ; {
		var line struct {
			ID      string    `json:"engine_request_id"`
			Time    time.Time `json:"time"`
			Outputs []struct {
				IDs     []string `json:"ids"`
				Absent  []int    `json:"absent"` // rows without values
				Columns struct {
					Price, Rating, Sold, Views, Buys []float64
					AgeDays                          []float64 `json:"age_days"`
					OverBudget                       []float64 `json:"over_budget"`
				} `json:"columns"`
			} `json:"outputs"`
		}
		switch err := lines.Decode(&line); {
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF): // the line of a process that was killed
			return nil
		case err != nil:
			return err
		}
		for _, o := range line.Outputs {
			for i, id := range o.IDs {
				if slices.Contains(o.Absent, i) {
					continue
				}
				v := &o.Columns
				c := data.Click{Price: v.Price[i], Rating: v.Rating[i], AgeDays: v.AgeDays[i], OverBudget: v.OverBudget[i], Sold: int(v.Sold[i]), Views: int(v.Views[i]), Buys: int(v.Buys[i])}
				if r.Float64() < c.Likely() {
					event := map[string]any{"engine_request_id": line.ID, "id": id, "time": line.Time.Add(time.Second)}
					if err := events.Encode(event); err != nil {
						return err
					}
				}
			}
		}
	}
}
