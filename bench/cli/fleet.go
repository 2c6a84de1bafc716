package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/bench/worker"
)

// fleet says which engines a benchmark runs, and how their processes are started.
type fleet struct {
	specs                      []engines.Spec
	cpuThreads                 int
	env, registryDir, modelDir string
	peers, peersDir            string
}

// startWorkers starts a process per engine. stop ends them, also after an error.
func (p *Program) startWorkers(ctx context.Context, o *fleet) (workers []*worker.Process, stop func(), err error) {
	var temporary string
	stop = func() {
		for _, w := range workers {
			if err := w.Close(); err != nil && ctx.Err() == nil {
				fmt.Fprintf(p.Stderr, "rankd: %v\n", err)
			}
		}
		if temporary != "" {
			_ = os.RemoveAll(temporary)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, stop, err
	}
	peers := o.peers
	for _, s := range o.specs {
		binary := self
		if s.Binary != "" {
			binary = s.Binary
		}
		argv := []string{binary, "bench", "worker", "--engine", s.Local().String(), "--cpu_threads", strconv.Itoa(o.cpuThreads),
			"--env", o.env, "--registry_dir", o.registryDir}
		if o.modelDir != "" { // An older build does not know the flag.
			argv = append(argv, "--model_dir", o.modelDir)
		}
		if s.Kind == engines.Peer {
			if peers == "" {
				if temporary, err = os.MkdirTemp("", "rankd-peers-"); err != nil {
					return workers, stop, err
				}
				peers = filepath.Join(temporary, "peer")
				if err := p.buildPeers(ctx, o.peersDir, peers); err != nil {
					return workers, stop, err
				}
			}
			argv = []string{peers, "--engine", s.Peer}
		}
		w, err := worker.Start(ctx, s.String(), argv...)
		if err != nil {
			return workers, stop, err
		}
		workers = append(workers, w)
	}
	return workers, stop, nil
}

func (p *Program) buildPeers(ctx context.Context, dir, binary string) error {
	fmt.Fprintf(p.Stderr, "rankd: building the peers in %s\n", dir)
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/peer")
	build.Dir, build.Stderr = dir, p.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the peers in %s (--peers names a program that is built already): %w", dir, err)
	}
	return nil
}
