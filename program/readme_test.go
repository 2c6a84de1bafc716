package program

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// session is a command of a page and the output below it, or a file that the page shows.
type session struct {
	command, output string
	folder          string // folder of the sources in which the block runs; empty: the folder with the page's files
	path, source    string // of the file
}

var (
	// block is a console with commands. Or it is a TypeScript file whose first line is a
	// comment with its path.
	block = regexp.MustCompile("(?s)```(?:console\n|typescript\n// (plans/\\S+)\n)(.*?)```")
	// runnable is a command that needs only this program: its stdin, and its arguments.
	// TestPagesShowRealTraces runs rankd trace.
	runnable = regexp.MustCompile(`^(?:(echo|printf) '([^']*)' \| )?(?:go run \./cmd/)?rankd( (?:-|run |compile |check |init |explain )[^<>&|]*)$`)
	leftOut  = regexp.MustCompile(`--redis |bench|deadline_ms`)
	// changing is the part of an output that differs between runs: generated ids, ports,
	// durations.
	changing = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|127\.0\.0\.1:\d+|[\d.]+(ms|µs)`)
)

// sessions returns the commands of a page with their outputs, and the files between them.
func sessions(page string) (all []session) {
	for _, b := range block.FindAllStringSubmatch(page, -1) {
		if b[1] != "" {
			all = append(all, session{path: b[1], source: "// " + b[1] + "\n" + b[2]})
			continue
		}
		folder := ""
		for _, part := range strings.Split("\n"+b[2], "\n$ ")[1:] {
			command, output, _ := strings.Cut(part, "\n")
			if into, ok := strings.CutPrefix(command, "cd "); ok {
				folder = into
				continue
			}
			all = append(all, session{command: command, output: strings.TrimSpace(output), folder: folder})
		}
	}
	return all
}

// write writes the file that a page shows.
func (s *session) write(t *testing.T, folder string) {
	t.Helper()
	path := filepath.Join(folder, s.path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(s.source), 0o644))
}

// TestPagesShowWhatHappens runs each command that README and docs show, if it needs no Redis of
// its own. It compares the output, stderr first, which "…" may cut short. It leaves out
// benchmarks. It also leaves out deadlines, which another node may miss on a busy machine.
func TestPagesShowWhatHappens(t *testing.T) {
	writing, err := os.ReadFile("../docs/writing-a-plan.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	artifact := regexp.MustCompile("(?s)```json\n(\\{\n  \"schema_version\".*?)```").FindSubmatch(writing)
	require.NotNil(t, artifact, "the plan that the page writes by hand")
	plan := string(artifact[1])

	ran := 0
	for _, page := range append(pages, "../README.md") {
		if _, walked := walks[strings.TrimPrefix(page, "../")]; walked {
			continue // TestWalks follows it, with a Redis
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		folder := t.TempDir()
		writePlan(t, folder, "my_plan", plan)
		writePlan(t, folder, "typo", strings.ReplaceAll(strings.Replace(plan, "core::take", "core::tkae", 1), "my_plan", "typo"))
		for _, s := range sessions(string(text)) {
			if s.path != "" {
				s.write(t, folder)
				continue
			}
			match := runnable.FindStringSubmatch(s.command)
			if match == nil || leftOut.MatchString(s.command) {
				continue
			}
			ran++
			t.Run(filepath.Base(page)+": "+s.command, func(t *testing.T) {
				if s.folder != "" {
					t.Chdir(filepath.Join("..", s.folder))
				} else {
					t.Chdir(folder)
				}
				stdin := match[2]
				if match[1] == "printf" {
					stdin = strings.ReplaceAll(stdin, `\n`, "\n")
				}
				o := run(t, strings.NewReader(stdin), strings.Fields(match[3])...)
				got := strings.TrimSpace(changing.ReplaceAllString(o.stderr+o.stdout, "*"))
				want := changing.ReplaceAllString(s.output, "*")
				if beginning, cut := strings.CutSuffix(want, "…"); cut {
					require.Greater(t, len(got), len(beginning))
					want, got = beginning, got[:len(beginning)]
				}
				assert.Equal(t, want, got)
			})
		}
	}
	assert.GreaterOrEqual(t, ran, 6, "the pages show commands")
}
