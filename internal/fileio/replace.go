package fileio

import (
	"bufio"
	"cmp"
	"errors"
	"os"
	"path/filepath"
)

// permissions let everybody read and the owner write. os.CreateTemp lets the owner alone read.
const permissions = 0o644

// Replace writes content to the file at path, as ReplaceBy.
func Replace(path string, content []byte) error {
	return ReplaceBy(path, func(to *bufio.Writer) error {
		_, err := to.Write(content)
		return err
	})
}

// ReplaceBy replaces the file at path, by rename, with what write writes: a reader sees either the old content or the new. A file that was
// there keeps its permissions. ReplaceBy first writes a new file beside path, and removes it on failure. The error is that of write, or names a file.
func ReplaceBy(path string, write func(to *bufio.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	mode := os.FileMode(permissions)
	if former, err := os.Stat(path); err == nil && former.Mode().IsRegular() {
		mode = former.Mode().Perm()
	}
	to := bufio.NewWriterSize(f, 64<<10)
	if err = write(to); err == nil {
		err = cmp.Or(to.Flush(), f.Chmod(mode), f.Sync())
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
