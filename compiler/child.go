package compiler

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// childVariable is the environment variable that makes a process a compiler's child.
const childVariable = "RANKD_COMPILER_CHILD"

// File descriptors of the pipes between a compiler and its child. Standard input and output stay
// free, so a program that prints before it calls Main does no harm.
const (
	childIn  = 3
	childOut = 4
)

// If this process is a compiler's child, Main serves the compiler and then ends the process. Otherwise it does
// nothing. A program that compiles plans calls it first in main, and TestMain of its tests does, too.
func Main() {
	if os.Getenv(childVariable) == "" {
		return
	}
	in, out := os.NewFile(childIn, "requests"), os.NewFile(childOut, "answers")
	if in == nil || out == nil {
		fmt.Fprintln(os.Stderr, "compiler: "+childVariable+" is set, but this process is not a child")
		os.Exit(exitFault)
	}
	if err := serve(in, out); err != nil {
		fmt.Fprintln(os.Stderr, "compiler:", err)
		os.Exit(exitFault)
	}
	os.Exit(0)
}

// Exit statuses of a child.
const (
	exitFault   = 2
	exitExpired = 3 // after it has reported that a plan took too much
)

// greeting is a child's first message.
type greeting struct {
	Ready bool `json:"ready"`
}

// setup is the first message to a child.
type setup struct {
	Language *Language
	Limits   limits
}

// limits bound the work on one plan.
type limits struct {
	Timeout     time.Duration
	MemoryBytes int64
}

// job asks a child to compile one plan, or to run the tests of one file.
type job struct {
	Label  string
	Source Source
	Test   bool
}

// serve answers jobs until the input ends.
func serve(in io.Reader, out io.Writer) error {
	c := &child{decoder: json.NewDecoder(in), encoder: json.NewEncoder(out)}
	if err := c.encoder.Encode(greeting{Ready: true}); err != nil {
		return err
	}
	var s setup
	if err := c.decoder.Decode(&s); err != nil {
		return err
	}
	c.limits = s.Limits
	debug.SetMaxStack(stackMaxBytes)
	limitData(c.limits.MemoryBytes)
	for {
		var j job
		if err := c.decoder.Decode(&j); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := c.work(s.Language, &j); err != nil {
			return err
		}
	}
}

// stackMaxBytes bounds the Go stack of a plan: the parsers recurse.
const stackMaxBytes = 256 << 20

// child is the side of a child process. One goroutine at a time, except finish.
type child struct {
	decoder *json.Decoder
	limits  limits

	mu      sync.Mutex
	encoder *json.Encoder // guarded by mu
	busy    *unit         // guarded by mu; nil once its answer is on its way
}

// work compiles one plan under the eyes of a watchdog.
func (c *child) work(language *Language, j *job) error {
	if heapBytes() > c.limits.MemoryBytes/4 {
		runtime.GC() // memory of the last plan does not count for this one
	}
	u := newUnit(language, j.Label, j.Source)
	if j.Test {
		u.testing = &testRun{child: c, unit: u}
	}
	c.mu.Lock()
	c.busy = u
	c.mu.Unlock()
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.watch(u, stop)
	}()
	u.compileSafely()
	err := c.finish(u, func() answer { return u.answer })
	close(stop)
	<-stopped
	return err
}

// finish sends the answer to a job, unless one was sent already.
func (c *child) finish(u *unit, answer func() answer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy != u {
		return nil
	}
	c.busy = nil
	return c.encoder.Encode(answer())
}

const (
	// watchInterval is how often the watchdog checks.
	watchInterval = 5 * time.Millisecond
	// interruptGrace is how long a plan has to end after an interrupt. Only plan code reacts to it, not a library
	// function that the code has called.
	interruptGrace = 200 * time.Millisecond
)

// watch ends the plan at its time limit, with an interrupt if the plan reacts to it. At the memory limit, or if the
// plan does not react, watch ends the process. Its answer names the statement that ran.
func (c *child) watch(u *unit, stop <-chan struct{}) {
	t, turns := timekeeper{limit: c.limits.Timeout, begun: time.Now()}, int64(0)
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	slow := interruption{"timeout", "the plan takes longer than " + seconds(c.limits.Timeout) + " to compile", "build runs once at compile time: look for a loop without an end"}
	large := interruption{"memory", fmt.Sprintf("the plan needs more than %d MiB to compile", c.limits.MemoryBytes>>20),
		"build runs once at compile time: look for an array or a text that grows"}
	if u.testing != nil {
		slow.message = "the test computes longer than " + seconds(c.limits.Timeout) + " without a request"
		slow.hint, large.message, large.hint = wordsOfTests.Replace(slow.hint), wordsOfTests.Replace(large.message), wordsOfTests.Replace(large.hint)
	}
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		vm := u.running.Load()
		if now := u.turns.Load(); now != turns || now%2 != 0 {
			t.begun, t.told, turns = time.Now(), false, now // A test has the time from one request to the next.
		}
		verdict := t.look(time.Now(), vm != nil)
		switch {
		case heapBytes() > c.limits.MemoryBytes:
			c.expire(u, large)
		case verdict == overdue:
			c.expire(u, slow)
		case verdict == due && vm != nil:
			vm.Interrupt(slow)
		}
	}
}

// timekeeper says when a plan has used up its time. Reading and parsing have the same limit as the plan's code. One
// goroutine at a time.
type timekeeper struct {
	limit   time.Duration
	begun   time.Time // of the reading, then of the code
	running bool      // whether the code runs
	told    bool      // that the time is up
}

// The verdicts of a timekeeper.
type verdict int

const (
	inTime  verdict = iota
	due             // the time is up; said once
	overdue         // and the grace, too
)

// look records the time, and whether the plan's code runs.
func (t *timekeeper) look(now time.Time, running bool) verdict {
	if running && !t.running {
		t.begun, t.running, t.told = now, true, false
	}
	switch elapsed := now.Sub(t.begun); {
	case elapsed > t.limit+interruptGrace:
		return overdue
	case elapsed > t.limit && !t.told:
		t.told = true
		return due
	}
	return inTime
}

// expire answers for a plan that does not end, and ends the process.
func (c *child) expire(u *unit, why interruption) {
	if c.finish(u, func() answer { return u.expired(why) }) == nil {
		os.Exit(exitExpired)
	}
}

var heapSamples = []string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/stacks:bytes"}

// heapBytes returns how much memory objects and stacks take.
func heapBytes() int64 {
	samples := make([]metrics.Sample, len(heapSamples))
	for i, name := range heapSamples {
		samples[i].Name = name
	}
	metrics.Read(samples)
	total := int64(0)
	for _, s := range samples {
		total += int64(s.Value.Uint64())
	}
	return total
}

// internalHint is the hint of faults that no plan should be able to cause.
const internalHint = "this is a fault of rankd; please report it with the plan"

// compileSafely compiles the plan and turns a panic of ours into an error.
func (u *unit) compileSafely() {
	defer func() {
		if p := recover(); p != nil {
			u.answer = answer{Errors: []Diagnostic{{
				Severity: Error, Code: "internal", File: u.folder.entry, Line: 1, Column: 1,
				Message: fmt.Sprintf("the compiler failed: %v", p), Hint: internalHint,
			}}}
			fmt.Fprintf(os.Stderr, "compiler: %v\n%s", p, debug.Stack())
		}
	}()
	u.compile()
}
