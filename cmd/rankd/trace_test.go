package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/engineflags"
	"github.com/rankd/rankd/trace"
)

func TestTraceDrawsARequest(t *testing.T) {
	for _, engine := range []string{engineflags.Reactor, engineflags.Pool, engineflags.Sequential} {
		t.Run(engine, func(t *testing.T) {
			t.Chdir(t.TempDir())
			o := run(t, nil, "trace", "--plan_name", "mixed_pipeline", "--engine", engine, "--user", "7",
				"--html", "t.html", "--perfetto", "t.perfetto", "--json", "t.json")
			require.Zero(t, o.status, o.stderr)
			assert.Contains(t, o.stdout, " bounds the request: ")
			assert.Contains(t, o.stdout, "\nCritical path (latency) n0 viewer → n1 follow → n2 vm → n3 filter → n4 sort → n5 take: ")

			page, err := os.ReadFile("t.html")
			require.NoError(t, err)
			assert.Contains(t, string(page), "A trace of mixed_pipeline")

			events, err := os.ReadFile("t.perfetto")
			require.NoError(t, err)
			var document struct{ TraceEvents []json.RawMessage }
			require.NoError(t, json.Unmarshal(events, &document))
			assert.Greater(t, len(document.TraceEvents), 20)

			doc, err := os.ReadFile("t.json")
			require.NoError(t, err)
			kept, err := trace.Decode(doc)
			require.NoError(t, err)
			assert.Equal(t, engine, kept.Engine)
			for _, n := range kept.Nodes {
				assert.Equal(t, trace.OK, n.Status, n.ID)
			}

			again := run(t, nil, "trace", "--from", "t.json")
			assert.Equal(t, o.stdout, again.stdout)
			assert.Empty(t, again.stderr)
		})
	}
}

// A request that fails is drawn, too, and the program says so with its status.
func TestTraceOfAFailure(t *testing.T) {
	folder := t.TempDir()
	writePlan(t, folder, "bad", `{"schema_version": 1, "plan_name": "bad", "nodes": [
		{"node_id": "a", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
		{"node_id": "b", "op": "core::take", "inputs": ["a"], "params": {"count": 0}},
		{"node_id": "c", "op": "core::take", "inputs": ["b"], "params": {"count": 1}}], "outputs": ["c"]}`)
	for _, engine := range []string{engineflags.Reactor, engineflags.Pool, engineflags.Sequential} {
		o := run(t, nil, "trace", "--plan_name", "bad", "--plan_dir", folder, "--engine", engine)
		assert.Equal(t, exitFailed, o.status, engine)
		assert.Contains(t, o.stdout, "and failed: node b (core::take): ", engine)
		assert.Regexp(t, `b (take starts, )?fails`, o.stdout, engine)
		assert.Contains(t, o.stdout, "skipped", engine)
	}
}

func TestTraceTakesAWholeRequest(t *testing.T) {
	o := run(t, nil, "trace", "--plan_name", "diamond", "--request", `{"user_id": 3, "request_id": "mine", "plan": "simple_viewer"}`, "--json", filepath.Join(t.TempDir(), "t"))
	require.Zero(t, o.status, o.stderr)
	assert.True(t, strings.HasPrefix(o.stdout, "simple_viewer took "), o.stdout)
}

func TestTraceCompares(t *testing.T) {
	t.Chdir(t.TempDir())
	o := run(t, nil, "trace", "--plan_name", "mixed_pipeline", "--compare", "offload_all,adaptive,pool", "--io_threads", "2",
		"--html", "t.html", "--json", "t.json", "--perfetto", "t.perfetto")
	require.Zero(t, o.status, o.stderr)
	place := 0
	for _, heading := range []string{"── offload_all ──", "── adaptive ──", "── pool ──"} {
		at := strings.Index(o.stdout, heading)
		assert.Greater(t, at, place)
		place = at
	}
	assert.Contains(t, o.stdout, "on the reactor (offload_all)")
	assert.Contains(t, o.stdout, "on two pools")

	kept, err := readTraces("t.json")
	require.NoError(t, err)
	require.Len(t, kept, 3)
	for _, n := range kept[0].Nodes {
		if n.Place == trace.OnPool {
			assert.Zero(t, n.Fused, "offload_all has no chains: %s", n.ID)
		}
	}
	page, err := os.ReadFile("t.html")
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(page), `class="plot"`), "a timeline for each")
}

