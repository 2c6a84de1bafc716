package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// session is a command of a page and the output below it.
type session struct{ command, output string }

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
	// runnable is a command that needs this program and nothing else: its stdin, and its arguments.
	runnable = regexp.MustCompile(`^(?:(echo|printf) '([^']*)' \| )?(?:go run \./cmd/)?rankd( -[^<>&|]*)$`)
	leftOut  = regexp.MustCompile(`--redis |bench|deadline_ms`)
	// changing is the part of an output that differs from run to run: generated ids, ports, durations.
	changing = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|127\.0\.0\.1:\d+|[\d.]+(ms|µs)`)
)

// sessions returns the commands of a page and their outputs.
func sessions(page string) (all []session) {
	for _, block := range consoleBlock.FindAllStringSubmatch(page, -1) {
		for _, part := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, output, _ := strings.Cut(part, "\n")
			all = append(all, session{command, strings.TrimSpace(output)})
		}
	}
	return all
}

// TestPagesShowWhatHappens runs each command that README and docs show and that needs no Redis of its own. It
// compares the output, stderr first, which may be cut short by "…". It leaves out benchmarks, and deadlines, which
// another node may miss on a busy machine.
func TestPagesShowWhatHappens(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	folder := t.TempDir()
	artifact := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(readme)
	require.NotNil(t, artifact, "the README's plan")
	plan := string(artifact[1])
	writePlan(t, folder, "my_plan", plan)
	writePlan(t, folder, "typo", strings.ReplaceAll(strings.Replace(plan, "core::take", "core::tkae", 1), "my_plan", "typo"))

	ran := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, s := range sessions(string(text)) {
			match := runnable.FindStringSubmatch(s.command)
			if match == nil || leftOut.MatchString(s.command) {
				continue
			}
			ran++
			t.Run(filepath.Base(page)+": "+s.command, func(t *testing.T) {
				t.Chdir(folder)
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
