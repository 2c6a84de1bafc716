package main

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/trace"
)

func TestTraceDrawsARequest(t *testing.T) {
	for _, engine := range []string{cmdline.Reactor, cmdline.Pool, cmdline.Sequential} {
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

func TestTraceReportsABrokenPipe(t *testing.T) {
	p := program{stdin: strings.NewReader(""), stdout: brokenPipe{}, stderr: io.Discard, tune: func(int) {}}
	assert.Equal(t, exitFailed, p.run(t.Context(), []string{"trace", "--plan_name", "simple_viewer"}))
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
