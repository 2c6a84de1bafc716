package program

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/cmdline"
	servecli "github.com/rankd/rankd/internal/command/serve"
)

// accepted parses and checks a command line of the root command, but does not run it.
func accepted(args ...string) error {
	var o options
	cmd := newCommand(&o, func(*cobra.Command) error { return nil })
	quiet(cmd, io.Discard)
	cmd.SetArgs(args)
	return cmd.Execute()
}

// TestEachFlagHasAnEffectOrIsRefused combines each job with each flag.
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
		"engine": {"pool", "sb"}, "scheduling": {"adaptive", "sb"}, "cpu_threads": {"2", "sbe"}, "io_threads": {"2", ""},
		"input": {"jsonl", "s"}, "max_inflight": {"2", "s"}, "max_request_bytes": {"2", "s"},
		"allow_request_scheduling": {"true", "s"}, "allow_request_trace": {"true", "s"}, "allow_request_explain": {"true", "s"}, "allow_request_now": {"true", "s"},
		"allow_request_traffic": {"true", "s"}, "served_log": {"folder", "s"}, "served_log_users": {"50", ""}, "served_log_key": {"key", ""},
		"served_log_entries": {"2", ""}, "served_log_mb": {"2", ""}, "user_key_file": {"file", ""},
		"record": {"folder", "s"}, "record_users": {"50", ""}, "record_mb": {"2", ""}, "record_expire_h": {"2", ""}, "record_models": {"true", ""}, "encrypt_to": {"age1x", ""},
		"now":          {"0", "sb"},
		"trace_sample": {"2", ""}, "trace_detail": {"nodes", ""}, "response": {"fields", "s"}, "dump-run-trace": {"true", "s"},
		"bench_concurrency": {"2", "b"}, "bench_eventloop_mode": {"posts", "e"}, "bench_n": {"2", "e"}, "bench_producers": {"2", "e"},
		"bench_sleep_ms": {"2", "e"}, "bench_tasks": {"2", "e"}, "bench_json": {"true", "e"},
	}
	declared := map[string]string{}
	newCommand(new(options), nil).Flags().VisitAll(func(f *pflag.Flag) { declared[f.Name] = f.Value.Type() })
	for name, kind := range declared {
		if slices.Contains([]string{"help", "bench", "bench_eventloop", "list-plans", "print-plan-info", "print-registry", "load_demo_data", "version"}, name) {
			continue // asks for a job
		}
		row, listed := flags[name]
		if !listed { // it belongs to the engine
			row.value, row.jobs = map[string]string{"int": "2", "bool": "true", "string": "file"}[kind], "sb"
		}
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

// TestFlagsThatGoTogether: each flag has an effect in combination with the others. The script
// refused has those without an effect.
func TestFlagsThatGoTogether(t *testing.T) {
	for _, args := range []string{
		// The command lines come from the usage sections of the original specification.
		"--async_scheduler --plan_name simple_plan",
		"--async_scheduler --deadline_ms 100 --plan_name complex_plan",
		"--async_scheduler --node_timeout_ms 50 --plan_name complex_plan",
		"--async_scheduler --bench 100 --plan_name my_plan",
		"--async_scheduler --deadline_ms 100",
		"--async_scheduler --node_timeout_ms 50",
		"--async_scheduler --deadline_ms 200 --node_timeout_ms 50",
		"--async_scheduler --bench 1000 --bench_concurrency 100 --plan_name my_plan",
		"--plan_name my_plan --bench 100 --bench_concurrency 4",
		"--bench_eventloop --bench_eventloop_mode posts --bench_n 5 --bench_producers 2 --bench_sleep_ms 3 --bench_tasks 4 --bench_json",
		"--io_threads 4 --engine pool",
		"--io_threads 4 --within_request_parallelism",
		"--scheduling offload_all --engine pool", // there it also sorts in full
		"--scheduling offload_all --inline_threshold_ns 5 --allow_request_scheduling",
		"--scheduling inline_all --max_inline_depth 5",
		"--enable_inline_execution=false --scheduling inline_all",
		"--plan f --plan_dir d", // for requests to choose from
		"--plan_name f --plan_dir d --print-plan-info",
		"--list-plans=false --deadline_ms 3",
	} {
		assert.NoError(t, accepted(strings.Fields(args)...), args)
	}
}

var updateFlags = flag.Bool("update-flags", false, "write the tables of flags in README and docs anew")

var (
	flagTable = regexp.MustCompile(`(?m)^\| flag \| \| default \|\n\|---\|---\|---\|\n(\|.*\n)+`)
	flagRow   = regexp.MustCompile("^\\| `--([a-z_-]+)` \\|")
)

// TestPagesListFlags: the tables of flags in README and docs say what --help says. The page of
// the server has all of its flags.
func TestPagesListFlags(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	root := newCommand(new(options), nil).Flags()
	server := (&servecli.Program{}).Command(t.Context()).Flags()
	listed := map[string]bool{}
	for _, page := range append(pages, "../README.md") {
		flags, links := root, ""
		switch filepath.Base(page) {
		case "operating.md":
			flags = server
		case "README.md":
			links = "docs/"
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		want := flagTable.ReplaceAllStringFunc(string(text), func(table string) string {
			rows := strings.SplitAfter(table, "\n")
			for i, row := range rows {
				name := flagRow.FindStringSubmatch(row)
				if name == nil {
					continue
				}
				f := flags.Lookup(name[1])
				if !assert.NotNil(t, f, "%s: --%s does not exist", page, name[1]) {
					continue
				}
				if flags == server {
					assert.NotContains(t, listed, f.Name, "%s lists it once", page)
					listed[f.Name] = true
				}
				rows[i] = cmdline.PageRow(f, links) + "\n"
			}
			return strings.Join(rows, "")
		})
		if *updateFlags {
			require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
			continue
		}
		assert.Equal(t, want, string(text), "%s: go test ./program -run TestPagesListFlags -update-flags", page)
	}
	server.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			assert.Contains(t, listed, f.Name, "docs/operating.md lacks the row:\n%s", cmdline.PageRow(f, ""))
		}
	})
}
