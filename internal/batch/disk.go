package batch

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// everybodyReads are the permissions of files: everybody reads, and the owner writes.
const everybodyReads = 0o644

// A disk makes each change of a file: "write", "sync", "cut", "rename", "remove". Immutable; any goroutine.
type disk struct {
	// step makes a change, or an error of its own. Nil: all changes are made. Tests end a job there.
	step func(change, path string, do func() error) error
}

func (d disk) do(change, path string, do func() error) error {
	if d.step == nil {
		return do()
	}
	return d.step(change, path, do)
}

// rename gives a file another name. It passes over one that is not there.
func (d disk) rename(from, to string) error {
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.do("rename", to, func() error { return os.Rename(from, to) })
}

// remove removes files. It passes over those that are not there.
func (d disk) remove(paths ...string) error {
	for _, path := range paths {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.do("remove", path, func() error { return os.Remove(path) }); err != nil {
			return err
		}
	}
	return nil
}

// syncFolder makes the names in the folder of path survive a crash.
func (d disk) syncFolder(path string) error {
	folder := filepath.Dir(path)
	return d.do("sync", folder, func() error {
		f, err := os.Open(folder)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// partial is the end of the name of a file that is not whole.
const partial = ".partial"

// An output is a file that grows under a name of its own, until keep gives it its name. One goroutine.
type output struct {
	disk  disk
	path  string // of the whole file
	file  *os.File
	to    *bufio.Writer
	bytes int64
}

// openOutput opens a file that goes on behind some bytes. What it has behind them is cut off.
func openOutput(d disk, path string, bytes int64) (*output, error) {
	f, err := os.OpenFile(path+partial, os.O_RDWR|os.O_CREATE, everybodyReads)
	if err != nil {
		return nil, err
	}
	o := newOutput(d, path, f)
	o.bytes = bytes
	size, err := f.Seek(0, 2)
	switch {
	case err == nil && size < bytes:
		err = fmt.Errorf("%s has %d bytes, and had %d at the last checkpoint; --restart ranks all again", f.Name(), size, bytes)
	case err == nil && size > bytes:
		err = d.do("cut", f.Name(), func() error { return f.Truncate(bytes) })
	}
	if err == nil {
		_, err = f.Seek(bytes, 0)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func newOutput(d disk, path string, f *os.File) *output {
	o := &output{disk: d, path: path, file: f}
	o.to = bufio.NewWriterSize(diskWriter{o}, 256<<10)
	return o
}

// A diskWriter writes to the file of an output.
type diskWriter struct{ *output }

// Write implements io.Writer.
func (w diskWriter) Write(text []byte) (n int, err error) {
	err = w.disk.do("write", w.file.Name(), func() error { n, err = w.file.Write(text); return err })
	return n, err
}

func (o *output) write(text []byte) error {
	o.bytes += int64(len(text))
	_, err := o.to.Write(text)
	return err
}

// sync returns once all that was written is on the disk.
func (o *output) sync() error {
	if err := o.to.Flush(); err != nil {
		return err
	}
	return o.disk.do("sync", o.file.Name(), o.file.Sync)
}

// keep gives the file its name, for good.
func (o *output) keep() error {
	if err := o.sync(); err != nil {
		return err
	}
	if err := o.disk.rename(o.file.Name(), o.path); err != nil {
		return err
	}
	return o.disk.syncFolder(o.path)
}

// close closes the file. The nil output has none.
func (o *output) close() {
	if o != nil {
		_ = o.file.Close()
	}
}

// keep gives a file of so many bytes, which is on the disk, its name, unless it has its name.
func (d disk) keep(path string, bytes int64) error {
	for _, at := range []string{path + partial, path} {
		switch info, err := os.Stat(at); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.Size() != bytes:
			return fmt.Errorf("%s has %d bytes, and had %d at the last checkpoint; --restart ranks all again", at, info.Size(), bytes)
		case at == path:
			return nil
		default:
			return d.rename(at, path)
		}
	}
	return fmt.Errorf("%s has gone; --restart ranks all again", path+partial)
}
