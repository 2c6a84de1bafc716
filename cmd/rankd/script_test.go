package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestScripts plays the command lines of testdata/script, each in a folder of its own that holds the script's files. Beside the
// commands of testscript there are
//
//	rankd [STATUS] ARGUMENT...   the program, which ends with that status, 0 if none is given
//	answers LINE...              stdout has an answer for each LINE, which is a request id or -, if the engine has made it up,
//	                             and the number of candidates or the error
//
// and $REPOSITORY is the root of the sources.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("RANKD_TEST_RUN_MAIN", "1")
			env.Setenv("REPOSITORY", root)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"rankd": runScripted, "answers": checkAnswers},
	})
}

func runScripted(ts *testscript.TestScript, _ bool, args []string) {
	want := 0
	if len(args) > 0 {
		if status, err := strconv.Atoi(args[0]); err == nil {
			want, args = status, args[1:]
		}
	}
	status := 0
	err := ts.Exec(os.Args[0], args...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		status, err = exit.ExitCode(), nil
	}
	ts.Check(err)
	if status != want {
		ts.Fatalf("status %d, not %d", status, want)
	}
}

func checkAnswers(ts *testscript.TestScript, _ bool, want []string) {
	var got []string
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var a answer
		ts.Check(json.Unmarshal([]byte(line), &a))
		says, id := strconv.Itoa(len(a.Candidates)), a.RequestID
		if a.Error != "" {
			says = a.Error
			if a.Detail == "" || len(a.Candidates) > 0 || a.EngineRequestID != "" && a.Node == "" {
				ts.Fatalf("an error has a detail, and neither candidates nor an engine that saw it: %s", line)
			}
		}
		if len(id) == len("00000000-0000-0000-0000-000000000000") {
			id = "-"
		}
		got = append(got, id+" "+says)
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		ts.Fatalf("answers:\n%s\nwanted:\n%s", g, w)
	}
}