// --from reads what a server answers and what --trace_file wrote.
func TestTraceFromAnAnswer(t *testing.T) {
	t.Chdir(t.TempDir())
	served := run(t, strings.NewReader(`{"user_id": 1, "trace": true}`), "--plan_name", "diamond", "--allow_request_trace", "--trace_file", "sampled")
	require.Zero(t, served.status, served.stderr)
	require.NoError(t, os.WriteFile("answer", []byte(served.stdout), 0o644))
	for _, file := range []string{"answer", "sampled"} {
		o := run(t, nil, "trace", "--from", file)
		require.Zero(t, o.status, o.stderr)
		assert.True(t, strings.HasPrefix(o.stdout, "diamond took "), o.stdout)
	}
	for name, text := range map[string]string{"empty": "", "broken": "{", "answer": `{"candidates": []}`, "old": `{"version": 0}`} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		o := run(t, nil, "trace", "--from", name)
		assert.Equal(t, exitUsage, o.status, name)
		assert.Contains(t, o.stderr, "rankd: --from: "+name, name)
		assert.Empty(t, o.stdout)
	}
}

func TestTraceRefuses(t *testing.T) {
	for args, refused := range map[string]string{
		"":                                                          "rankd trace needs a plan: --plan_name or --plan",
		"--plan_dir .":                                              "rankd trace needs a plan: --plan_name or --plan",
		"--plan_name diamond x":                                     `unknown command "x" for "rankd trace"`,
		"--plan_name diamond --metrics":                             "unknown flag: --metrics; rankd trace --help lists the flags",
		"--plan_name diamond --plan x":                              "--plan and --plan_name exclude each other",
		"--plan_name nope":                                          `unknown plan "nope"`,
		"--plan_name diamond --user 0":                              "--user is a number from 1 to 4294967295, not 0",
		"--plan_name diamond --user 1 --request=":                   "--user and --request exclude each other",
		"--plan_name diamond --request {":                           "--request: Invalid JSON input",
		"--plan_name diamond --warmup -1":                           "--warmup is a number from 0 to 1000000, not -1",
		"--plan_name diamond --io_threads 2":                        "--io_threads has no effect with engine reactor",
		"--plan_name diamond --html=":                               "--html needs a value, but it is empty",
		"--plan_name diamond --compare=":                            "--compare needs a value, but it is empty",
		"--plan_name diamond --compare adaptive":                    "--compare lists two or more",
		"--plan_name diamond --compare adaptive,inline":             `--compare lists some of adaptive, offload_all, inline_all, reactor, pool and sequential, not "inline"`,
		"--plan_name diamond --compare adaptive,pool --engine pool": "--engine has no effect with --compare, which chooses the engines",
		"--plan_name diamond --compare adaptive,offload_all --scheduling x":      "--scheduling has no effect with --compare, which chooses the modes",
		"--plan_name diamond --compare adaptive,reactor --io_threads 2":          "--io_threads has no effect with engine reactor",
		"--plan_name diamond --compare adaptive,offload_all --cpu_threads 0":     "--cpu_threads is a number from 1 to 1024, not 0",
		"--plan_name diamond --compare pool,sequential --inline_threshold_ns 10": "--inline_threshold_ns has no effect with engine ",
		"--from x --user 2": "--user has no effect with --from, which runs nothing",
		"--from /no/file":   "--from: open /no/file: no such file",
	} {
		o := run(t, nil, append([]string{"trace"}, strings.Fields(args)...)...)
		assert.Equal(t, exitUsage, o.status, args)
		assert.Empty(t, o.stdout, args)
		assert.Contains(t, o.stderr, "rankd: "+refused, args)
	}
}

func TestTraceReportsWhatItCannotWrite(t *testing.T) {
	for _, flag := range []string{"--html", "--perfetto", "--json"} {
		o := run(t, nil, "trace", "--plan_name", "simple_viewer", flag, "/no/folder/file")
		assert.Equal(t, exitFailed, o.status, flag)
		assert.Contains(t, o.stderr, "rankd: open /no/folder/file: no such file", flag)
	}
	p := program{stdin: strings.NewReader(""), stdout: brokenPipe{}, stderr: io.Discard, tune: func(int) {}}
	assert.Equal(t, exitFailed, p.run(t.Context(), []string{"trace", "--plan_name", "simple_viewer"}))
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestTraceHelp(t *testing.T) {
	o := run(t, nil, "trace", "--help")
	require.Zero(t, o.status)
	for _, want := range []string{"rankd trace --plan_name complex_dag", "--compare list", "--plan_name name", "--node_timeout_ms number", "Exit status:"} {
		assert.Contains(t, o.stdout, want)
	}
	assert.NotContains(t, o.stdout, "async_scheduler")
	assert.NotContains(t, o.stdout, "--bench_")
	assert.Contains(t, run(t, nil, "--help").stdout, "rankd trace [flags]")
}
