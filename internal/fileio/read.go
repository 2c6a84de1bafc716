package fileio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Read returns the content of the file of that name in folder, without a byte order mark at its beginning, and without
// the file's name in its errors. errors.Is recognizes errors of the file system. It refuses a file that is not regular
// without opening it, because opening a named pipe waits for a writer. It follows symbolic links. It refuses a file of
// more than maxBytes.
func Read(folder fs.FS, name string, maxBytes int64) ([]byte, error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return nil, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("is %s, must be a regular file", kind(info.Mode()))
	}
	f, err := folder.Open(name)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	return readAll(f, maxBytes)
}

// ReadRegular is Read for a path. Files that tables name are read so: a process may read them again, and must not wait
// for the writer of a pipe.
func ReadRegular(path string, maxBytes int64) ([]byte, error) {
	return Read(os.DirFS(filepath.Dir(path)), filepath.Base(path), maxBytes)
}

// ReadPath returns the content of the file at path, which a user chose. The file may be of
// any kind; ReadPath waits for the writer of a pipe. It refuses a file of more than maxBytes. A byte order mark goes.
func ReadPath(path string, maxBytes int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	return readAll(f, maxBytes)
}

// ByteOrderMark is what editors of Windows put before a text in UTF-8.
const ByteOrderMark = "\ufeff"

// WithoutMark returns a text without a byte order mark at its beginning.
func WithoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(ByteOrderMark)) }

// readAll reads at most one byte past the limit. A byte order mark is no content.
func readAll(r io.Reader, maxBytes int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	switch {
	case err != nil:
		return nil, cause(err)
	case int64(len(text)) > maxBytes:
		return nil, fmt.Errorf("larger than %d bytes", maxBytes)
	}
	return WithoutMark(text), nil
}

// cause returns err without the name of the file.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "a special file"
	}
}
