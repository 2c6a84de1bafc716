package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// accepted parses and checks a command line of the root command, without running it.
func accepted(args ...string) error {
	var o options
	cmd := newCommand(&o, func(*cobra.Command) error { return nil })
	quiet(cmd, io.Discard)
	cmd.SetArgs(args)
	return cmd.Execute()
}

// TestEachFlagHasAnEffectOrIsRefused asks for each job together with each flag.
func TestEachFlagHasAnEffectOrIsRefused(t *testing.T) {
	jobs := []struct {
		letter string
		args   []string
	}{
		{"s", nil}, {"b", []string{"--bench=9", "--plan_name=diamond"}}, {"e", []string{"--bench_eventloop"}},
		{"l", []string{"--list-plans"}}, {"i", []string{"--print-plan-info", "--plan_name=diamond"}}, {"r", []string{"--print-registry"}},
		{"d", []string{"--load_demo_data", "--redis=h:1"}}, {"v", []string{"--version"}},
	}
	flags := map[string]struct {
		value string
		jobs  string // that read it
	}{
		"plan_name": {"diamond", "sbi"}, "plan": {"file", "sbi"}, "plan_dir": {"folder", "sbli"}, "model_dir": {"folder", "sbli"},
		"redis": {"h:1", "sbrd"}, "env": {"test", "sblir"}, "registry_dir": {"folder", "sblir"},
		"engine": {"pool", "sb"}, "async_scheduler": {"true", "sb"}, "within_request_parallelism": {"true", "sb"},
		"cpu_threads": {"2", "sbe"}, "io_threads": {"2", ""}, "redis_pool": {"2", "sb"},
		"input": {"jsonl", "s"}, "max_inflight": {"2", "s"}, "max_request_bytes": {"2", "s"}, "max_rows": {"2", "sb"},
		"max_reply_bytes": {"2", "sb"}, "coalesce_reads": {"true", "sb"}, "busy_poll_us": {"50", "sb"},
		"scheduling": {"adaptive", "sb"}, "enable_inline_execution": {"true", "sb"}, "inline_threshold_ns": {"2", "sb"},
		"max_inline_depth": {"2", "sb"}, "enable_continuation_chaining": {"false", "sb"}, "metrics": {"true", "sb"},
		"allow_request_scheduling": {"true", "s"},
		"allow_request_trace":      {"true", "s"},
		"allow_request_explain":    {"true", "s"}, "trace_file": {"file", "sb"}, "trace_sample": {"2", ""}, "trace_detail": {"nodes", ""},
		"deadline_ms": {"2", "sb"}, "node_timeout_ms": {"2", "sb"}, "shutdown_grace_ms": {"2", "sb"},
		"response": {"fields", "s"}, "dump-run-trace": {"true", "s"},
		"bench_concurrency": {"2", "b"}, "bench_eventloop_mode": {"posts", "e"}, "bench_n": {"2", "e"}, "bench_producers": {"2", "e"},
		"bench_sleep_ms": {"2", "e"}, "bench_tasks": {"2", "e"}, "bench_json": {"true", "e"},
	}
	var declared []string
	newCommand(new(options), nil).Flags().VisitAll(func(f *pflag.Flag) { declared = append(declared, f.Name) })
	for _, name := range declared {
		if slices.Contains([]string{"help", "bench", "bench_eventloop", "list-plans", "print-plan-info", "print-registry", "load_demo_data", "version"}, name) {
			continue // asks for a job
		}
		require.Contains(t, flags, name, "each flag has a row here")
		row := flags[name]
		for _, job := range jobs {
			args := job.args
			if name == "plan" { // instead of the name
				args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "--plan_name") })
			}
			args = append(slices.Clone(args), "--"+name+"="+row.value)
			err := accepted(args...)
			if strings.Contains(row.jobs, job.letter) {
				assert.NoError(t, err, args)
			} else if assert.Error(t, err, args) {
				assert.Contains(t, err.Error(), "--"+name+" has no effect with", args)
			}
		}
	}
}

