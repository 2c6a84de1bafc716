package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // hourOf and dayOfWeek know their zones on machines that have none

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
)

func main() {
	compiler.Main() // returns unless this process is to compile plans for another
	log.SetFlags(0) // Libraries write lines of their own, which then look as those of rankd.
	log.SetPrefix("rankd: ")
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2) // has room for both that count
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go endOn(signals, cancel)
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, tune: rankd.TuneRuntime}
	os.Exit(p.run(ctx, os.Args[1:]))
}

// endOn asks for an orderly end at the first signal. The second one ends the process, as if nobody had asked for signals.
func endOn(signals <-chan os.Signal, cancel context.CancelFunc) {
	<-signals
	cancel()
	second := <-signals
	signal.Reset(second)
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(second)
	}
}
