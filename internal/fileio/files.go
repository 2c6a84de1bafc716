package fileio

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Files makes files in a folder, one after the other, and writes to the latest: START-UTC-HOST-PID-NUMBER and an ending. It is an io.Writer.
// What does not fit on the disk is cut out again. One goroutine.
type Files struct {
	dir, name, ending string // name is what the names of files begin with
	max               int64
	whole             func([]byte) int
	file              *os.File // nil: there is none, or it is given up
	size              int64
	number            int
}

// NewFiles returns a writer to files of about max bytes in a folder, which it makes. whole returns how much of what was written in part
// stays in the file; nil: nothing. The first file is there at once, so that a folder that refuses files shows at the start.
func NewFiles(dir, start, ending string, max int64, whole func(p []byte) int) (*Files, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	host = strings.Map(func(c rune) rune {
		if c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, host)
	name := fmt.Sprintf("%s-%s-%s-%d-", start, time.Now().UTC().Format("20060102T150405Z"), host, os.Getpid())
	f := &Files{dir: dir, name: name, ending: ending, max: max, whole: whole}
	return f, f.Next()
}

// Full reports whether the next write must go to another file, which Next begins: this one has its size, somebody has removed it, or there
// is none.
func (f *Files) Full() bool { return f.file == nil || f.size >= f.max || removed(f.file) }

// Next closes the file and begins another one, which is locked. On an error there is none.
func (f *Files) Next() error {
	_ = f.Close() // Each write has reported its error.
	for {
		f.number++
		file, err := os.OpenFile(filepath.Join(f.dir, fmt.Sprintf("%s%06d%s", f.name, f.number, f.ending)), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o640)
		if os.IsExist(err) {
			continue
		}
		if err == nil {
			f.file, f.size = file, 0
			_ = Lock(file) // so that whoever purges leaves it alone
		}
		return err
	}
}

// Write writes to the file, which must be there. After an error n is how much of p the file has.
func (f *Files) Write(p []byte) (n int, err error) {
	if n, err = f.file.Write(p); err != nil {
		if f.whole == nil {
			n = 0
		} else {
			n = f.whole(p[:n])
		}
		if f.file.Truncate(f.size+int64(n)) != nil {
			_ = f.Close()
		}
	}
	f.size += int64(n)
	return n, err
}

// Remove closes and removes the file.
func (f *Files) Remove() {
	if f.file != nil {
		_ = os.Remove(f.file.Name())
		_ = f.Close()
	}
}

// Lock marks a file as one that this process writes. The error matches syscall.EWOULDBLOCK if another one does.
func Lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// removed reports whether nobody can find a file any more: what is written to it is lost, and keeps its place on the disk.
func removed(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}

// Close closes the file.
func (f *Files) Close() error {
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}
