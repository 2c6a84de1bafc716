// Command rankd ranks: see package program.
package main

import (
	"os"

	"github.com/rankd/rankd/program"
)

func main() { os.Exit(program.Main(program.Config{})) }
