package examples

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Program is the command line of an example: it fills a Redis with data, and does one thing more. Its functions run after the flags are set.
// Immutable.
type Program struct {
	Name  string // of its folder
	Redis string // the address if --redis gives none; "": fill demands the flag, and Do gets a Redis inside the process
	Flags func(f *flag.FlagSet, now time.Time)
	Check func() error // what is wrong with the flags; nil: nothing can be
	Fill  func(ctx context.Context, redis string, now time.Time) error
	Data  func() string // what Fill has written, such as "400 articles"
	Verb  string        // the argument that asks for Do
	Do    func(ctx context.Context, w io.Writer, redis string, now time.Time) error
}

// Main is the function main of the program.
func (p *Program) Main() {
	if err := p.Run(context.Background(), os.Stdout, os.Args[1:], time.Now()); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, p.Name+":", err)
		}
		os.Exit(2)
	}
}

// Run does what the arguments ask for.
func (p *Program) Run(ctx context.Context, w io.Writer, args []string, now time.Time) error {
	if len(args) == 0 {
		return fmt.Errorf("say what to do: fill or %s", p.Verb)
	}
	flags := flag.NewFlagSet(p.Name+" "+args[0], flag.ContinueOnError)
	redis := flags.String("redis", p.Redis, "`address` of the Redis")
	p.Flags(flags, now)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if p.Check != nil {
		if err := p.Check(); err != nil {
			return err
		}
	}
	switch args[0] {
	case "fill":
		if *redis == "" {
			return errors.New("fill needs --redis")
		}
		if err := p.fill(ctx, *redis, now); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "wrote %s to %s\n", p.Data(), *redis)
		return err
	case p.Verb:
		if *redis == "" {
			server, err := miniredis.Run()
			if err != nil {
				return err
			}
			defer server.Close()
			*redis = server.Addr()
			if err := p.fill(ctx, *redis, now); err != nil {
				return err
			}
		}
		return p.Do(ctx, w, *redis, now)
	default:
		return fmt.Errorf("cannot %s: say fill or %s", args[0], p.Verb)
	}
}

func (p *Program) fill(ctx context.Context, redis string, now time.Time) error {
	if err := p.Fill(ctx, redis, now); err != nil {
		return fmt.Errorf("filling Redis at %s: %w", redis, err)
	}
	return nil
}
