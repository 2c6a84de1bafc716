package program

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/draw"
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

// TestARequestMayAskForItsTraceIfPermitted: otherwise that request is refused, but not the next
// one.
func TestARequestMayAskForItsTraceIfPermitted(t *testing.T) {
	const in = `{"user_id": 1, "request_id": "a", "trace": true}` + "\n" + `{"user_id": 1, "trace": false}`
	o := run(t, strings.NewReader(in), "--plan_name=diamond")
	assert.Equal(t, exitFailed, o.status)
	require.Len(t, o.lines(), 2)
	refused := decode(t, o.lines()[0])
	assert.Equal(t, "Invalid request", refused.Error)
	assert.Contains(t, refused.Detail, `does not allow "trace"`)
	assert.Empty(t, decode(t, o.lines()[1]).Error)

	for _, engine := range []string{cmdline.Reactor, cmdline.Pool, cmdline.Sequential} {
		o = run(t, strings.NewReader(in), "--plan_name=diamond", "--allow_request_trace", "--engine="+engine)
		assert.Equal(t, exitOK, o.status, o.stdout)
		require.Len(t, o.lines(), 2)
		_, member, ok := strings.Cut(o.lines()[0], `],"trace":`)
		require.True(t, ok, o.lines()[0])
		tr, err := trace.Decode([]byte(strings.TrimSuffix(member, "}")))
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "diamond", engine}, []string{tr.RequestID, tr.Plan, tr.Engine})
		assert.NotEmpty(t, tr.Tracks)
		assert.NotContains(t, o.lines()[1], `"trace"`)
	}
}

// TestTraceFile: one request in so many leaves a line, whatever its answer.
func TestTraceFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "traces.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("what was there"), 0o600))
	in := strings.Repeat(`{"user_id": 1}`+"\n", 7)
	o := run(t, strings.NewReader(in), "--plan_name=diamond", "--trace_file="+file, "--trace_sample=3", "--trace_detail=nodes")
	assert.Equal(t, exitOK, o.status, o.stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 3)
	for i, line := range lines {
		tr, err := trace.Decode([]byte(line))
		require.NoError(t, err)
		assert.Contains(t, o.lines()[3*i], `"request_id":"`+tr.RequestID+`"`)
		assert.Len(t, tr.Nodes, 4)
		assert.Empty(t, tr.Tracks)
	}

	o = run(t, strings.NewReader(`{"user_id": 1}`), "--plan_name=diamond", "--trace_file="+filepath.Join(file, "below_a_file"))
	assert.Equal(t, exitUsage, o.status)
	assert.Empty(t, o.stdout)
	assert.Contains(t, o.stderr, "rankd: --trace_file: ")
	if _, err := os.Stat("/dev/full"); err == nil {
		o = run(t, strings.NewReader(`{"user_id": 1}`), "--plan_name=diamond", "--trace_file=/dev/full")
		assert.Equal(t, exitFailed, o.status, "the answer is there, and the trace is not")
		require.Len(t, o.lines(), 1)
		assert.Contains(t, o.stderr, "rankd: writing /dev/full: ")
	}
}

var updateTraces = flag.Bool("update-traces", false, "run the traces that pages show, and write their outputs and pictures anew")

// traceBlock is a command that draws a trace, its output, and the picture below.
var traceBlock = regexp.MustCompile("(?s)```console\n\\$ rankd trace( -[^\n]*)\n(.*?)```\n(?:\n!\\[[^\\]]*\\]\\((?:(?:docs/)?traces/)?([\\w.]+)\\)\n)?")

// TestPagesShowRealTraces runs each "rankd trace" that README and docs show. It compares which
// nodes ran, and their results. Times differ between runs, and so do places and the order of
// lines. With -update-traces it writes the outputs and pictures of this run into the pages.
func TestPagesShowRealTraces(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	gallery, err := filepath.Glob("../docs/traces/*.md")
	require.NoError(t, err)
	pictures, err := filepath.Abs("../docs/traces")
	require.NoError(t, err)
	ran := 0
	for _, page := range append(append(pages, gallery...), "../README.md") {
		page, err = filepath.Abs(page)
		require.NoError(t, err)
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		updated := traceBlock.ReplaceAllStringFunc(string(text), func(block string) string {
			ran++
			match := traceBlock.FindStringSubmatch(block)
			args, shown, picture := match[1], match[2], match[3]
			t.Run(filepath.Base(page)+": rankd trace"+args, func(t *testing.T) {
				folder := t.TempDir()
				for _, s := range sessions(string(text)) {
					if s.path != "" {
						s.write(t, folder)
					}
				}
				t.Chdir(folder)
				o := run(t, nil, strings.Fields("trace"+args+extra(args))...)
				require.Zero(t, o.status, o.stderr)
				if *updateTraces {
					block = strings.Replace(block, "\n"+shown+"```", "\n"+o.stdout+"```", 1)
					keepPicture(t, pictures, picture)
					return
				}
				assert.Equal(t, shape(shown), shape(o.stdout))
				if picture != "" {
					assert.FileExists(t, filepath.Join(pictures, picture))
				}
			})
			return block
		})
		if *updateTraces && updated != string(text) {
			require.NoError(t, os.WriteFile(page, []byte(updated), 0o644))
		}
	}
	assert.GreaterOrEqual(t, ran, 15, "the pages show traces")
}

// extra returns flags that a run needs to draw its picture.
func extra(args string) string {
	if strings.Contains(args, "--compare") {
		return ""
	}
	return " --json kept.json"
}

// keepPicture writes a picture of the trace that was kept: its timeline, or its page in a
// browser.
func keepPicture(t *testing.T, folder, picture string) {
	switch filepath.Ext(picture) {
	case ".svg":
		kept, err := readTraces("kept.json")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, picture), []byte(draw.Timeline(kept[0])), 0o644))
	case ".png":
		b := testworld.NewBrowser(t)
		b.Height = 900
		b.Screenshot("trace.html", filepath.Join(folder, picture))
	}
}

var (
	shownNode    = regexp.MustCompile(`(?m)^[●○ ] (\S+) +(\S+::\S+) .*? (\d+→\d+) `)
	shownBody    = regexp.MustCompile(`(\w{1,8})\w*(?: \w+)?…? (?:starts|runs)\b`)
	shownHeading = regexp.MustCompile(`── (\w+) ──`)
)

// shape returns what each run of a plan draws. It takes only the first eight letters of the
// first word of a body's label, since a wide drawing cuts labels.
func shape(output string) (all []string) {
	for _, m := range shownNode.FindAllStringSubmatch(output, -1) {
		all = append(all, strings.Join(m[1:], " "))
	}
	for _, m := range shownBody.FindAllStringSubmatch(output, -1) {
		all = append(all, m[1])
	}
	for _, m := range shownHeading.FindAllStringSubmatch(output, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}
