package served

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/jsondoc"
)

// Purged says what Purge has done. A copy; any goroutine.
type Purged struct {
	Files, Lines int      // that were rewritten, and that are gone
	Left         []string // files that a process still writes: nothing is removed of them
	Unknown      int      // lines that stay and may be the user's: they have names by keys that are not there
}

// LogFiles returns the files of lines in a folder: those called *.jsonl, by name. The error says that there are none.
func LogFiles(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".jsonl" {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if err == nil && paths == nil {
		err = fmt.Errorf("folder %s has no file *.jsonl", errtext.Name(dir))
	}
	return paths, err
}

// Purge removes the lines of a user from the files of a folder: those with the user's id, and those with a name by one of the
// keys, which may be nil. A file is replaced as a whole, or stays as it is. Lines that are cut off go, too. The error names a file and a
// line, and what was removed before it is said.
func Purge(dir, user string, keys *Keys) (done Purged, err error) {
	paths, err := LogFiles(dir)
	if err != nil {
		return done, err
	}
	p := purge{users: map[string]bool{user: true}, keys: keys}
	for _, name := range keys.Names(user) {
		p.users[name] = true
	}
	for _, path := range paths {
		gone, err := p.file(path)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			done.Left = append(done.Left, path)
		case err != nil:
			return done, fmt.Errorf("%s: %w", errtext.Name(path), err)
		case gone > 0:
			done.Files++
			done.Lines += gone
		}
	}
	done.Unknown = p.unknown
	return done, nil
}

// purge is a Purge under way.
type purge struct {
	users   map[string]bool // the names of the user
	keys    *Keys
	unknown int // as Purged.Unknown
}

// file replaces a file by its lines of other users, and returns how many lines are gone.
func (p *purge) file(path string) (gone int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if err := fileio.Lock(file); err != nil {
		return 0, err
	}
	unknown := p.unknown
	if gone, err = p.copy(file, io.Discard); err != nil || gone == 0 {
		return 0, err
	}
	p.unknown = unknown
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return gone, fileio.ReplaceBy(path, func(to *bufio.Writer) error {
		_, err := p.copy(file, to)
		return err
	})
}

// LineBytesMax bounds a line that is read.
const LineBytesMax = 256 << 20

// copy copies the whole lines of other users, and returns how many it has left out.
func (p *purge) copy(from io.Reader, to io.Writer) (gone int, err error) {
	lines := fileio.NewLineReader(from, LineBytesMax)
	for {
		line, whole, err := lines.Next()
		switch {
		case err == io.EOF:
			return gone, nil
		case err != nil:
			return gone, err
		case !whole: // It is cut off.
			gone++
			continue
		}
		user, err := userOf(line)
		switch {
		case err != nil:
			return gone, fmt.Errorf("line %d: %w", lines.Number(), err)
		case p.users[user]:
			gone++
			continue
		case !p.keys.made(user):
			p.unknown++
		}
		_, _ = to.Write(line)
		if _, err := to.Write([]byte{'\n'}); err != nil { // of either
			return gone, err
		}
	}
}

var errNoUser = errors.New("is not a line of the log of what was served: it needs served_log and user_id")

// userOf returns the user of a line: the digits of an integer, or a text.
func userOf(line []byte) (string, error) {
	var l struct {
		Version int          `json:"served_log"`
		User    jsondoc.Text `json:"user_id"`
	}
	if err := json.Unmarshal(line, &l); err != nil || l.Version == 0 || l.User == "" {
		return "", errNoUser
	}
	return string(l.User), nil
}
