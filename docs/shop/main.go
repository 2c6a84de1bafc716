// Shop is the program of the page "Writing a task": it embeds rankd with two tasks of its
// own. It imports nothing internal, so it could be a module of its own.
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"

	"github.com/rankd/rankd"
)

//go:embed plans
var plans embed.FS

func main() {
	redis := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	flag.Parse()
	if err := run(os.Stdout, *redis); err != nil {
		log.Fatal(err)
	}
}

// run ranks for user 1 and prints the candidates.
func run(w io.Writer, redis string) error {
	folder, err := fs.Sub(plans, "plans")
	if err != nil {
		return err
	}
	e, err := rankd.Open(rankd.Options{Redis: redis, Plans: folder, Tasks: tasks()})
	if err != nil {
		return err
	}
	defer e.Close()
	answer, err := e.Rank(context.Background(), rankd.Request{Plan: "active", UserID: 1})
	if err != nil {
		return err
	}
	for c := range answer.Candidates() {
		score, _ := c.Float("score")
		fmt.Fprintln(w, c.ID(), score)
	}
	return nil
}
