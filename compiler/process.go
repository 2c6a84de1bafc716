package compiler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Bounds of the parent's patience.
const (
	startTimeout = 30 * time.Second // until a child greets
	killGrace    = 3 * time.Second  // beyond a plan's time limit
	stderrKept   = 4 << 10
)

// process is a child process, as its parent sees it. One goroutine at a time.
type process struct {
	command *exec.Cmd
	in      *os.File // requests
	out     *os.File // answers
	encoder *json.Encoder
	decoder *json.Decoder
	stderr  *head
}

// head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, stderrKept-h.Len()))])
	return len(p), nil
}

// startProcess starts a child and waits until it is ready.
func startProcess(command []string, s setup) (_ *process, err error) {
	name, args := "", []string(nil)
	if len(command) > 0 {
		name, args = command[0], command[1:]
	} else if name, err = os.Executable(); err != nil {
		return nil, err
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		_ = theirIn.Close()
		_ = ourOut.Close()
		return nil, err
	}
	p := &process{in: ourOut, out: ourIn, encoder: json.NewEncoder(ourOut), decoder: json.NewDecoder(ourIn), stderr: &head{}}
	p.command = exec.Command(name, args...)
	p.command.ExtraFiles = []*os.File{theirIn, theirOut}
	p.command.Stderr = p.stderr
	p.command.Env = []string{childVariable + "=1"} // nothing of this process's secrets
	err = p.command.Start()
	_ = theirIn.Close()
	_ = theirOut.Close()
	if err != nil {
		_ = ourIn.Close()
		_ = ourOut.Close()
		return nil, err
	}
	_ = p.out.SetReadDeadline(time.Now().Add(startTimeout))
	var hello greeting
	if err := p.decoder.Decode(&hello); err != nil || !hello.Ready {
		p.kill()
		return nil, fmt.Errorf("%s did not become a compiler's child; a program that compiles plans calls compiler.Main first in main%s",
			name, p.lastWords())
	}
	if err := p.encoder.Encode(s); err != nil {
		p.kill()
		return nil, fmt.Errorf("compiler's child: %w", err)
	}
	return p, nil
}

// compile sends one job and waits for its answer. The process is usable afterwards only if alive is
// true.
func (p *process) compile(j job, timeout time.Duration) (a answer, alive bool) {
	a, err := p.exchange(j, timeout)
	if err != nil {
		return p.died(j, err), false
	}
	return p.answered(a)
}

// exchange sends a message and waits for the one that follows it.
func (p *process) exchange(message any, timeout time.Duration) (a answer, err error) {
	_ = p.out.SetReadDeadline(time.Now().Add(2*timeout + killGrace))
	if err = p.encoder.Encode(message); err == nil {
		err = p.decoder.Decode(&a)
	}
	return a, err
}

// answered returns an answer, and whether the process is usable after it.
func (p *process) answered(a answer) (_ answer, alive bool) {
	for i := range a.Errors {
		if code := a.Errors[i].Code; code == "timeout" || code == "memory" {
			return a, false // the child may have ended itself, and its heap is large
		}
	}
	return a, true
}

// died returns the answer for a plan that killed its child.
func (p *process) died(j job, err error) answer {
	p.kill()
	d := Diagnostic{Severity: Error, File: j.Source.File, Line: 1, Column: 1}
	switch words := p.stderr.String(); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		d.Code, d.Message = "timeout", "the plan takes too long to compile"
	case strings.Contains(words, "stack exceeds"), strings.Contains(words, "stack overflow"):
		d.Code, d.Message = "too-deep", "the plan nests too deep for the compiler"
	case strings.Contains(words, "out of memory"), strings.Contains(words, "cannot allocate memory"):
		d.Code, d.Message = "memory", "the plan needs too much memory to compile"
	default:
		d.Code, d.Message = "internal", "the plan ended the compiler's process"+p.lastWords()
	}
	d.Excerpt = firstLine(j.Source)
	d.Hint = "build runs once at compile time: look for a loop without an end, or data that grows"
	if j.Test {
		d.Message, d.Hint = wordsOfTests.Replace(d.Message), wordsOfTests.Replace(d.Hint)
	}
	return answer{Errors: []Diagnostic{d}}
}

// firstLine returns the first line of a source, as far as it can be read.
func firstLine(source Source) string {
	text := source.Text
	if text == nil {
		file, err := os.Open(source.Path())
		if err != nil {
			return ""
		}
		defer file.Close()
		text, _ = io.ReadAll(io.LimitReader(file, stderrKept))
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return strings.ToValidUTF8(string(bytes.TrimSuffix(line, []byte("\r"))), "\ufffd")
}

// lastWords returns the first line that the child wrote to stderr, as ": line".
func (p *process) lastWords() string {
	line, _, _ := strings.Cut(strings.TrimSpace(p.stderr.String()), "\n")
	if line == "" {
		return ""
	}
	return ": " + cutText(line)
}

// kill ends the child, which has nothing left to do. With the race detector it would take a second to end by itself.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.in.Close()
	_ = p.out.Close()
	_ = p.command.Wait() // the exit status of a killed process means nothing
}
