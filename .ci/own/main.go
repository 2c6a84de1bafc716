// Command own is the program rankd with the tasks of docs/shop.
package main

import (
	"os"

	"github.com/rankd/rankd/program"
)

func main() { os.Exit(program.Main(program.Config{Name: "own", Tasks: tasks()})) }
