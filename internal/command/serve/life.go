package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/serve/admin"
)

// tracesPatience is how long shutdown waits for the file of --trace_file to take the waiting traces.
const tracesPatience = time.Second

// serve runs a server from its start to its end.
func (p *Program) serve(ctx context.Context, o *options) (failure error) {
	signal.Ignore(syscall.SIGPIPE) // Without this, the next line of the log would end the server once stderr has no reader.
	log := p.logger(o.log)
	libraries := newLibraryLog(log, o.logPerSecond)
	defer libraries.takeOver()()
	store, err := o.store()
	if err != nil {
		return err
	}
	certificates, err := o.certificates()
	if err != nil {
		return err
	}
	p.Tune(o.CPUThreads)
	defer boundMemory()()
	traces, err := o.OpenTraceFile(func(err error) {
		if err != nil {
			log.Error("traces cannot be written, and are lost", "file", errtext.Name(o.TraceFile), "error", err)
		} else {
			log.Info("traces are written again", "file", errtext.Name(o.TraceFile))
		}
	})
	if err != nil {
		return err
	}
	defer func() {
		dropped, err := traces.Close(tracesPatience)
		if dropped > 0 {
			log.Warn("traces came faster than they could be written, and were dropped", "dropped", dropped)
		}
		failure = errors.Join(failure, err)
	}()
	var own rankd.Options
	closeServed, err := o.OpenLogs(&own, p.Stdout)
	if err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, closeServed()) }()
	redis := new(cmdline.EmbeddedRedis)
	defer redis.Close()
	engine, err := p.openEngine(o, log, redis, traces, &own)
	if err != nil {
		return err
	}
	defer func() {
		for _, loss := range [...]string{cmdline.ServedLoss(engine), cmdline.RecordLoss(engine)} {
			if loss != "" {
				log.Warn(loss)
			}
		}
	}()
	s := &server{log: log, libraries: libraries, engine: engine, store: store, certificates: certificates, outputs: map[string]admin.Output{"log": p.Stderr}}
	if traces != nil {
		s.outputs["trace_file"] = traces
	}
	if own.Served != nil {
		s.outputs["served_log"] = countedOutput(func() (dropped, failed uint64) { n := engine.ServedLines(); return n.Dropped, n.Failed })
	}
	if own.Record != nil {
		s.outputs["record"] = countedOutput(func() (dropped, failed uint64) { n := engine.Records(); return n.Dropped, n.Failed })
	}
	if err := s.build(o); err != nil {
		return errors.Join(err, engine.Close())
	}
	reloading := s.startReloading(o)
	defer reloading.stop()
	return s.run(ctx, o)
}

// run listens, serves until ctx ends or a front fails, and ends in order.
func (s *server) run(ctx context.Context, o *options) error {
	var serving sync.WaitGroup
	failed := make(chan error, len(s.entrances)+1) // has room for each front
	err := s.listen(o)
	if err == nil {
		for i := range s.entrances {
			e := &s.entrances[i]
			serving.Go(func() { failed <- s.serveFront(e) })
		}
		if s.admin != nil {
			serving.Go(func() { failed <- s.serveOperators() })
		}
		s.ready.Store(true)
		s.started()
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	if err == nil {
		s.leave(o)
	}
	err = errors.Join(err, s.end(o.ShutdownGrace))
	serving.Wait()
	return err
}

// serveFront serves one front. An error means that it can take no more connections.
func (s *server) serveFront(e *entrance) error {
	l := e.listener
	if e.tls != nil {
		l = tls.NewListener(l, e.tls)
	}
	if err := e.front.Serve(l); err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("%s: %w", e.name, err)}
	}
	return nil
}

func (s *server) serveOperators() error {
	if err := s.admin.Serve(s.operators); !errors.Is(err, http.ErrServerClosed) {
		return &cmdline.RuntimeError{Err: fmt.Errorf("admin: %w", err)}
	}
	return nil
}

// leave tells load balancers that the server ends, and keeps serving for as long as they may need to notice.
func (s *server) leave(o *options) {
	s.ready.Store(false)
	s.log.Info("draining", "delay_ms", o.drainDelay.Milliseconds(), "grace_ms", o.ShutdownGrace.Milliseconds())
	if s.http != nil {
		s.http.Leave()
	}
	time.Sleep(o.drainDelay)
}

// lastWords is how long HTTP clients have to read that their requests were given up.
const lastWords = time.Second

// end stops accepting, waits up to grace for the answers of requests in flight, and closes everything. The error says
// that requests were given up.
func (s *server) end(grace time.Duration) error {
	s.ready.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	var draining sync.WaitGroup
	for i := range s.entrances {
		e := &s.entrances[i]
		draining.Go(func() {
			if err := e.front.Drain(ctx); err != nil {
				s.log.Warn("connections are left, and the grace is over", "front", e.name)
			}
			if e.listener != nil {
				_ = e.listener.Close() // of a front that never served
			}
		})
	}
	draining.Wait()
	m := s.engine.Metrics()
	left := m.Live + m.Admission.Waiting
	if s.resp != nil {
		_ = s.resp.Close() // before the engine: its connections live on the engine's loop
	}
	_ = s.engine.Shutdown(ctx) // fails the requests that are left
	if s.http != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		_ = s.http.Drain(ctx)
		cancel()
		_ = s.http.Close()
	}
	if s.admin != nil {
		_ = s.admin.Close() // last, so that operators can watch the end
		if s.operators != nil {
			_ = s.operators.Close() // of a port that was never served
		}
	}
	s.service.FlushLog(context.Background()) // The log takes lines at once.
	s.log.Info("ended", "requests_left", left)
	if left > 0 {
		return &cmdline.RuntimeError{Err: fmt.Errorf("--shutdown_grace_ms was too short for %d requests", left)}
	}
	return nil
}

// Program is the program whose command this is. Its errors determine the exit status, as in package cmdline. One
// goroutine.
type Program struct {
	Stdout io.Writer            // takes the log of what is served, if a flag says so
	Stderr *fileio.Writer       // takes the log
	Tune   func(cpuThreads int) // sets the process up before the engine is opened
	Own    rankd.Options        // what the program brings: the compiler of plans, tasks, and folders where no flag names one
}

// logger returns the log in the form that the flag names.
func (p *Program) logger(form string) *slog.Logger {
	if form == logJSON {
		return slog.New(slog.NewJSONHandler(p.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(p.Stderr, nil))
}

// countedOutput says what the log of what is served has lost, or records. Any goroutine.
type countedOutput func() (dropped, failed uint64)

// Dropped implements admin.Output.
func (c countedOutput) Dropped() uint64 { dropped, _ := c(); return dropped }

// Failures implements admin.Output.
func (c countedOutput) Failures() uint64 { _, failed := c(); return failed }
