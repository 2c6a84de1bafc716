// Command embed runs rankd in a program of another module, with tasks and a plan folder of
// its own. .ci/run builds and runs it, and compares its output.
package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/rankdtest"
)

//go:embed plans
var files embed.FS

func run() error {
	redis, err := rankdtest.StartRedis() // demo data; or a redis-server of your own
	if err != nil {
		return err
	}
	defer redis.Close()
	plans, err := fs.Sub(files, "plans")
	if err != nil {
		return err
	}

	e, err := rankd.Open(rankd.Options{Redis: redis.Addr(), Plans: plans, Tasks: append(tasks(), pause, inStock(stock))})
	if err != nil {
		return err
	}
	defer e.Close()
	answer, err := e.Rank(context.Background(), rankd.Request{Plan: "friends", UserID: 1})
	if err != nil {
		return err
	}
	for c := range answer.Candidates() {
		country, _ := c.String("country")
		follows, _ := c.Float("final_score")
		fmt.Println(c.ID(), country, follows)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
