package fileio

import (
	"errors"
	"os"
	"path/filepath"
)

// permissions let everybody read and the owner write. os.CreateTemp lets the owner alone read.
const permissions = 0o644

// Replace writes content to the file at path by rename: a reader sees either the old content or the new. It first
// writes a new file beside path, and removes it on failure. The error names a file.
func Replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(permissions), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
