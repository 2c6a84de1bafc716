package record

import (
	"errors"

	"github.com/rankd/rankd/internal/fileio"
)

// Files writes requests to files in a folder, of which each stands alone: record-UTC-HOST-PID-NUMBER.rec. A file that a process writes is
// locked. After an error, such as that of a full disk, the next request goes to another file. One goroutine.
type Files struct {
	files   *fileio.Files
	header  func() Header
	writer  *Writer // nil: the next request begins a file
	tried   uint64  // calls of Add
	written uint64  // requests in frames of files before this one
}

// Ending is how the names of files end.
const Ending = ".rec"

// NewFiles returns a writer to files of about max bytes in a folder, which it makes. header is called for each file.
func NewFiles(dir string, max int64, header func() Header) (*Files, error) {
	files, err := fileio.NewFiles(dir, "record", Ending, max, nil)
	if err != nil {
		return nil, err
	}
	f := &Files{files: files, header: header}
	if err := f.begin(); err != nil {
		return nil, err
	}
	return f, nil
}

// begin writes the header of a file that is empty.
func (f *Files) begin() error {
	w, err := NewWriter(f.files, f.header())
	if err != nil {
		f.files.Remove()
		return err
	}
	f.writer = w
	return nil
}

// Add adds a request, as Writer.Add. If a write fails, the requests since the last frame are lost.
func (f *Files) Add(r *Request, from Source) error {
	f.tried++
	err := f.ready()
	if err == nil {
		err = f.settle(f.writer.Add(r, from))
	}
	if errors.Is(err, ErrFull) {
		if err = f.end(); err == nil {
			err = f.ready()
		}
		if err == nil {
			err = f.settle(f.writer.Add(r, from))
		}
	}
	return err
}

// ready begins a file if there is none, or if this one has its size and a frame has just ended.
func (f *Files) ready() error {
	if w := f.writer; w != nil && len(w.entries) == 0 && f.files.Full() {
		if err := f.end(); err != nil {
			return err
		}
	}
	if f.writer != nil {
		return nil
	}
	if err := f.files.Next(); err != nil {
		return err
	}
	return f.begin()
}

// Flush writes what waits as a frame.
func (f *Files) Flush() error {
	if f.writer == nil {
		return nil
	}
	return f.settle(f.writer.Flush())
}

// end ends the file.
func (f *Files) end() error {
	if f.writer == nil {
		return nil
	}
	err := f.writer.Close()
	_ = f.settle(f.writer.err)
	return err
}

// settle gives the file up if a write has failed, or if it has ended.
func (f *Files) settle(err error) error {
	if f.writer.err != nil {
		f.written, f.writer = f.written+f.writer.requests-f.writer.waiting, nil
		_ = f.files.Close() // The write has reported its error.
	}
	return err
}

// Counts returns how many requests are in files, and how many are lost to errors or were refused. The others wait for their frame.
func (f *Files) Counts() (written, lost uint64) {
	waiting := uint64(0)
	if written = f.written; f.writer != nil {
		waiting = f.writer.waiting
		written += f.writer.requests - waiting
	}
	return written, f.tried - written - waiting
}

// Close ends the file.
func (f *Files) Close() error { return errors.Join(f.end(), f.files.Close()) }
