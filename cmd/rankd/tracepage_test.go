package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testworld"
	"github.com/rankd/rankd/trace/draw"
)

var updateTraces = flag.Bool("update-traces", false, "run the traces that pages show, and write their outputs and pictures anew")

// traceBlock is a command that draws a trace, its output, and the picture below.
var traceBlock = regexp.MustCompile("(?s)```console\n\\$ rankd trace( -[^\n]*)\n(.*?)```\n(?:\n!\\[[^\\]]*\\]\\((?:(?:docs/)?traces/)?([\\w.]+)\\)\n)?")

// TestPagesShowRealTraces runs each "rankd trace" that README and docs show. It compares which nodes ran, and what came of them,
// since times, and with them places and the order of lines, differ from run to run. With -update-traces it
// writes outputs and pictures of this run into the pages.
func TestPagesShowRealTraces(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	gallery, err := filepath.Glob("../../docs/traces/*.md")
	require.NoError(t, err)
	pictures, err := filepath.Abs("../../docs/traces")
	require.NoError(t, err)
	ran := 0
	for _, page := range append(append(pages, gallery...), "../../README.md") {
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

// keepPicture writes a picture of the trace that was kept: of its timeline, or of its page in a browser.
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

// shape returns what each run of a plan draws. Of a body it takes the first word of its label, and of that eight letters, since
// a wide drawing cuts labels.
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
