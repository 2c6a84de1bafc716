// Package atomicfile replaces files by rename, so that a reader sees the old content or the new,
// and never half of one. The package has functions only; any goroutine may call them.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// permissions let everybody read and the owner write. os.CreateTemp lets the owner alone read.
const permissions = 0o644

// Write makes content the content of the file at path. It writes a new file beside path first, and
// removes that one if it fails. The error names a file.
func Write(path string, content []byte) error {
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
