package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/trace"
)

// TestARequestMayAskForItsTraceIfPermitted: it is refused otherwise, and the next request is not.
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
