package plantest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
)

// block matches a file that a page shows, with its name in the first line.
var block = regexp.MustCompile("(?s)```(?:typescript|toml)\n((?://|#) ((?:plans|registry)/[a-z.]+)\n.*?)```")

// TestThePageIsTrue runs the tests that the page shows, with the plan and the tables that the
// page names. They pass. After a change of the plan they fail as the page says.
func TestThePageIsTrue(t *testing.T) {
	dir := t.TempDir()
	page := ""
	for _, name := range []string{"your-own-data.md", "change-a-plan.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		require.NoError(t, err)
		page = string(text)
		for _, file := range block.FindAllStringSubmatch(page, -1) {
			if file[2] != "plans/typo.plan.ts" {
				writeAll(t, dir, map[string]string{file[2]: file[1]})
			}
		}
	}
	lockRegistry(t, filepath.Join(dir, "registry"))
	t.Chdir(dir)
	c := Config{Folder: "plans", Engine: rankd.Options{Registry: os.DirFS("registry")}}
	report := run(t, c)
	passed, failed := report.Counts()
	require.Equal(t, [2]int{3, 0}, [2]int{passed, failed}, report.Text())

	plan, err := os.ReadFile("plans/shelf.plan.ts")
	require.NoError(t, err)
	require.Contains(t, string(plan), "? 2 : 1")
	writeAll(t, dir, map[string]string{"plans/shelf.plan.ts": strings.Replace(string(plan), "? 2 : 1", "? 1.2 : 1", 1)})
	c.Run = regexp.MustCompile("colour")
	_, said, _ := strings.Cut(run(t, c).Text(), "\n")
	assert.Contains(t, page, said)
}
