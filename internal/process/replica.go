package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// ReplicaOptions say which server to start. Immutable.
type ReplicaOptions struct {
	// Program is the path of the program rankd.
	Program string
	// Args are the flags of "rankd serve". StartReplica adds the log's form, and addresses where Args name none: free ports of 127.0.0.1.
	Args []string
	// Env is added to the environment, in the form "name=value".
	Env []string
}

// Replica is a process that serves. Any goroutine.
type Replica struct {
	// HTTP, RESP and Admin are the addresses of the fronts, "host:port". Empty means that the front is off.
	HTTP, RESP, Admin string

	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone

	mu  sync.Mutex
	log []string // the last lines of stderr
	err error    // how it ended; valid after ended
}

// logLines is the number of lines of stderr that an error quotes.
const logLines = 100

// StartReplica starts a server and returns once it is ready. The end of ctx kills it. The error quotes what the server said.
func StartReplica(ctx context.Context, o ReplicaOptions) (*Replica, error) {
	args := []string{"serve", "--log", "json"}
	for _, front := range []string{"--listen", "--resp", "--admin"} {
		if !names(o.Args, front) {
			args = append(args, front, "127.0.0.1:0")
		}
	}
	r := &Replica{cmd: exec.CommandContext(ctx, o.Program, append(args, o.Args...)...), ended: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), o.Env...)
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start rankd serve: %w", err)
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start rankd serve: %w", err)
	}
	ready := make(chan struct{})
	go r.watch(stderr, ready)
	select {
	case <-ready:
		return r, nil
	case <-r.ended:
		return nil, fmt.Errorf("rankd serve ended before it was ready: %w", r.Err())
	}
}

// names reports whether args give the flag, as "--flag value" or "--flag=value".
func names(args []string, flag string) bool {
	for _, arg := range args {
		if arg == flag || strings.HasPrefix(arg, flag+"=") {
			return true
		}
	}
	return false
}

// record is a line of the log that says where a front listens, or that the server is ready.
type record struct {
	Msg     string `json:"msg"`
	Front   string `json:"front"`
	Address string `json:"address"`
}

// watch reads the log until the process ends. It closes ready when the log says so.
func (r *Replica) watch(stderr io.Reader, ready chan struct{}) {
	defer close(r.ended)
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimSpace(line); line != "" {
			r.keep(line)
		}
		if err != nil {
			break // the process has closed it
		}
		var said record
		if ready == nil || json.Unmarshal([]byte(line), &said) != nil {
			continue
		}
		switch said.Msg {
		case "listening":
			r.listening(said)
		case "ready":
			close(ready)
			ready = nil
		}
	}
	err := r.cmd.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// listening notes the address of a front. StartReplica reads it once the server is ready.
func (r *Replica) listening(said record) {
	switch said.Front {
	case "http":
		r.HTTP = said.Address
	case "resp":
		r.RESP = said.Address
	case "admin":
		r.Admin = said.Address
	}
}

func (r *Replica) keep(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, line)
	if len(r.log) > 2*logLines {
		r.log = append(r.log[:0], r.log[logLines:]...)
	}
}

// Log returns the last lines of what the server said.
func (r *Replica) Log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log[max(0, len(r.log)-logLines):], "\n")
}

// Pid returns the process id.
func (r *Replica) Pid() int { return r.cmd.Process.Pid }

// Signal sends the process a signal. It fails if the process has ended.
func (r *Replica) Signal(s os.Signal) error { return r.cmd.Process.Signal(s) }

// Ended is closed when the process is gone.
func (r *Replica) Ended() <-chan struct{} { return r.ended }

// Err returns how the process ended: nil for status 0, otherwise an error that quotes the log. It waits for the end.
func (r *Replica) Err() error {
	<-r.ended
	r.mu.Lock()
	err := r.err
	r.mu.Unlock()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; it said:\n%s", err, r.Log())
}

// Kill ends the process at once, as a crash would, and waits until it is gone. Killing it again does nothing.
func (r *Replica) Kill() {
	_ = r.cmd.Process.Kill() // fails only if it is gone already
	<-r.ended
}

// Stop asks the process to end in order (SIGTERM) and returns how it did. When ctx ends, it kills the process.
func (r *Replica) Stop(ctx context.Context) error {
	if err := r.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-r.ended:
		return r.Err()
	case <-ctx.Done():
		r.Kill()
		return fmt.Errorf("rankd serve did not end: %w; it said:\n%s", ctx.Err(), r.Log())
	}
}

// Build builds the program into a folder and returns its path. race adds the race detector.
func Build(ctx context.Context, folder string, race bool) (program string, err error) {
	const module = "github.com/rankd/rankd"
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	root, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", module, err)
	}
	program = filepath.Join(folder, "rankd")
	args := []string{"build", "-buildvcs=false", "-o", program}
	if race {
		program += "-race"
		args = []string{"build", "-buildvcs=false", "-race", "-o", program}
	}
	build := exec.CommandContext(ctx, "go", append(args, "./cmd/rankd")...)
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build rankd: %w\n%s", err, out)
	}
	return program, nil
}
