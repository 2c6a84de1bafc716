package cmdline

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/trace"
)

// TraceFile is the file of --trace_file. A nil TraceFile takes nothing. One goroutine; any goroutine may use its
// sink.
type TraceFile struct {
	*trace.Writer
	file *os.File
}

// OpenTraceFile creates the file. It returns nil without the flag. As with trace.NewWriter, another goroutine calls
// report when writing begins to fail and when it works again.
func (e *EngineFlags) OpenTraceFile(report func(error)) (*TraceFile, error) {
	if e.TraceFile == "" {
		return nil, nil
	}
	file, err := os.Create(e.TraceFile)
	if err != nil {
		return nil, fmt.Errorf("--trace_file: %w", err)
	}
	return &TraceFile{trace.NewWriter(file, report), file}, nil
}

// Sink returns the sink that writes to the file, or nil.
func (f *TraceFile) Sink() trace.Sink {
	if f == nil {
		return nil
	}
	return f.Writer
}

// Close writes what waits for at most that time. It returns how many traces came too fast for the file.
func (f *TraceFile) Close(patience time.Duration) (dropped int, err error) {
	if f == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("it took too little in %v", patience))
	defer cancel()
	dropped, err = f.Shutdown(ctx)
	if closing := f.file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		err = &RuntimeError{Err: fmt.Errorf("writing %s: %w", errtext.Name(f.file.Name()), err)}
	}
	return dropped, err
}
