package served

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Files is an io.Writer of lines to files in a folder. It begins a new file when one has its size. A line that does not fit on
// the disk is cut out again, so that files have whole lines. One goroutine.
type Files struct {
	dir, name string // name is what the names of files begin with
	max       int64
	file      *os.File // nil: the next write makes one
	size      int64
	number    int
}

// fileStart is how the names of files begin.
const fileStart = "served-"

// NewFiles returns a writer to files of about that size in a folder, which it makes.
func NewFiles(dir string, max int64) (*Files, error) {
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
	f := &Files{dir: dir, name: fmt.Sprintf("%s%s-%s-%d-", fileStart, time.Now().UTC().Format("20060102T150405Z"), host, os.Getpid()), max: max}
	return f, f.open() // A folder that refuses files shows at the start.
}

func (f *Files) open() error {
	for {
		f.number++
		file, err := os.OpenFile(filepath.Join(f.dir, fmt.Sprintf("%s%06d.jsonl", f.name, f.number)), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o640)
		if os.IsExist(err) {
			continue
		}
		if err == nil {
			f.file, f.size = file, 0
			_ = lock(file) // so that Purge leaves it alone
		}
		return err
	}
}

// Write implements io.Writer. After an error n is the end of the last whole line that the file has.
func (f *Files) Write(p []byte) (n int, err error) {
	if f.file != nil && (f.size >= f.max || removed(f.file)) {
		_ = f.file.Close() // Each write has reported its error.
		f.file = nil
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	if n, err = f.file.Write(p); err != nil {
		n = bytes.LastIndexByte(p[:n], '\n') + 1
		if f.file.Truncate(f.size+int64(n)) != nil {
			_ = f.file.Close()
			f.file = nil
		}
	}
	f.size += int64(n)
	return n, err
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
	return f.file.Close()
}
