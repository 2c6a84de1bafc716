package fileio

import (
	"errors"
	"io/fs"
	"os"
)

// WriteNew writes a file that does not exist yet, and keeps one that does. It calls report with a line that says which.
func WriteNew(path string, text []byte, report func(line string)) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		report("kept " + path + ", which exists")
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		report("wrote " + path)
	}
	return err
}
