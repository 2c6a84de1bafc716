package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rankd/rankd/bench/caller"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/backend"
	"github.com/rankd/rankd/bench/internal/engines"
	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/internal/process"
	"github.com/rankd/rankd/plan"
)

// rig is what an experiment has started, and ends after it. One goroutine.
type rig struct {
	*Program
	ctx   context.Context
	facts harness.Facts
	ends  []func()
}

func (p *Program) newRig(ctx context.Context) *rig {
	return &rig{Program: p, ctx: ctx, facts: harness.ReadFacts()}
}

// measure runs an experiment. start starts what it needs on a rig, and tell reports the results.
func (p *Program) measure(
	ctx context.Context, start func(*rig) (*harness.Experiment, error), tell func([][]*harness.Result) *harness.Report,
) (*harness.Report, error) {
	r := p.newRig(ctx)
	defer r.end()
	e, err := start(r)
	if err != nil {
		return nil, err
	}
	e.Progress = p.Stderr
	results, err := e.Measure(ctx)
	if err != nil {
		return nil, err
	}
	report := tell(results)
	report.Facts = r.facts
	return report, nil
}

// later has end call a function. The last one comes first.
func (r *rig) later(end func()) { r.ends = append(r.ends, end) }

func (r *rig) end() {
	for _, end := range slices.Backward(r.ends) {
		end()
	}
}

// say tells what takes a while.
func (r *rig) say(format string, args ...any) { fmt.Fprintf(r.Stderr, "rankd: "+format+"\n", args...) }

// folder makes a temporary folder.
func (r *rig) folder() (string, error) {
	folder, err := os.MkdirTemp("", "rankd-bench-")
	r.later(func() { _ = os.RemoveAll(folder) })
	return folder, err
}

// redis starts the Redis of a benchmark. It says on stderr that the figures are mostly those of the embedded Redis, if they are.
func (r *rig) redis(o backend.Options) (*backend.Backend, error) {
	back, err := backend.Start(r.ctx, o)
	if err != nil {
		return nil, err
	}
	r.later(back.Close)
	if r.facts.Redis, r.facts.Embedded = back.Version, back.Embedded; back.Embedded {
		r.say("%s", harness.EmbeddedWarning)
	}
	return back, nil
}

// fleet says which engines a benchmark runs, and how their processes are started.
type fleet struct {
	specs                      []engines.Spec
	cpuThreads                 int
	env, registryDir, modelDir string
	keptDir                    string // of plans whose rows the engines keep for the plan; empty: there are none
	now                        string // what now() is; empty: the present
	profiles                   string // a folder; empty: none are written
	peers, peersDir            string
}

// crew is a process per engine. One goroutine.
type crew []*worker.Process

func (c crew) run(engine int, r *worker.Round) (*worker.Report, error) { return c[engine].Run(r) }

// workers starts a process per engine.
func (r *rig) workers(o *fleet) (workers crew, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	peers := o.peers
	for _, s := range o.specs {
		argv := []string{cmp.Or(s.Binary, self), "bench", "worker", "--engine", s.Local().String(), "--cpu_threads", strconv.Itoa(o.cpuThreads),
			"--env", o.env, "--registry_dir", o.registryDir}
		if o.modelDir != "" { // An older build does not know the flag.
			argv = append(argv, "--model_dir", o.modelDir)
		}
		if o.keptDir != "" {
			argv = append(argv, "--plan_dir", o.keptDir)
		}
		if o.now != "" {
			argv = append(argv, "--now", o.now)
		}
		if o.profiles != "" && s.Binary == "" {
			argv = append(argv, "--profiles", o.profiles)
		}
		if s.Kind == engines.Peer {
			if peers == "" {
				if peers, err = r.buildPeers(o.peersDir); err != nil {
					return nil, err
				}
			}
			argv = []string{peers, "--engine", s.Peer}
		}
		w, err := worker.Start(r.ctx, s.String(), argv...)
		if err != nil {
			return nil, err
		}
		r.later(func() {
			if err := w.Close(); err != nil && r.ctx.Err() == nil {
				r.say("%v", err)
			}
		})
		workers = append(workers, w)
	}
	return workers, nil
}

// buildPeers builds the program that runs the peers.
func (r *rig) buildPeers(dir string) (program string, err error) {
	r.say("building the peers in %s", dir)
	folder, err := r.folder()
	if err != nil {
		return "", err
	}
	program = filepath.Join(folder, "peer")
	build := exec.CommandContext(r.ctx, "go", "build", "-o", program, "./cmd/peer")
	build.Dir, build.Stderr = dir, r.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building the peers in %s (--peers names a program that is built already): %w", dir, err)
	}
	return program, nil
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

// server is a "rankd serve" under load. Immutable.
type server struct {
	resp, http string // addresses of its fronts
	pid        int
}

func (s *server) addr(front string) string {
	if front == caller.HTTP {
		return s.http
	}
	return s.resp
}

// startServer starts "rankd serve" of a program; empty means this one.
func startServer(ctx context.Context, program string, args ...string) (s server, stop func(), err error) {
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return s, nil, err
		}
	}
	r, err := process.StartReplica(ctx, process.ReplicaOptions{Program: program, Args: args})
	if err != nil {
		return s, nil, err
	}
	return server{r.RESP, r.HTTP, r.Pid()}, r.Kill, nil
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
