// Package docs_test, which is not covered by the compatibility promise, keeps README and docs true: whatever
// they name must exist.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/rankdtest"
)

const root = ".."

// pages returns README, docs and the folder of figures by path, as seen from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths := []string{"../README.md", "../CONTRIBUTING.md", "../examples/articles/README.md"}
	for _, pattern := range []string{"*.md", "traces/*.md", "deploy/*.md", "reference/*.md", "reference/tasks/*.md", "../bench/figures/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts[filepath.Join("docs", path)] = string(text)
	}
	return texts
}

var (
	fence    = regexp.MustCompile("(?s)```.*?```")
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code     = regexp.MustCompile("`([^`\n]+)`")
	testName = regexp.MustCompile(`^(?:([a-z][\w/]*)/)?((?:Test|Benchmark|Example|Fuzz)[A-Z]\w*)(/.*)?$`)
	goName   = regexp.MustCompile(`^\*?([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?(?:\(.*\))?$`)
	flagName = regexp.MustCompile(`(?:^| )--([a-z][\w-]+)`)
)

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(text string) (all []string) {
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, match[1]))
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	texts := pages(t)
	for page, text := range texts {
		for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(match[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
				_, err := os.Stat(filepath.Join(root, target))
				assert.NoError(t, err, "%s links to %s", page, match[1])
			}
			if anchor != "" {
				assert.Contains(t, anchors(texts[target]), anchor, "%s links to %s", page, match[1])
			}
		}
	}
}

// Pages that sources name, in comments, errors and help, exist, and so do their sections.
func TestSourcesNamePagesThatExist(t *testing.T) {
	texts := pages(t)
	named := regexp.MustCompile(`\b((?:docs|bench/figures)/[\w/-]+\.md)(?:#([\w-]+))?`)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range named.FindAllStringSubmatch(string(source), -1) {
			page := match[1]
			if assert.FileExists(t, filepath.Join(root, page), path) && match[2] != "" {
				assert.Contains(t, anchors(texts[page]), match[2], "%s names %s", path, match[0])
			}
		}
		return err
	}))
}

// tree is what the sources declare.
type tree struct {
	tests   map[string][]string // names of tests by folder
	names   map[string]bool     // "package.Name", and "package.Type.Member"
	known   map[string]bool     // packages
	aliases map[string]string   // "package.Name" of a type of another package, by the other name
	strings map[string]bool     // string literals of the programs, including flags, and cobra's flag "help"
}

func readTree(t *testing.T) *tree {
	t.Helper()
	tr := &tree{tests: map[string][]string{}, names: map[string]bool{}, known: map[string]bool{}, aliases: map[string]string{}, strings: map[string]bool{"help": true}}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "_test.go") {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
					tr.tests[folder] = append(tr.tests[folder], f.Name.Name)
				}
			}
			return nil
		}
		tr.add(file)
		if hasFlags(folder) {
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, _ := strconv.Unquote(literal.Value) // the parser has accepted it
					tr.strings[text] = true
				}
				return true
			})
		}
		return nil
	}))
	for alias, target := range tr.aliases {
		for name := range maps.Clone(tr.names) {
			if member, ok := strings.CutPrefix(name, target+"."); ok {
				tr.names[alias+"."+member] = true
			}
		}
	}
	return tr
}

// hasFlags reports whether the sources in a folder may declare flags.
func hasFlags(folder string) bool {
	return slices.ContainsFunc([]string{"program", "bench", "serve", "internal/command", "internal/cmdline"}, func(room string) bool {
		return strings.HasPrefix(filepath.ToSlash(folder), room)
	})
}

