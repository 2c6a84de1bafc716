package serve

import (
	"bytes"
	stdlog "log"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Lines of libraries have the form of the log, and only so many are written.
func TestLibrariesWriteToTheLog(t *testing.T) {
	var out bytes.Buffer
	l := newLibraryLog(slog.New(slog.NewTextHandler(&out, nil)), 3)
	stdlog.SetPrefix("rankd: ")
	defer stdlog.SetPrefix("")
	giveBack := l.takeOver()
	stdlog.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", "}", nil)
	for range 1000 {
		stdlog.Print("again")
	}
	giveBack()
	assert.Contains(t, out.String(), `level=WARN msg="a library reports" line="Unsolicited response received on idle HTTP channel starting with \"}\"; err=<nil>"`+"\n")
	assert.Less(t, strings.Count(out.String(), "\n"), 100)
	before := out.Len()
	stdlog.SetFlags(0)
	_, _ = stdlog.Writer().Write(nil)
	stdlog.SetFlags(stdlog.LstdFlags)
	assert.Equal(t, before, out.Len())
}
