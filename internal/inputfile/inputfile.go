// Package inputfile reads whole files that the program is started with: plans and
// registry tables. No file can make it wait or fill the memory.
//
// Functions only; any goroutine. Errors do not name the file, which the caller knows
// best how to name; those of the file system can be told apart by errors.Is.
package inputfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Read returns what is in the file of that name in folder. It refuses a file that is
// not regular without opening it, since to open a named pipe is to wait for a writer. A
// symbolic link to a regular file is fine. At most maxBytes are accepted.
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

// ReadPath returns what is in the file at path, which somebody chose: of any kind, a
// pipe too, which it waits for. At most maxBytes are accepted.
func ReadPath(path string, maxBytes int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	return readAll(f, maxBytes)
}

// readAll reads one byte past the limit at most.
func readAll(r io.Reader, maxBytes int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	switch {
	case err != nil:
		return nil, cause(err)
	case int64(len(text)) > maxBytes:
		return nil, fmt.Errorf("larger than %d bytes", maxBytes)
	}
	return text, nil
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
