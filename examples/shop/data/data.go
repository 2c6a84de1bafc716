// Package data, which is not covered by the compatibility promise, makes the data of the example shop:
// products, what is known of users, and lists of candidates.
package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/rankd/rankd/internal/devredis"
)

// A Size says how much data there is. Immutable.
type Size struct{ Products, Users int }

// What belongs to each user, and to each product.
const (
	viewedEach = 10 // products that a user looked at last
	boughtEach = 20
	alsoEach   = 9 // products that go with one
	likedEach  = 3 // categories that a user knows
	shelfEach  = 100
)

// oldest is how long the shop has had its oldest products.
const oldest = 60 * 24 * time.Hour

var (
	categories = []string{"bags", "books", "garden", "kitchen", "lamps", "shoes", "toys", "watches"}
	things     = []string{"Tote", "Atlas", "Trowel", "Skillet", "Lantern", "Boot", "Kite", "Chronograph"}
	adjectives = []string{"Quiet", "Amber", "Folding", "Northern", "Little", "Plain", "Striped", "Winter"}
	brands     = []string{"Alder", "Birk", "Corvo", "Dune", "Elm", "Fjord", "Gale", "Harbor", "Isla", "Juno", "Kestrel", "Luma"}
)

// A Product is one hash of Redis. Immutable.
type Product struct {
	SKU, Name, Brand, Category string
	Price, Rating, Discount    float64 // Discount is a part of the price; 0: it is not a deal
	Sold, Stock                int
	Added                      time.Time
}

// Taste is what the shop knows of a user and a category. Immutable.
type Taste struct{ Views, Buys int }

// A User is what the shop knows of one. Immutable.
type User struct {
	ID             string
	Budget         float64 // what the user pays for a product, on average
	Tastes         map[string]Taste
	Viewed, Bought []string // SKUs
}

// World is all the data. The same size gives the same data each time, but for the times, which count back from now. Immutable once made.
type World struct {
	Size
	Now      time.Time
	Products []Product
}

// New makes a world.
func New(s Size, now time.Time) *World {
	w := &World{Size: s, Now: now, Products: make([]Product, s.Products)}
	for i := range w.Products {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		c := r.IntN(len(categories))
		p := Product{
			SKU: fmt.Sprintf("%s-%d", categories[c], i+1), Category: categories[c], Brand: pick(r, brands),
			Name:   fmt.Sprintf("%s %s No. %d", pick(r, adjectives), things[c], i+1),
			Price:  cents(5 + r.ExpFloat64()*40),
			Rating: math.Round(10*(1+4*math.Sqrt(r.Float64()))) / 10,
			Sold:   int(r.ExpFloat64() * 200), Stock: max(0, r.IntN(40)-2),
			Added: now.Add(-time.Duration(r.Float64() * float64(oldest))).Truncate(time.Second),
		}
		if r.IntN(5) == 0 {
			p.Discount = cents(0.05 + r.Float64()/2)
		}
		w.Products[i] = p
	}
	return w
}

// User makes user i, from 0.
func (w *World) User(i int) User {
	r := rand.New(rand.NewPCG(2, uint64(i)))
	u := User{ID: fmt.Sprintf("u-%d", i+1), Budget: cents(10 + r.ExpFloat64()*40), Tastes: make(map[string]Taste)}
	for range likedEach {
		views := 1 + r.IntN(40)
		u.Tastes[pick(r, categories)] = Taste{views, r.IntN(views)}
	}
	for range viewedEach {
		u.Viewed = append(u.Viewed, pick(r, w.Products).SKU)
	}
	for range boughtEach {
		u.Bought = append(u.Bought, pick(r, w.Products).SKU)
	}
	return u
}

// Also returns the products that go with product i besides itself: of its category, as they come.
func (w *World) Also(i int) (skus []string) {
	for k := 1; len(skus) < alsoEach && k < len(w.Products); k++ {
		if p := &w.Products[(i+k)%len(w.Products)]; p.Category == w.Products[i].Category {
			skus = append(skus, p.SKU)
		}
	}
	return skus
}

