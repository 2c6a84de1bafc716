package engineflags

import (
	"fmt"
	"os"

	"github.com/rankd/rankd/internal/command"
	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/trace"
)

// TraceFile is the file of --trace_file. A nil TraceFile takes nothing. One goroutine; its sink is for any.
type TraceFile struct {
	file   *os.File
	writer *trace.Writer
}

// OpenTraceFile creates the file. It returns nil without the flag.
func (e *Flags) OpenTraceFile() (*TraceFile, error) {
	if e.TraceFile == "" {
		return nil, nil
	}
	file, err := os.Create(e.TraceFile)
	if err != nil {
		return nil, fmt.Errorf("--trace_file: %w", err)
	}
	return &TraceFile{file, trace.NewWriter(file)}, nil
}

// Sink returns the sink that writes to the file, or nil.
func (f *TraceFile) Sink() trace.Sink {
	if f == nil {
		return nil
	}
	return f.writer
}

// Close writes what waits. It returns how many traces came too fast for the file.
func (f *TraceFile) Close() (dropped int, err error) {
	if f == nil {
		return 0, nil
	}
	dropped, err = f.writer.Close()
	if closing := f.file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		err = &command.RuntimeError{Err: fmt.Errorf("writing %s: %w", excerpt.Name(f.file.Name()), err)}
	}
	return dropped, err
}
