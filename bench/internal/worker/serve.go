package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/rankd/rankd/bench/load"
)

// Open opens a target. Serve calls it while no other target of the worker is open.
type Open func(Setup) (load.Target, error)

// Serve reads rounds from in and runs them until in ends. A failure of a round goes into its
// report. The error comes from in or out.
func Serve(in io.Reader, out io.Writer, open Open) error {
	w := server{open: open}
	defer w.close()
	rounds, reports := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r Round
		if err := rounds.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a round: %w", err)
		}
		report, err := w.run(&r)
		if err != nil {
			report = &Report{Failure: err.Error()}
		}
		if err := reports.Encode(report); err != nil {
			return fmt.Errorf("write a report: %w", err)
		}
	}
}

// server runs the rounds of one worker. One goroutine.
type server struct {
	open   Open
	setup  Setup
	target load.Target // on setup; nil if none is open
}

func (w *server) close() {
	if w.target != nil {
		w.target.Close()
		w.target = nil
	}
}

// prepare makes sure that the target is the one for s.
func (w *server) prepare(s Setup) (err error) {
	if w.target != nil && w.setup == s {
		return nil
	}
	w.close()
	w.setup = s
	w.target, err = w.open(s)
	return err
}

func (w *server) run(r *Round) (*Report, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if err := w.prepare(r.Setup); err != nil {
		return nil, err
	}
	var driver load.Driver
	if r.Warmup > 0 {
		warm := r.Load
		warm.Requests, warm.Duration = 0, r.Warmup
		if _, err := driver.Run(context.Background(), w.target, warm); err != nil {
			return nil, err
		}
	}
	runtime.GC() // no round pays for the garbage of another
	var before, after counters
	var beginErr, endErr error
	reporting, _ := w.target.(load.Reporting)
	var asking *Probe
	if versioned, ok := w.target.(load.Versioned); ok && r.Ages {
		asking = BeginProbe(context.Background(), r.Redis, versioned)
	}
	driver.Begin = func() {
		if reporting != nil {
			reporting.BeginFigures()
		}
		before, beginErr = w.count(r)
	}
	driver.End = func() { after, endErr = w.count(r) }
	result, err := driver.Run(context.Background(), w.target, r.Load)
	var ages *Ages
	if asking != nil {
		var failed error
		ages, failed = asking.End()
		err = errors.Join(err, failed)
	}
	if err := errors.Join(err, beginErr, endErr); err != nil {
		return nil, err
	}
	report := &Report{
		Result: *result, Usage: after.used.Since(before.used), Ages: ages,
		RedisCPU: after.redis - before.redis, ServerCPU: after.server - before.server,
	}
	if after.traffic != nil {
		traffic := after.traffic.Sub(*before.traffic)
		report.Traffic = &traffic
	}
	if reporting != nil {
		report.Figures, err = json.Marshal(reporting.Figures())
	}
	return report, err
}

// counters are read before and after a load.
type counters struct {
	used    load.Usage
	redis   time.Duration
	server  time.Duration
	traffic *load.Traffic // nil if the target does not count
}

func (w *server) count(r *Round) (c counters, err error) {
	if target, ok := w.target.(load.Counting); ok {
		traffic := target.Traffic()
		c.traffic = &traffic
	}
	var serverErr error
	c.redis, err = processCPU(r.RedisPID)
	for _, pid := range r.RedisPIDs {
		one, failed := processCPU(pid)
		c.redis, err = c.redis+one, errors.Join(err, failed)
	}
	c.server, serverErr = processCPU(r.ServerPID)
	c.used = load.ReadUsage()
	return c, errors.Join(err, serverErr)
}

// processCPU returns the CPU time of a process, zero if there is none.
func processCPU(pid int) (time.Duration, error) {
	if pid == 0 {
		return 0, nil
	}
	return load.ProcessCPU(pid)
}
