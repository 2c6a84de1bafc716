package program

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/cmdline"
)

// TestScripts plays the command lines of testdata/script, each in a folder of its own that
// holds the script's files. In addition to the commands of testscript there are
//
//	rankd [STATUS] ARGUMENT...   the program, which ends with that status, 0 if none is given
//	engines FILE [STATUS] ARGUMENT... the program with each engine and that stdin; all print the same, but for the engine's own
//	                             request ids
//	answers LINE...              stdout has an answer for each LINE, which is a request id or -, if the engine has made it up,
//	                             and the number of candidates or the error
//	refuses TEXT ARGUMENT...     the program, which ends with status 2, prints nothing, and says just TEXT on stderr; there "\n"
//	                             parts lines, … stands for anything, and each line follows "rankd: "
//
// and $REPOSITORY is the root of the sources.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("RANKD_TEST_RUN_MAIN", "1")
			env.Setenv("REPOSITORY", root)
			r := new(refuser)
			env.Values[refuser{}] = r
			env.Defer(r.close)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"rankd": runScripted, "engines": runOnEngines, "answers": checkAnswers, "refuses": checkRefusal,
		},
	})
}

func runScripted(ts *testscript.TestScript, _ bool, args []string) {
	status, args := wantedStatus(args)
	checkStatus(ts, status, os.Args[0], args...)
}

// wantedStatus removes a status from the arguments of a command.
func wantedStatus(args []string) (status int, rest []string) {
	if len(args) > 0 {
		if status, err := strconv.Atoi(args[0]); err == nil {
			return status, args[1:]
		}
	}
	return exitOK, args
}

// checkStatus runs a program and checks its exit status.
func checkStatus(ts *testscript.TestScript, want int, program string, args ...string) {
	status := 0
	err := ts.Exec(program, args...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		status, err = exit.ExitCode(), nil
	}
	ts.Check(err)
	if status != want {
		ts.Fatalf("status %d, not %d", status, want)
	}
}

var engineRequestID = regexp.MustCompile(`"engine_request_id":"[^"]*"`)

func runOnEngines(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv("REQUESTS", ts.MkAbs(args[0]))
	status, args := wantedStatus(args[1:])
	first := ""
	for i, engine := range []string{cmdline.Reactor, cmdline.Pool, cmdline.Sequential} {
		checkStatus(ts, status, "sh", append([]string{"-c", `exec "$0" "$@" <"$REQUESTS"`, os.Args[0], "--engine", engine}, args...)...)
		got := engineRequestID.ReplaceAllString(ts.ReadFile("stdout"), "")
		if i == 0 {
			first = got
		} else if got != first {
			ts.Fatalf("%s prints:\n%sreactor:\n%s", engine, got, first)
		}
	}
}

// A refuser is a process that runs the program again and again, for the refusals of one script.
// To start a process for each would cost ten times as much. One goroutine.
type refuser struct {
	cmd *exec.Cmd // nil until the first one
	in  io.WriteCloser
	ask *json.Encoder
	got *json.Decoder
}

// refused is how a run of the program ended, as a refuser prints it.
type refused struct {
	Status         int
	Stdout, Stderr string
}

// run runs the program in the folder of the script.
func (r *refuser) run(ts *testscript.TestScript, args []string) (o refused) {
	if r.cmd == nil {
		cmd := exec.Command(os.Args[0])
		cmd.Dir, cmd.Env, cmd.Stderr = ts.MkAbs("."), append(os.Environ(), "RANKD_TEST_RUN_MAIN=again"), os.Stderr
		in, err := cmd.StdinPipe()
		ts.Check(err)
		out, err := cmd.StdoutPipe()
		ts.Check(err)
		ts.Check(cmd.Start())
		*r = refuser{cmd, in, json.NewEncoder(in), json.NewDecoder(out)}
	}
	ts.Check(r.ask.Encode(args))
	ts.Check(r.got.Decode(&o))
	return o
}

// close ends the process.
func (r *refuser) close() {
	if r.cmd != nil {
		_ = r.in.Close()
		_ = r.cmd.Wait()
	}
}

// runAgain is the process of a refuser. It runs the program with each list of arguments on
// stdin.
func runAgain(in io.Reader, out io.Writer) {
	os.Setenv("RANKD_TEST_RUN_MAIN", "1") // for processes that the program starts
	ask, answer := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var args []string
		if ask.Decode(&args) != nil {
			return
		}
		var stdout, stderr strings.Builder
		p := program{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, tune: func(int) {}}
		status := p.run(context.Background(), args)
		if answer.Encode(refused{status, stdout.String(), stderr.String()}) != nil {
			return
		}
	}
}

func checkRefusal(ts *testscript.TestScript, _ bool, args []string) {
	o := ts.Value(refuser{}).(*refuser).run(ts, args[1:])
	if o.Status != exitUsage {
		ts.Fatalf("status %d, not %d; it says:\n%s", o.Status, exitUsage, o.Stderr)
	}
	lines := strings.ReplaceAll("rankd: "+args[0]+"\n", `\n`, "\nrankd: ")
	want := strings.ReplaceAll(regexp.QuoteMeta(lines), "…", "(?s:.*)")
	if got := o.Stderr; !regexp.MustCompile(`\A` + want + `\z`).MatchString(got) {
		ts.Fatalf("says:\n%swanted:\n%s", got, lines)
	}
	if got := o.Stdout; got != "" {
		ts.Fatalf("prints:\n%s", got)
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