func TestFlagsThatOthersMakeIdle(t *testing.T) {
	for _, c := range []struct{ args, refused string }{
		// The usage sections of the seeds and of the specification.
		{"--async_scheduler --plan_name simple_plan", ""},
		{"--async_scheduler --deadline_ms 100 --plan_name complex_plan", ""},
		{"--async_scheduler --node_timeout_ms 50 --plan_name complex_plan", ""},
		{"--async_scheduler --bench 100 --plan_name my_plan", ""},
		{"--async_scheduler --deadline_ms 100", ""},
		{"--async_scheduler --node_timeout_ms 50", ""},
		{"--async_scheduler --deadline_ms 200 --node_timeout_ms 50", ""},
		{"--async_scheduler --bench 1000 --bench_concurrency 100 --plan_name my_plan", ""},
		{"--plan_name my_plan --bench 100 --bench_concurrency 4", ""},
		{"--bench_eventloop --bench_eventloop_mode posts --bench_n 5 --bench_producers 2 --bench_sleep_ms 3 --bench_tasks 4 --bench_json", ""},

		{"--bench_n 5", "--bench_n has no effect without --bench_eventloop"},
		{"--bench_concurrency 5", "--bench_concurrency has no effect without --bench"},
		{"--bench 5 --plan_name x --response flat", "--response has no effect with --bench"},
		{"--io_threads 4", "--io_threads has no effect with engine reactor; --engine pool has I/O workers"},
		{"--io_threads 4 --engine sequential", "--io_threads has no effect with engine sequential; --engine pool has I/O workers"},
		{"--io_threads 4 --async_scheduler=false", "--io_threads has no effect with engine sequential; --engine pool has I/O workers"},
		{"--io_threads 4 --engine pool", ""},
		{"--io_threads 4 --within_request_parallelism", ""},
		{"--io_threads 4 --list-plans", "--io_threads has no effect with --list-plans"},
		{"--scheduling offload_all --engine pool", ""}, // it sorts in full there, too
		{"--scheduling offload_all --inline_threshold_ns 5", "--inline_threshold_ns has no effect with --scheduling offload_all"},
		{"--scheduling offload_all --enable_inline_execution --enable_continuation_chaining=false",
			"--enable_inline_execution has no effect with --scheduling offload_all\n--enable_continuation_chaining has no effect with --scheduling offload_all"},
		{"--scheduling offload_all --inline_threshold_ns 5 --allow_request_scheduling", ""},
		{"--scheduling inline_all --inline_threshold_ns 5", "--inline_threshold_ns has no effect with --scheduling inline_all"},
		{"--scheduling inline_all --max_inline_depth 5", ""},
		{"--enable_inline_execution=false --max_inline_depth 5", "--max_inline_depth has no effect with --enable_inline_execution=false"},
		{"--enable_inline_execution=false --scheduling inline_all", ""},
		{"--engine pool --max_inline_depth 5", "--max_inline_depth has no effect with engine pool; --engine reactor has a loop"},
		{"--engine sequential --metrics", "--metrics has no effect with engine sequential; --engine reactor has a loop"},
		{"--plan f --plan_dir d", ""}, // for requests to choose from
		{"--plan f --plan_dir d --bench 5", "--plan_dir has no effect with --plan and --bench"},
		{"--plan f --plan_dir d --print-plan-info", "--plan_dir has no effect with --plan and --print-plan-info"},
		{"--plan_name f --plan_dir d --print-plan-info", ""},
		{"--list-plans --max_inflight 3 --trace", "unknown flag: --trace; rankd --help lists the flags"},
		{"--list-plans --max_inflight 3 --plan_name x", "--max_inflight has no effect with --list-plans\n--plan_name has no effect with --list-plans"},
		{"--list-plans=false --deadline_ms 3", ""},
	} {
		err := accepted(strings.Fields(c.args)...)
		if c.refused == "" {
			assert.NoError(t, err, c.args)
		} else {
			assert.EqualError(t, err, c.refused, c.args)
		}
	}
}

// TestBenchFlagsThatOthersMakeIdle: the modes of rankd bench, too, refuse what has no effect.
func TestBenchFlagsThatOthersMakeIdle(t *testing.T) {
	compare := "compare --plan_name concat_plan "
	for args, refused := range map[string]string{
		"compare --plan f --plan_dir d":                                 "--plan_dir has no effect with --plan",
		"sweep --plan_name x --backlog 5":                               "--backlog has no effect without --rate",
		compare + "--redis h:1 --redis_server x":                        "--redis_server has no effect with --redis",
		compare + "--peers x":                                           "--peers has no effect without an engine peer:<name>",
		compare + "--peers_dir x":                                       "--peers_dir has no effect without an engine peer:<name>",
		compare + "--engines peer:a --peers p --peers_dir x":            "--peers_dir has no effect with --peers",
		compare + "--engines peer:a,pool:cpu_threads=2 --cpu_threads 3": "--cpu_threads has no effect where every engine is a peer or has its own cpu_threads",
		compare + "--html=":                                             "--html needs a value, but it is empty",
		compare + "--engines=":                                          "--engines needs a value, but it is empty",
		"loop --mode=":                                                  "--mode needs a value, but it is empty",
		"loop --mode timers --producers 2":                              "--producers has no effect without --mode posts",
		"loop --mode posts --timer_ms 2":                                "--timer_ms has no effect without --mode timers",
		"loop --mode posts --tasks 2":                                   "--tasks has no effect without --mode sleep_vs_pool",
		"loop --mode posts --sleep_ms 2":                                "--sleep_ms has no effect without --mode sleep_vs_pool",
		"loop --mode posts,timers --in_flight 2":                        "--in_flight has no effect without --mode offload",
		"loop --mode posts --payload 2":                                 "--payload has no effect without --mode offload",
		"loop --mode posts --workers 2":                                 "--workers has no effect without --mode interference",
		"loop --mode posts --duration 2s":                               "--duration has no effect without --mode interference",
		"loop --mode posts --redis h:1":                                 "--redis has no effect without --mode interference",
		"loop --mode posts --redis_server x":                            "--redis_server has no effect without --mode interference",
		"loop --mode interference --n 2":                                "--n has no effect without --mode posts or timers or offload",
		"loop --mode interference --cpu_threads 2":                      "--cpu_threads has no effect without --mode posts or timers or sleep_vs_pool or offload",
		"loop --redis h:1 --redis_server x":                             "--redis_server has no effect with --redis",
		"placement --write_plans d --rounds 3 --json":                   "--rounds has no effect with --write_plans\nrankd: --json has no effect with --write_plans",
		"placement --write_plans d --base x":                            "--base has no effect with --write_plans",
		"placement --base=":                                             "--base needs a value, but it is empty",
		compare + "--want=":                                             "--want needs a value, but it is empty",
		compare + "--want fast":                                         `--want "fast": a want is written FIGURE ENGINE`,
		"placement --scenario mix,nope":                                 `--scenario is one of five_nodes, chain_1000`,
		"placement --rounds 0":                                          "--rounds is a number from 1 to 1000, not 0",
		"kernels --rows=":                                               `invalid argument "" for "--rows" flag`,
	} {
		o := run(t, nil, append([]string{"bench"}, strings.Fields(args)...)...)
		assert.Equal(t, exitUsage, o.status, args)
		assert.Empty(t, o.stdout, args)
		assert.Contains(t, o.stderr, "rankd: "+refused, args)
	}
}
