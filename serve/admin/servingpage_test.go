package admin_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/outcome"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/metrics.md and docs/serving.md")

// TestServingPage compares two tables of the pages. The table of metrics in docs/reference/metrics.md
// must have the metrics that an engine shows. The table of errors in docs/serving.md must have
// the classes of replies.
func TestServingPage(t *testing.T) {
	for name, table := range map[string]string{"reference/metrics.md metrics": metricsTable(t), "serving.md errors": errorsTable()} {
		name, place, _ := strings.Cut(name, " ")
		path := filepath.Join("..", "..", "docs", name)
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		text := replaced(t, string(page), place, table)
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			continue
		}
		assert.Equal(t, text, string(page), "go test ./serve/admin -run TestServingPage -update")
	}
}

// replaced returns the page with a table between the two comments that mark its place.
func replaced(t *testing.T, page, name, table string) string {
	before, rest, ok := strings.Cut(page, "<!-- "+name+":")
	require.True(t, ok, "the page has no place for %s", name)
	comment, rest, ok := strings.Cut(rest, "-->\n")
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, "<!-- /"+name+" -->")
	require.True(t, ok, "the place for %s has no end", name)
	return before + "<!-- " + name + ":" + comment + "-->\n" + table + "<!-- /" + name + " -->" + after
}

// metricsTable lists the metrics of rankd in the order of their names.
func metricsTable(t *testing.T) string {
	var table strings.Builder
	table.WriteString("| metric | type | labels | |\n|---|---|---|---|\n")
	for _, m := range servedMetrics(t) {
		if strings.HasPrefix(m.name, "rankd_") {
			fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(m.labels, ", "), m.help)
		}
	}
	return table.String()
}

// errorsTable lists the classes of replies.
func errorsTable() string {
	var table strings.Builder
	table.WriteString("| RESP | HTTP | `class` in metrics and logs | `Retry-After` | |\n|---|---|---|---|---|\n")
	for _, c := range outcome.Classes() {
		code, retry := "", ""
		if c != outcome.OK {
			code = "`-" + c.Code() + "`"
		}
		if c.RetryAfter() > 0 {
			retry = fmt.Sprintf("%d s", c.RetryAfter())
		}
		fmt.Fprintf(&table, "| %s | %d | `%s` | %s | %s |\n", code, c.Status(), c.Label(), retry, c.Text())
	}
	return table.String()
}
