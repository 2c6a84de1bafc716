package rankd_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateAPI = flag.Bool("update-api", false, "write docs/api.txt anew")

// publicPackages are the packages that keep a compatibility promise: what a program imports to
// embed rankd and to write tasks.
var publicPackages = []string{
	".", "task", "task/builtin", "rowset", "registry", "plan", "rankdtest", "program", "trace", "trace/record", "adapters/rankdprom", "adapters/rankdotel", "compiler", "compiler/editor",
}

// TestPackagesSayWhatHolds: README and the comment of package rankd name the packages with a
// compatibility promise. The first sentence of each other package says that it makes none.
func TestPackagesSayWhatHolds(t *testing.T) {
	var names []string
	for _, dir := range publicPackages {
		names = append(names, strings.Replace(dir, ".", "rankd", 1))
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(readme), "| package | for |\n|---|---|\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	var inREADME []string
	for row := range strings.Lines(table) {
		for _, name := range regexp.MustCompile("`([a-z/]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			inREADME = append(inREADME, name[1])
		}
	}
	assert.ElementsMatch(t, names, inREADME)
	comments := packageComments(t)
	_, stability, ok := strings.Cut(comments["."], "# Stability")
	require.True(t, ok)
	inDoc := []string{}
	for _, line := range regexp.MustCompile(`(?m)^\t([a-z/]+(?:, [a-z/]+)*)  `).FindAllStringSubmatch(stability, -1) {
		inDoc = append(inDoc, strings.Split(line[1], ", ")...)
	}
	assert.ElementsMatch(t, names, inDoc)

	for dir, comment := range comments {
		first := new(doc.Package).Synopsis(comment)
		assert.Equal(t, !slices.Contains(publicPackages, dir), strings.Contains(first, "is not covered by the compatibility promise"), "package %s: %s", dir, first)
	}
}

// packageComments returns the comments of all packages that others can import, by folder.
func packageComments(t *testing.T) map[string]string {
	comments := map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(path string, file fs.DirEntry, err error) error {
		switch name := file.Name(); {
		case err != nil:
			return err
		case file.IsDir() && (name == "testdata" || name == "internal" || name == "peers" || name != "." && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		require.NoError(t, err)
		if source.Name.Name != "main" {
			comments[filepath.ToSlash(filepath.Dir(path))] += source.Doc.Text()
		}
		return nil
	}))
	return comments
}

// A file holds the exported API, so that a review shows its changes.
func TestAPI(t *testing.T) {
	const golden = "docs/api.txt"
	var api bytes.Buffer
	for _, dir := range publicPackages {
		writeAPI(t, &api, dir)
	}
	if *updateAPI {
		require.NoError(t, os.WriteFile(golden, api.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), api.String(), "the exported API has changed: if that is meant, go test . -run TestAPI -update-api")
}

// writeAPI prints the exported declarations of the package in dir, without docs and bodies.
func writeAPI(t *testing.T, w *bytes.Buffer, dir string) {
	fset, pkg := packageDoc(t, dir)
	fmt.Fprintf(w, "# %s\n", pkg.ImportPath)
	for _, values := range [][]*doc.Value{pkg.Consts, pkg.Vars} {
		for _, v := range values {
			writeDecl(t, w, fset, v.Decl)
		}
	}
	for _, f := range pkg.Funcs {
		writeDecl(t, w, fset, f.Decl)
	}
	for _, typ := range pkg.Types {
		target := aliased(typ)
		writeType(t, w, fset, typ)
		if target == nil || strings.Contains(typ.Doc, "Not stable yet") {
			continue
		}
		// The promise covers the type that the alias stands for.
		if from := target.X.(*ast.Ident).Name; !slices.Contains(publicPackages, from) {
			if _, err := os.Stat(from); err != nil {
				from = "internal/" + from
			}
			theirs, pkg := packageDoc(t, from)
			i := slices.IndexFunc(pkg.Types, func(t *doc.Type) bool { return t.Name == target.Sel.Name })
			require.GreaterOrEqual(t, i, 0, "%s.%s", from, target.Sel.Name)
			pkg.Types[i].Funcs = nil // They belong to the other package.
			writeType(t, w, theirs, pkg.Types[i])
		}
	}
}

// aliased returns the type of another package for which typ is an alias, or nil.
func aliased(typ *doc.Type) *ast.SelectorExpr {
	spec := typ.Decl.Specs[0].(*ast.TypeSpec)
	if !spec.Assign.IsValid() {
		return nil
	}
	selector, _ := spec.Type.(*ast.SelectorExpr)
	return selector
}

// packageDoc reads the exported declarations of the package in dir.
func packageDoc(t *testing.T, dir string) (*token.FileSet, *doc.Package) {
	fset := token.NewFileSet()
	var files []*ast.File
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(fset, files, filepath.ToSlash(filepath.Join("github.com/rankd/rankd", dir)))
	require.NoError(t, err)
	return fset, pkg
}

// writeType prints a type with its constants, functions and methods.
func writeType(t *testing.T, w *bytes.Buffer, fset *token.FileSet, typ *doc.Type) {
	writeDecl(t, w, fset, typ.Decl)
	for _, values := range [][]*doc.Value{typ.Consts, typ.Vars} {
		for _, v := range values {
			writeDecl(t, w, fset, v.Decl)
		}
	}
	for _, f := range append(typ.Funcs, typ.Methods...) {
		writeDecl(t, w, fset, f.Decl)
	}
}

// writeDecl prints a declaration without docs, comments and body.
func writeDecl(t *testing.T, w *bytes.Buffer, fset *token.FileSet, decl ast.Decl) {
	ast.Inspect(decl, func(n ast.Node) bool { // comments inside a declaration are not API
		switch n := n.(type) {
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.GenDecl:
			n.Doc = nil
		case *ast.FuncDecl:
			n.Doc, n.Body = nil, nil
		}
		return true
	})
	var text bytes.Buffer
	require.NoError(t, (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&text, fset, decl))
	for line := range strings.Lines(text.String()) {
		if strings.TrimSpace(line) != "" {
			w.WriteString(line)
		}
	}
	w.WriteString("\n")
}
