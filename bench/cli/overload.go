package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/backend"
	"github.com/rankd/rankd/bench/compare"
	"github.com/rankd/rankd/bench/engines"
	"github.com/rankd/rankd/bench/overload"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/process"
)

// overloadOptions are the flags of bench overload. Immutable once checked.
type overloadOptions struct {
	scenarios, fronts []string
	redisServer       string
	program           string
	cpuThreads        int
	asJSON            bool
	overload.Settings
}

func (p *Program) overloadCommand(ctx context.Context) *cobra.Command {
	var o overloadOptions
	var names []string
	var long strings.Builder
	long.WriteString(`Measure "rankd serve" while it is asked for more than it can do. Each round first finds the
capacity of a front in a closed loop. Then requests arrive at several times that rate, whatever the
server does. Latencies count from when a request was due. A verdict says whether refusals came soon,
and whether the requests that were admitted answered within their deadline.
`)
	for _, s := range overload.Scenarios() {
		names = append(names, s.Name)
		fmt.Fprintf(&long, "\n  %-12s %s", s.Name, s.Doc)
	}
	var check func() error
	cmd := &cobra.Command{
		Use: "overload", Args: cobra.NoArgs, Long: long.String(),
		Short:   "Measure rankd serve beyond its capacity",
		Example: "  rankd bench overload\n  rankd bench overload --scenario busy --fronts http --times 10",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(check(), o.check()); err != nil {
				return err
			}
			return p.benchOverload(ctx, &o)
		},
	}
	check = addRows(cmd,
		scenarioRow(&o.scenarios, names),
		frontsRow(&o.fronts),
		cmdline.Setting{Name: "times", To: &o.Times, Default: 3.0, Help: "the `factor` of the capacity at which requests arrive"},
		roundsRow(&o.Rounds, 6),
		cmdline.Setting{Name: "duration", To: &o.Duration, Default: 3 * time.Second, Least: 1, Most: int64(time.Hour), Help: "how `long` requests arrive in a round"},
		cmdline.Setting{Name: "warmup", To: &o.Warmup, Default: 300 * time.Millisecond, Most: int64(time.Hour), Help: "how `long` each load runs before it is measured"},
		engineRow("cpu_threads", &o.cpuThreads),
		redisServerRow(&o.redisServer),
		programRow(&o.program),
		jsonRow(&o.asJSON, ", a line for each scenario and front, then a line for each aim"),
	)
	return cmd
}

// check reports all that is wrong with the flags at once.
func (o *overloadOptions) check() error {
	if !(o.Times > 0 && o.Times <= 100) {
		return fmt.Errorf("--times is a number above 0 and up to 100, not %v", o.Times)
	}
	return nil
}

// benchOverload runs the scenarios and prints their figures.
func (p *Program) benchOverload(ctx context.Context, o *overloadOptions) error {
	scenarios := slices.DeleteFunc(overload.Scenarios(), func(s overload.Scenario) bool { return !slices.Contains(o.scenarios, s.Name) })
	results, facts, err := p.measureOverload(ctx, o, scenarios)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // a process was stopped; its own error is not the reason
		}
		return &cmdline.RuntimeError{Err: err}
	}
	if o.asJSON {
		lines := json.NewEncoder(p.Stdout)
		for _, of := range results {
			for _, r := range of {
				err = errors.Join(err, lines.Encode(r))
			}
		}
		for i, of := range results {
			for _, v := range scenarios[i].Verdicts(of) {
				err = errors.Join(err, lines.Encode(v))
			}
		}
	} else {
		head := fmt.Sprintf("%s, %d cores, %s, %s, %s, rankd %s, commit %s\n"+
			"%d CPU workers, %d interleaved rounds of %v at %g times the capacity; equal reads not shared",
			facts.CPU, facts.Cores, facts.OS, facts.Go, facts.Redis, facts.Version, facts.Commit, o.cpuThreads, o.Rounds, o.Duration, o.Times)
		err = overload.WriteText(p.Stdout, head, scenarios, results)
	}
	if err != nil {
		return &cmdline.RuntimeError{Err: fmt.Errorf("writing the figures: %w", err)}
	}
	return nil
}

func (p *Program) measureOverload(ctx context.Context, o *overloadOptions, scenarios []overload.Scenario) (results [][]overload.Result, facts compare.Facts, err error) {
	folder, err := os.MkdirTemp("", "rankd-bench-")
	if err != nil {
		return nil, facts, err
	}
	defer os.RemoveAll(folder)
	plans := map[string]string{overload.HoldPlan: overload.HoldArtifact}
	for _, s := range scenarios {
		plans[s.Name] = s.Artifact
		if s.Artifact == "" {
			_, text, err := soundPlan(rankd.Options{Env: "dev", Model: rankd.Sequential, Plan: s.Name}, nil)
			if err != nil {
				return nil, facts, err
			}
			plans[s.Name] = string(text)
		}
	}
	if err := writePlans(folder, plans); err != nil {
		return nil, facts, err
	}
	redis, err := backend.Start(ctx, backend.Options{Server: o.redisServer})
	if err != nil {
		return nil, facts, err
	}
	defer redis.Close()
	p.warnOfEmbedded(redis)
	facts = compare.ReadFacts()
	facts.Redis = redis.Version
	workers, stop, err := p.startWorkers(ctx, &fleet{specs: []engines.Spec{{Kind: engines.Reactor}}, cpuThreads: o.cpuThreads, env: "dev"})
	defer stop()
	if err != nil {
		return nil, facts, err
	}
	start := func(maxInflight, maxQueue int) (*process.Replica, error) {
		return startReplica(ctx, o.program, "--redis", redis.Addr(0), "--plan_dir", folder, "--env", "test", "--coalesce_reads=false", // test has the plans' tasks
			"--cpu_threads", strconv.Itoa(o.cpuThreads), "--max_inflight", strconv.Itoa(maxInflight), "--max_queue", strconv.Itoa(maxQueue))
	}
	full, err := start(1, 0)
	if err != nil {
		return nil, facts, err
	}
	defer full.Kill()
	held, err := hold(full.RESP)
	if err != nil {
		return nil, facts, err
	}
	defer held.Close()
	for _, s := range scenarios {
		server, err := start(s.MaxInflight, s.MaxQueue)
		if err != nil {
			return nil, facts, err
		}
		of, err := overload.Measure(ctx, &s, o.fronts, serverOf(server), serverOf(full), o.Settings, workers[0].Run,
			func(line string) { fmt.Fprintf(p.Stderr, "rankd: %s\n", line) })
		server.Kill()
		if err != nil {
			return nil, facts, err
		}
		results = append(results, of)
	}
	return results, facts, nil
}

func serverOf(r *process.Replica) overload.Server {
	return overload.Server{RESP: r.RESP, HTTP: r.HTTP, PID: r.Pid()}
}

// hold takes the only place of a server, for as long as the connection stays.
func hold(addr string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	command := redcon.AppendArray(nil, 3)
	for _, word := range []string{"RANK", overload.HoldPlan, "1"} {
		command = redcon.AppendBulkString(command, word)
	}
	if _, err := conn.Write(command); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