// Best returns the products of a category that were sold most, the best first.
func (w *World) Best(category string) []Product {
	best := slices.DeleteFunc(slices.Clone(w.Products), func(p Product) bool { return p.Category != category })
	slices.SortFunc(best, func(a, b Product) int { return cmp.Or(b.Sold-a.Sold, cmp.Compare(b.SKU, a.SKU)) })
	return best[:min(len(best), shelfEach)]
}

// Categories returns the categories of products.
func Categories() []string { return slices.Clone(categories) }

// Fill writes the data into the Redis that server names, "host:port" or a URL. It replaces the keys of the same name.
func Fill(ctx context.Context, server string, s Size, now time.Time) error {
	return devredis.Refill(ctx, server, New(s, now).EachCommand)
}

// EachCommand calls write with the commands that fill an empty Redis. It ends with the first error.
func (w *World) EachCommand(write func(command ...string) error) error {
	added, deals := []string{"ZADD", "added"}, []string{"ZADD", "deals"}
	for i := range w.Products {
		p := &w.Products[i]
		err := errors.Join(
			write("HSET", "product:"+p.SKU, "name", p.Name, "brand", p.Brand, "category", p.Category, "price", number(p.Price), "rating", number(p.Rating),
				"sold", strconv.Itoa(p.Sold), "stock", strconv.Itoa(p.Stock), "added", strconv.FormatInt(p.Added.Unix(), 10)),
			write(append([]string{"RPUSH", "also:" + p.SKU, p.SKU}, w.Also(i)...)...))
		if err != nil {
			return err
		}
		added = append(added, strconv.FormatInt(p.Added.Unix(), 10), p.SKU)
		if p.Discount > 0 {
			deals = append(deals, number(p.Discount), p.SKU)
		}
	}
	commands := [][]string{added, deals}
	for _, c := range categories {
		best := []string{"ZADD", "best:" + c}
		for _, p := range w.Best(c) {
			best = append(best, strconv.Itoa(p.Sold), p.SKU)
		}
		commands = append(commands, best)
	}
	for i := range w.Users {
		u := w.User(i)
		commands = append(commands, []string{"HSET", "user:" + u.ID, "budget", number(u.Budget)},
			append([]string{"RPUSH", "viewed:" + u.ID}, u.Viewed...), append([]string{"SADD", "bought:" + u.ID}, u.Bought...))
		for _, c := range categories {
			if t, ok := u.Tastes[c]; ok {
				commands = append(commands, []string{"HSET", "stat:" + u.ID + ":" + c, "views", strconv.Itoa(t.Views), "buys", strconv.Itoa(t.Buys)})
			}
		}
	}
	for _, command := range commands {
		if err := write(command...); err != nil {
			return err
		}
	}
	return nil
}

// A Click is a product that was shown to a user, with what was known then: a row of the training data. Immutable.
type Click struct {
	Price, Rating, AgeDays, OverBudget float64
	Sold, Views, Buys                  int
	Clicked                            bool
}

// Clicks makes the log of the shop: what users were shown, and whether they clicked.
func (w *World) Clicks(rows int) []Click {
	r := rand.New(rand.NewPCG(3, 3))
	clicks := make([]Click, rows)
	for i := range clicks {
		u, p := w.User(r.IntN(w.Users)), pick(r, w.Products)
		t := u.Tastes[p.Category]
		c := Click{Price: p.Price, Rating: p.Rating, AgeDays: w.Now.Sub(p.Added).Hours() / 24, OverBudget: p.Price / u.Budget, Sold: p.Sold, Views: t.Views, Buys: t.Buys}
		c.Clicked = r.Float64() < c.Likely()
		clicks[i] = c
	}
	return clicks
}

// Likely returns how likely a click is: how users are, which the model has to find out.
func (c *Click) Likely() float64 {
	wish := -1.5 + 0.7*math.Log1p(float64(c.Buys)) + 0.2*math.Log1p(float64(c.Views)) + 0.8*(c.Rating-3.5) -
		1.2*max(0, c.OverBudget-1) + 0.2*math.Log1p(float64(c.Sold)) - 0.02*c.AgeDays
	return 1 / (1 + math.Exp(-wish))
}

func cents(v float64) float64 { return math.Round(v*100) / 100 }

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }
