package served

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/errtext"
)

// Purged says what Purge has done. A copy; any goroutine.
type Purged struct {
	Files, Lines int      // that were rewritten, and that are gone
	Left         []string // files that a process still writes: nothing is removed of them
}

// Purge removes the lines of a user from the files of a folder: those with the user's id, and those with a name by one of the
// keys, which may be nil. A file is replaced as a whole, or stays as it is. Lines that are cut off go, too. The error names a file and a
// line, and what was removed before it is said.
func Purge(dir, user string, keys *Keys) (done Purged, err error) {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), fileStart+"*.jsonl"))
	if err != nil {
		return done, err
	}
	if _, err := os.ReadDir(dir); err != nil {
		return done, err
	}
	users := map[string]bool{user: true}
	for _, name := range keys.Names(user) {
		users[name] = true
	}
	for _, path := range paths {
		gone, err := purgeFile(path, users)
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
	return done, nil
}

// escapeGlob makes a path stand for itself in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// lock marks a file as one that this process writes. The error matches syscall.EWOULDBLOCK if another one does.
func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// purgeFile replaces a file by its lines of other users, and returns how many lines are gone.
func purgeFile(path string, users map[string]bool) (gone int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if err := lock(file); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	rest, err := os.CreateTemp(filepath.Dir(path), ".purge.*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(rest.Name()) // nothing is there once it has its name
	out := bufio.NewWriterSize(rest, chunkBytes)
	gone, err = withoutUsers(file, out, users)
	err = errors.Join(err, out.Flush(), rest.Chmod(info.Mode().Perm()), rest.Sync(), rest.Close())
	if err == nil && gone > 0 {
		err = os.Rename(rest.Name(), path)
	}
	return gone, err
}

// lineBytesMax bounds a line that Purge reads.
const lineBytesMax = 256 << 20

// withoutUsers copies the whole lines of other users, and returns how many it has left out.
func withoutUsers(from io.Reader, to io.Writer, users map[string]bool) (gone int, err error) {
	lines := bufio.NewReaderSize(from, chunkBytes)
	var line []byte
	for number := 1; ; number++ {
		line = line[:0]
		for {
			part, err := lines.ReadSlice('\n')
			if line = append(line, part...); len(line) > lineBytesMax {
				return gone, fmt.Errorf("line %d is longer than %d bytes", number, lineBytesMax)
			}
			if err == nil {
				break
			}
			if err == io.EOF {
				if len(line) > 0 { // It is cut off.
					gone++
				}
				return gone, nil
			}
			if err != bufio.ErrBufferFull {
				return gone, err
			}
		}
		user, err := UserOf(line)
		if err != nil {
			return gone, fmt.Errorf("line %d: %w", number, err)
		}
		if users[user] {
			gone++
			continue
		}
		if _, err := to.Write(line); err != nil {
			return gone, err
		}
	}
}

var errNoUser = errors.New("is not a line of the log of what was served: it needs served_log and user_id")

// UserOf returns the user of a line: the digits of an integer, or a text.
func UserOf(line []byte) (user string, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(line))
	if d.PeekKind() != '{' {
		return "", errNoUser
	}
	version, found := false, false
	_, _ = d.ReadToken()
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return "", errNoUser
		}
		switch member := name.String(); {
		case member == "user_id" && (d.PeekKind() == '0' || d.PeekKind() == '"'):
			value, err := d.ReadToken()
			if err != nil {
				return "", errNoUser
			}
			user, found = value.String(), true
		default:
			version = version || member == "served_log"
			if d.SkipValue() != nil {
				return "", errNoUser
			}
		}
	}
	if _, err := d.ReadToken(); err != nil || !version || !found {
		return "", errNoUser
	}
	return user, nil
}
