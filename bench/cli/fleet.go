package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/rankd/rankd/bench/backend"
	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/internal/process"
	"github.com/rankd/rankd/plan"
)

// fleet says which engines a benchmark runs, and how their processes are started.
type fleet struct {
	specs                      []engines.Spec
	cpuThreads                 int
	env, registryDir, modelDir string
	profiles                   string // a folder; empty: none are written
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
		if o.profiles != "" && s.Binary == "" {
			argv = append(argv, "--profiles", o.profiles)
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

// startRedis starts the Redis of a benchmark, and returns what is known of the machine. It says on stderr that the figures are mostly
// those of the embedded Redis, if they are.
func (p *Program) startRedis(ctx context.Context, o backend.Options) (*backend.Backend, harness.Facts, error) {
	facts := harness.ReadFacts()
	back, err := backend.Start(ctx, o)
	if err != nil {
		return nil, facts, err
	}
	if facts.Redis, facts.Embedded = back.Version, back.Embedded; back.Embedded {
		fmt.Fprintf(p.Stderr, "rankd: %s\n", harness.EmbeddedWarning)
	}
	return back, facts, nil
}

// measured adds to the errors of a worker that the round has failed.
func measured(report *worker.Report, err error) (*worker.Report, error) {
	if err == nil && report.Failure != "" {
		err = errors.New(report.Failure)
	}
	return report, err
}

// sound adds to the errors of a worker that the round has failed, or a request of it.
func sound(report *worker.Report, err error) (*worker.Report, error) {
	if err == nil {
		err = report.Sound()
	}
	return report, err
}

// startReplica starts "rankd serve" of a program; empty means this one.
func startReplica(ctx context.Context, program string, args ...string) (*process.Replica, error) {
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	return process.StartReplica(ctx, process.ReplicaOptions{Program: program, Args: args})
}

// writePlans writes artifacts, by name, into a folder.
func writePlans(folder string, artifacts map[string]string) error {
	for name, text := range artifacts {
		if err := os.WriteFile(filepath.Join(folder, name+plan.ArtifactSuffix), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