// add adds the exported names of a file.
func (tr *tree) add(file *ast.File) {
	pkg := file.Name.Name
	tr.known[pkg] = true
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := pkg + "." + d.Name.Name
			if d.Recv != nil {
				name = pkg + "." + receiver(d.Recv.List[0].Type) + "." + d.Name.Name
			}
			tr.names[name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						tr.names[pkg+"."+name.Name] = true
					}
				case *ast.TypeSpec:
					tr.names[pkg+"."+s.Name.Name] = true
					if target, ok := s.Type.(*ast.SelectorExpr); ok && s.Assign.IsValid() {
						tr.aliases[pkg+"."+s.Name.Name] = target.X.(*ast.Ident).Name + "." + target.Sel.Name
					}
					for _, member := range members(s.Type) {
						tr.names[pkg+"."+s.Name.Name+"."+member] = true
					}
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// members returns the fields of a struct and the methods of an interface.
func members(e ast.Expr) (names []string) {
	var list *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		list = e.Fields
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return nil
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// TestNamesExist: each test, file, Go name and flag exists that a page quotes in backquotes. A
// test is written as package/TestName, or as TestName if the package is clear.
func TestNamesExist(t *testing.T) {
	tr := readTree(t)
	top, err := os.ReadDir(root)
	require.NoError(t, err)
	for page, text := range pages(t) {
		for _, match := range code.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			quoted := match[1]
			if name := testName.FindStringSubmatch(quoted); name != nil {
				assert.True(t, tr.hasTest(name[1], name[2]), "%s: no test %s", page, quoted)
				if name[2] == "TestScripts" {
					assert.FileExists(t, filepath.Join(root, name[1], "testdata/script", name[3]+".txtar"), "%s: %s", page, quoted)
				}
				continue
			}
			if name := goName.FindStringSubmatch(quoted); name != nil && tr.known[name[1]] {
				full := strings.TrimSuffix(strings.Join(name[1:4], "."), ".")
				assert.True(t, tr.names[full], "%s: no Go name %s", page, quoted)
				continue
			}
			for _, flag := range flagName.FindAllStringSubmatch(quoted, -1) {
				spellings := []string{flag[1], strings.ReplaceAll(flag[1], "_", "-"), strings.ReplaceAll(flag[1], "-", "_")}
				assert.True(t, slices.ContainsFunc(spellings, func(s string) bool { return tr.strings[s] }), "%s: no flag --%s", page, flag[1])
			}
			folder, _, isPath := strings.Cut(quoted, "/")
			isPath = isPath && slices.ContainsFunc(top, func(e os.DirEntry) bool { return e.IsDir() && e.Name() == folder })
			if isPath && !strings.ContainsAny(quoted, " *<…") {
				_, err := os.Stat(filepath.Join(root, quoted))
				assert.NoError(t, err, "%s: no file %s", page, quoted)
			}
		}
	}
}

// hasTest reports whether a package, or any if it is "", has the test. The package rankd is the root.
func (tr *tree) hasTest(pkg, name string) bool {
	if pkg == "rankd" {
		pkg = "."
	}
	for folder, names := range tr.tests {
		if (pkg == "" || folder == pkg) && slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// TestServingHasEachMemberOfARequest compares the table of the page with the members that the engine reads.
func TestServingHasEachMemberOfARequest(t *testing.T) {
	_, table, ok := strings.Cut(readPage(t, "serving.md"), "| field of a request | |\n|---|---|\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	var told, read []string
	for row := range strings.Lines(table) {
		told = append(told, strings.Split(row, "`")[1])
	}
	for _, m := range request.Members() {
		read = append(read, m.Name)
	}
	assert.ElementsMatch(t, read, told)
}

// TestDrawingsAreThoseOfTheTimelines: the page shows what TestTimelines of package scheduler
// draws.
func TestDrawingsAreThoseOfTheTimelines(t *testing.T) {
	page, err := os.ReadFile("placement.md")
	require.NoError(t, err)
	for _, name := range []string{"7_life_cycle", "7_life_cycle_timeout"} {
		text, err := os.ReadFile("../scheduler/testdata/timelines/" + name + ".txt")
		require.NoError(t, err)
		_, drawing, _ := strings.Cut(string(text), "---\n")
		assert.Contains(t, string(page), "```\n"+drawing+"```\n", name)
	}
}

// TestReadmeProgram builds and runs the program that the README shows, against a Redis with the demo data.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	match := regexp.MustCompile("(?s)```go\n(package main.*?)```\n+```console\n\\$ go run \\.\n(.*?)…\n```").FindSubmatch(readme)
	require.NotNil(t, match, "a program and the beginning of its output")
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	source := filepath.Join(t.TempDir(), "main.go")
	program := strings.Replace(string(match[1]), `"127.0.0.1:6379"`, strconv.Quote(redis.Addr()), 1)
	require.NoError(t, os.WriteFile(source, []byte(program), 0o644))
	command := exec.CommandContext(t.Context(), "go", "run", source)
	command.Dir = root
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.True(t, strings.HasPrefix(string(output), string(match[2])), "%s", output)
}
