package program

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // hourOf and dayOfWeek know their zones on machines that have none

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/task"
)

// Config is what a program brings, and its surroundings. Its zero value is the program rankd. Immutable.
type Config struct {
	// Tasks are tasks of the program's own. Plans, editors, "rankd tasks" and errors know them beside the built-in
	// ones.
	Tasks []task.Spec
	// Registry, Models and Plans are folders of the program's own, mostly embedded. They take the place of the
	// built-in tables, of no models and of the example plans where no flag and no rankd.toml names a folder.
	Registry, Models, Plans fs.FS
	// Name and Version stand in --version, and Name in usage. Diagnostics begin with "rankd:", whose they are. Empty
	// Name: rankd. Empty Version: what the build recorded.
	Name, Version string

	// Args are the arguments, without the program's name. Nil: those of the process.
	Args []string
	// Stdin, Stdout and Stderr are the streams. Nil: those of the process.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Context ends the program in order. Nil: SIGINT or SIGTERM end it, a second one at once, the garbage collector
	// is tuned to the command, and the lines of package log begin with "rankd:".
	Context context.Context
}

// Main runs a command of rankd with what c brings, and returns its exit status: 0 if all went well, 1 if a request failed
// or output could not be written, 2 for bad usage or a bad plan. A child that compiles plans never returns from it, so
// main calls Main before anything else:
//
//	func main() { os.Exit(program.Main(program.Config{Tasks: []task.Spec{mmr()}})) }
//
// Children of the program, which compile plans or run a benchmark's engine, are the same executable.
func Main(c Config) (status int) {
	compiler.Main() // returns unless this process is to compile plans for another
	c.Name = cmp.Or(c.Name, "rankd")
	p := program{
		stdin: c.Stdin, stdout: c.Stdout, stderr: c.Stderr, tune: func(int) {}, name: c.Name, version: c.Version,
		own: rankd.Options{Tasks: c.Tasks, Registry: c.Registry, Models: c.Models, Plans: c.Plans},
	}
	if c.Stdin == nil {
		p.stdin = os.Stdin
	}
	if c.Stdout == nil {
		p.stdout = os.Stdout
	}
	if c.Stderr == nil {
		p.stderr = os.Stderr
	}
	if c.Args == nil {
		c.Args = os.Args[1:]
	}
	for _, folder := range []struct {
		at   fs.FS
		name *string
		text string
	}{{c.Registry, &p.own.RegistryName, "tables"}, {c.Models, &p.own.ModelsName, "models"}, {c.Plans, &p.own.PlansName, "plans"}} {
		if folder.at != nil {
			*folder.name = "the " + folder.text + " of " + p.name
		}
	}
	if c.Context == nil {
		log.SetFlags(0) // Libraries write lines of their own, which then look as those of the program.
		log.SetPrefix("rankd: ")
		p.tune = rankd.TuneRuntime
		ctx, cancel := context.WithCancel(context.Background())
		c.Context = ctx
		signals := make(chan os.Signal, 2) // has room for both that count
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		go endOn(signals, cancel)
	}
	return p.run(c.Context, c.Args)
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
