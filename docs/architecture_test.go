package docs_test

import (
	"cmp"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/trace"
)

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// unwrapped returns a text in one line, so that a sentence is found wherever its lines end.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// packages returns the folders of the sources without tests, as seen from the root, with their imports.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		folder = filepath.ToSlash(folder)
		imports[folder] = append(imports[folder], "")
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value) // the parser has accepted it
			imports[folder] = append(imports[folder], name)
		}
		return err
	}))
	return imports
}

// rooms are the rows of the table of rooms: each room with the rooms that it may import, or "any".
func rooms(t *testing.T) map[string]string {
	_, text, _ := strings.Cut(readPage(t, "architecture.md"), "## The rooms\n")
	text, _, _ = strings.Cut(text, "\n## ")
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(.*?)` \\|.*\\| (.*?) \\|$").FindAllStringSubmatch(text, -1) {
		assert.NotContains(t, rows, row[1], "the table has it twice")
		rows[row[1]] = row[2]
	}
	return rows
}

// TestRooms: the table has each top-level folder with a package, twenty at most, and a package imports what the row
// of its room allows, and of internal whatever it likes.
func TestRooms(t *testing.T) {
	rows := rooms(t)
	assert.LessOrEqual(t, len(rows), 21, "twenty folders and the root")
	room := func(folder string) string {
		top, _, _ := strings.Cut(folder, "/")
		return strings.Replace(top, ".", "rankd", 1)
	}
	found := map[string]bool{"docs": true}
	for folder, imports := range packages(t) {
		from := room(folder)
		found[from] = true
		allowed, ok := rows[from]
		assert.True(t, ok, "the table lacks %s", from)
		for _, name := range imports {
			name, own := strings.CutPrefix(name, "github.com/rankd/rankd")
			to := room(cmp.Or(strings.TrimPrefix(name, "/"), "."))
			if !own || to == from || to == "internal" {
				continue
			}
			but, any := strings.CutPrefix(allowed, "any")
			assert.True(t, any != strings.Contains(cmp.Or(but, allowed), "`"+to+"`") || allowed == "any", "%s imports %s, and its row does not allow it", folder, to)
		}
	}
	for name := range rows {
		assert.True(t, found[name], "the page names the room %s, which does not exist", name)
	}
}

// TestInsideTheRooms: the table of packages names each package once, and no other.
func TestInsideTheRooms(t *testing.T) {
	_, text, _ := strings.Cut(readPage(t, "architecture.md"), "## Inside the rooms\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var named []string
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(text, -1) {
		for _, name := range code.FindAllStringSubmatch(row[1], -1) {
			assert.NotContains(t, named, name[1], "the table has it twice")
			assert.DirExists(t, filepath.Join(root, name[1]))
			named = append(named, name[1])
		}
	}
}

// TestImportable: 45 packages at most can be imported from another module.
func TestImportable(t *testing.T) {
	var importable []string
	for folder := range packages(t) {
		if slices.Contains(strings.Split(folder, "/"), "internal") || strings.HasPrefix(folder, "bench/peers") || strings.HasPrefix(folder, "adapters/beam") || strings.HasPrefix(folder, ".ci") {
			continue
		}
		sources, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		require.NoError(t, err)
		source, err := parser.ParseFile(token.NewFileSet(), sources[0], nil, parser.PackageClauseOnly)
		require.NoError(t, err)
		if source.Name.Name != "main" {
			importable = append(importable, folder)
		}
	}
	assert.LessOrEqual(t, len(importable), 45, importable)
}

// onlyImports matches "only `a` and `b` import x and y" in the page.
var onlyImports = regexp.MustCompile("[Oo]nly ((?:`[a-z/]+`(?: and )?)+) imports? ([a-z]+(?: and [a-z]+)*)")

// Only these packages import a library, where the page says so.
func TestOnlyTheseImport(t *testing.T) {
	imports := packages(t)
	libraries := map[string]bool{}
	for _, promise := range onlyImports.FindAllStringSubmatch(unwrapped(readPage(t, "architecture.md")), -1) {
		var want []string
		for _, name := range code.FindAllStringSubmatch(promise[1], -1) {
			want = append(want, name[1])
		}
		for library := range strings.SplitSeq(promise[2], " and ") {
			libraries[library] = true
			var importers []string
			for folder, names := range imports {
				if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(strings.Split(name, "/"), library) }) {
					importers = append(importers, folder)
				}
			}
			assert.ElementsMatch(t, want, importers, "who imports %s", library)
		}
	}
	for _, library := range []string{"gnet", "pond", "esbuild", "goja"} {
		assert.True(t, libraries[library], "the page says nothing of %s", library)
	}
}

// The pages have the statuses of a node in a trace. They also have the number of rows from
// which on placement does not guess.
func TestPagesHaveTheNumbersAndWordsOfTheSources(t *testing.T) {
	text := readPage(t, "reference/trace-format.md")
	for _, name := range []string{"SpanStatus", "status"} {
		_, row, ok := strings.Cut(text, "| `"+name+"` |")
		require.True(t, ok, "trace-format.md has no row %s", name)
		row, _, _ = strings.Cut(row, "\n")
		for _, status := range []trace.Status{trace.OK, trace.Failed, trace.Timeout, trace.Late, trace.Skipped} {
			assert.Contains(t, row, "`"+string(status)+"`", name)
		}
	}
	source, err := os.ReadFile("../scheduler/profile.go")
	require.NoError(t, err)
	bound := regexp.MustCompile(`const firstRowsMax = (\d+)`).FindSubmatch(source)
	require.NotNil(t, bound)
	assert.Contains(t, unwrapped(readPage(t, "placement.md")), "and makes "+string(bound[1])+" rows at most")
}

// The glossary entry of a package links to the package.
func TestPackagesPointToTheGlossary(t *testing.T) {
	for _, row := range regexp.MustCompile(`(?m)^\|.*\|.*\|(.*)\|$`).FindAllStringSubmatch(readPage(t, "glossary.md"), -1) {
		for _, name := range code.FindAllStringSubmatch(row[1], -1) {
			folder := strings.TrimPrefix(name[1], "rankd") // package rankd is the root
			assert.Contains(t, readPage(t, filepath.Join(root, folder, "doc.go")), "docs/glossary.md", name[1])
		}
	}
}
