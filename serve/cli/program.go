package cli

import (
	"log/slog"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/fileio"
)

// Program is the program whose command this is. Its errors determine the exit status, as in package cmdline. One
// goroutine.
type Program struct {
	Stderr   *fileio.Writer       // takes the log
	Tune     func(cpuThreads int) // sets the process up before the engine is opened
	Compiler rankd.Compiler       // of plans that are sources; nil: none
}

// logger returns the log in the form that the flag names.
func (p *Program) logger(form string) *slog.Logger {
	if form == logJSON {
		return slog.New(slog.NewJSONHandler(p.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(p.Stderr, nil))
}
