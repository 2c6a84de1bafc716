package serve

import (
	"context"
	stdlog "log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/fileio"
)

// A libraryLog takes the lines that libraries write of their own accord, as net/http does of a service or a client that
// breaks the protocol. They become warnings of the log, and only so many a second, because strangers can cause them. Any
// goroutine.
type libraryLog struct{ lines *fileio.Lines }

func newLibraryLog(logger *slog.Logger, perSecond int) *libraryLog {
	return &libraryLog{fileio.NewLines(logger, perSecond, time.Now, nil)}
}

// Write implements io.Writer. It never waits.
func (l *libraryLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	l.lines.Put(slog.LevelWarn, "a library reports", func() []slog.Attr { return []slog.Attr{slog.String("line", text)} })
	return len(line), nil
}

// takeOver has the process's own log write here, until the caller gives it back.
func (l *libraryLog) takeOver() (giveBack func()) {
	flags, prefix := stdlog.Flags(), stdlog.Prefix()
	stdlog.SetFlags(0)
	stdlog.SetPrefix("") // the name of the program
	stdlog.SetOutput(l)
	return func() {
		stdlog.SetFlags(flags)
		stdlog.SetPrefix(prefix)
		stdlog.SetOutput(os.Stderr)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.lines.Flush(ctx)
	}
}
