package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/cmdline"
	servecli "github.com/rankd/rankd/serve/cli"
)

var updateFlags = flag.Bool("update-flags", false, "write the tables of flags in README and docs anew")

var (
	flagTable = regexp.MustCompile(`(?m)^\| flag \| \| default \|\n\|---\|---\|---\|\n(\|.*\n)+`)
	flagRow   = regexp.MustCompile("^\\| `--([a-z_-]+)` \\|")
)

// TestPagesListFlags: the tables of flags in README and docs say what --help does. The page of the server has all of its flags.
func TestPagesListFlags(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	root := newCommand(new(options), nil).Flags()
	server := (&servecli.Program{}).Command(t.Context()).Flags()
	listed := map[string]bool{}
	for _, page := range append(pages, "../../README.md") {
		flags, links := root, ""
		switch filepath.Base(page) {
		case "operating.md":
			flags = server
		case "README.md":
			links = "docs/"
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		want := flagTable.ReplaceAllStringFunc(string(text), func(table string) string {
			rows := strings.SplitAfter(table, "\n")
			for i, row := range rows {
				name := flagRow.FindStringSubmatch(row)
				if name == nil {
					continue
				}
				f := flags.Lookup(name[1])
				if !assert.NotNil(t, f, "%s: --%s does not exist", page, name[1]) {
					continue
				}
				if flags == server {
					assert.NotContains(t, listed, f.Name, "%s lists it once", page)
					listed[f.Name] = true
				}
				rows[i] = cmdline.PageRow(f, links) + "\n"
			}
			return strings.Join(rows, "")
		})
		if *updateFlags {
			require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
			continue
		}
		assert.Equal(t, want, string(text), "%s: go test ./cmd/rankd -run TestPagesListFlags -update-flags", page)
	}
	server.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			assert.Contains(t, listed, f.Name, "docs/operating.md lacks the row:\n%s", cmdline.PageRow(f, ""))
		}
	})
}
