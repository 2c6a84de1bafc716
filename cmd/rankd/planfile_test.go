package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The dev environment loads the plan twice, since its Redis moves; a pipe can be read once.
func TestThePlanMayBeAPipeAndHaveAnyName(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = w.WriteString(fixedPlan("any name/at all"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	o := run(t, strings.NewReader(`{"user_id": 1}`), "--plan", fmt.Sprintf("/dev/fd/%d", r.Fd()))
	assert.Equal(t, exitOK, o.status, "%s%s", o.stdout, o.stderr)
	assert.NotEmpty(t, decode(t, o.lines()[0]).Candidates)
}

func TestAPlanFolderHasRegularFilesOfTheirPlansNames(t *testing.T) {
	dir := t.TempDir()
	writePlan(t, dir, "x", fixedPlan("y"))
	o := run(t, strings.NewReader(`{"user_id": 1, "plan": "y"}`), "--plan_dir", dir, "--plan_name", "x")
	assert.Equal(t, exitUsage, o.status)
	assert.Contains(t, o.stderr, `x.plan.json: plan_name: is "y", must be "x" as the name of the file says`)

	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.plan.json"), 0o600))
	o = run(t, strings.NewReader(`{"user_id": 1}`), "--plan_dir", dir, "--plan_name", "pipe")
	assert.Equal(t, exitUsage, o.status)
	assert.Equal(t, "rankd: pipe.plan.json: is a named pipe, must be a regular file\n", o.stderr)
}

func TestAnUnknownPlanNamesTheNearestAndThePlace(t *testing.T) {
	dir := t.TempDir()
	writePlan(t, dir, "mine", fixedPlan("mine"))
	o := run(t, strings.NewReader(""), "--plan_dir", dir, "--plan_name", "mein")
	assert.Equal(t, exitUsage, o.status)
	assert.Equal(t, `rankd: unknown plan "mein" in folder `+dir+`; the nearest is "mine"`+"\n", o.stderr)
	o = run(t, strings.NewReader(`{"user_id": 1, "plan": "diamnd"}`), "--env", "test")
	assert.Equal(t, exitFailed, o.status)
	assert.Equal(t, `unknown plan "diamnd" in the built-in examples; the nearest is "diamond"`, decode(t, o.lines()[0]).Detail)
}
