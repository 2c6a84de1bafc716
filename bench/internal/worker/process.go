package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
)

// Process is a worker that this process has started. One goroutine at a time.
type Process struct {
	name   string
	cmd    *exec.Cmd
	rounds io.WriteCloser
	out    *json.Decoder
	stderr tail
}

// Start starts a worker by its command line. The end of ctx kills it. Errors quote name.
func Start(ctx context.Context, name string, argv ...string) (*Process, error) {
	p := &Process{name: name, cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	var err error
	if p.rounds, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("worker %s: %w", name, err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("worker %s: %w", name, err)
	}
	p.out = json.NewDecoder(out)
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("worker %s: %w", name, err)
	}
	return p, nil
}

// Run has the worker run a round. The error says that the worker has failed. If only the round
// has failed, the report says so.
func (p *Process) Run(r *Round) (*Report, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if _, err := p.rounds.Write(append(line, '\n')); err != nil {
		return nil, p.failed(err)
	}
	var report Report
	if err := p.out.Decode(&report); err != nil {
		return nil, p.failed(err)
	}
	return &report, nil
}

// Close ends the worker and waits for its end.
func (p *Process) Close() error {
	_ = p.rounds.Close() // fails if the worker has ended already
	if err := p.cmd.Wait(); err != nil {
		return p.failed(err)
	}
	return nil
}

// failed adds the worker's last messages to err.
func (p *Process) failed(err error) error {
	if said := p.stderr.String(); said != "" {
		return fmt.Errorf("worker %s: %w; it said:\n%s", p.name, err, said)
	}
	return fmt.Errorf("worker %s: %w", p.name, err)
}

// tail keeps the last tailMax bytes written to it. Any goroutine.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// tailMax is enough for a panic with its stack.
const tailMax = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailMax; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(bytes.ToValidUTF8(t.text, nil)))
}
