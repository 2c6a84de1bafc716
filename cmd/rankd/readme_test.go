package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadmePlan keeps the plan that the README shows, and what it says comes
// out, true.
func TestReadmePlan(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	artifact := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(readme)
	require.NotNil(t, artifact)
	session := regexp.MustCompile(`echo '(\{.*\})' \| rankd --plan my_plan.plan.json\n(.*)\n`).FindSubmatch(readme)
	require.NotNil(t, session)

	path := writePlan(t, t.TempDir(), "my_plan", string(artifact[1]))
	o := run(t, strings.NewReader(string(session[1])), "--plan", path)
	require.Equal(t, exitOK, o.status, o.stderr)
	want, got := decode(t, string(session[2])), decode(t, o.lines()[0])
	assert.Equal(t, want.RequestID, got.RequestID)
	assert.Equal(t, want.Candidates, got.Candidates)
}
