// Command peer is the worker process of a peer. "rankd bench compare" starts it as
//
//	peer --engine rueidis
//	peer --engine go-redis:pool=16
//
// and speaks the protocol of package worker with it over stdin and stdout.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/peers"
)

// The garbage collector runs as rarely as in rankd's own engines, within the same bound of
// memory. See README.md.
const (
	gcPercent   = 800
	memoryLimit = 2 << 30
)

func main() {
	engine := flag.String("engine", "", "the peer and its settings: rueidis, rueidis-cache or go-redis[:key=value...]")
	flag.Parse()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if err := run(*engine, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(engine string, in io.Reader, out io.Writer) error {
	spec, err := peers.ParseSpec(engine)
	if err != nil {
		return err
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(cmp.Or(spec.Procs, spec.DefaultProcs(runtime.NumCPU())))
	}
	return worker.Serve(in, out, func(s worker.Setup) (load.Target, error) {
		brings, err := peers.ParseContext(s.Context)
		if err != nil {
			return nil, err
		}
		plan, store, err := spec.Open(s.Redis, s.Plan, s.Fanout)
		if err != nil {
			return nil, err
		}
		return peers.NewTarget(plan, store, brings), nil
	})
}
