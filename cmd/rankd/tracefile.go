package main

import (
	"fmt"
	"io"
	"os"

	"github.com/rankd/rankd/internal/command"
	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/trace"
)

// traceFile is the file of --trace_file. A nil traceFile takes nothing.
type traceFile struct {
	file   *os.File
	writer *trace.Writer
}

// openTraceFile creates the file. It returns nil for an empty path.
func openTraceFile(path string) (*traceFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--trace_file: %w", err)
	}
	return &traceFile{file, trace.NewWriter(file)}, nil
}

// sink returns the sink that writes to the file, or nil.
func (f *traceFile) sink() trace.Sink {
	if f == nil {
		return nil
	}
	return f.writer
}

// close writes what waits. It reports on stderr how many traces came too fast for the file.
func (f *traceFile) close(stderr io.Writer) error {
	if f == nil {
		return nil
	}
	dropped, err := f.writer.Close()
	if closing := f.file.Close(); err == nil {
		err = closing
	}
	if dropped > 0 {
		fmt.Fprintf(stderr, "rankd: --trace_file: %d traces were dropped, since they came faster than they could be written\n", dropped)
	}
	if err != nil {
		return &command.RuntimeError{Err: fmt.Errorf("writing %s: %w", excerpt.Name(f.file.Name()), err)}
	}
	return nil
}
