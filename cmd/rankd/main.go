package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
)

func main() {
	compiler.Main() // returns unless this process is to compile plans for another
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end; from then on another one kills.
	context.AfterFunc(ctx, stop)
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, tune: rankd.TuneRuntime}
	os.Exit(p.run(ctx, os.Args[1:]))
}
