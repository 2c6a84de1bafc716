package process

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Redis is a redis-server process: on a free loopback port, empty, without persistence. Any goroutine.
type Redis struct {
	Addr string // "127.0.0.1:port"
	Port int

	binary string
	dir    string // working folder
	args   []string

	mu   sync.Mutex
	cmd  *exec.Cmd     // nil while killed
	done chan struct{} // closed once cmd is gone
}

// attempts bounds how often StartRedis tries another port: another process may take a free port before the server
// does.
const attempts = 5

// StartRedis starts the program binary on a free port and returns once it accepts
// connections. dir is its working folder; further arguments are passed on
// ("--maxclients", "10"); the first may be a configuration file. Kill ends it.
func StartRedis(binary, dir string, args ...string) (*Redis, error) {
	var err error
	for range attempts {
		s := &Redis{binary: binary, dir: dir, args: args}
		if s.Port, err = freePort(); err != nil {
			continue
		}
		s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
		if err = s.start(); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("start %s: %w", binary, err)
}

// Kill ends the server at once, as a crash would, and waits until it is gone.
// Killing it again does nothing.
func (s *Redis) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // fails only if it is gone already
	<-s.done
	s.cmd = nil
}

// Again kills the server if it runs, and starts it again, empty, on the same port.
func (s *Redis) Again() error {
	s.Kill()
	if err := s.start(); err != nil {
		return fmt.Errorf("restart %s: %w", s.binary, err)
	}
	return nil
}

// Process returns the server's process, or nil while it is killed.
func (s *Redis) Process() *os.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	return s.cmd.Process
}

func (s *Redis) start() error {
	var file []string // Redis reads a configuration file only if it is the first argument.
	rest := s.args
	if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		file, rest = rest[:1], rest[1:]
	}
	args := slices.Concat(file, []string{
		"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", "",
	}, rest)
	cmd := exec.Command(s.binary, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	ready := make(chan error, 1)
	go func() {
		defer close(done)
		ready <- awaitReady(stdout)
		_, _ = io.Copy(io.Discard, stdout) // or the pipe fills and the server blocks
		_ = cmd.Wait()                     // killed is how it should end
	}()
	if err := <-ready; err != nil {
		_ = cmd.Process.Kill()
		<-done
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd, s.done = cmd, done
	return nil
}

// awaitReady reads the server's log up to the line that says it accepts
// connections. If the log ends before, the error holds what it said.
func awaitReady(log io.Reader) error {
	var said bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(log, &said))
	for lines.Scan() {
		// Redis 5 to 7 say "Ready to accept connections", later ones add "tcp".
		// A sentinel says who it is.
		if strings.Contains(lines.Text(), "eady to accept connections") || strings.Contains(lines.Text(), "# Sentinel ID is ") {
			return nil
		}
	}
	return fmt.Errorf("the server ended before it was ready; it said:\n%s", said.String())
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
