package served

import (
	"bytes"

	"github.com/rankd/rankd/internal/fileio"
)

// Files is an io.Writer of lines to files in a folder. It begins a new file when one has its size. A line that does not fit on
// the disk is cut out again, so that files have whole lines. One goroutine.
type Files struct{ files *fileio.Files }

// NewFiles returns a writer to files of about that size in a folder, which it makes.
func NewFiles(dir string, max int64) (*Files, error) {
	files, err := fileio.NewFiles(dir, "served", ".jsonl", max, func(p []byte) int { return bytes.LastIndexByte(p, '\n') + 1 })
	if err != nil {
		return nil, err
	}
	return &Files{files}, nil
}

// Write implements io.Writer. After an error n is the end of the last whole line that the file has.
func (f *Files) Write(p []byte) (n int, err error) {
	if f.files.Full() {
		if err := f.files.Next(); err != nil {
			return 0, err
		}
	}
	return f.files.Write(p)
}

// Close closes the file.
func (f *Files) Close() error { return f.files.Close() }
