package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ownership matches the words by which a type says who may touch it.
var ownership = regexp.MustCompile(`(?i)loop only|only the loop|any goroutine|one goroutine|on the goroutine|only the goroutine|` +
	`immutable|belongs? to|worker|goroutine from|only (the|that) body|each method says|does not change|like bytes`)

// Each exported type with parts says who may touch it. Numbers and strings are values, which
// nobody shares.
func TestEachTypeSaysWhoMayTouchIt(t *testing.T) {
	var silent []string
	require.NoError(t, filepath.WalkDir(root, func(path string, file fs.DirEntry, err error) error {
		switch name := file.Name(); {
		case err != nil:
			return err
		case file.IsDir() && (name == "testdata" || name == "peers" || strings.HasPrefix(name, ".") && name != ".."):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		if source.Name.Name == "main" {
			return nil
		}
		for _, declaration := range source.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				declared := spec.(*ast.TypeSpec)
				_, isValue := declared.Type.(*ast.Ident)
				if !declared.Name.IsExported() || declared.Assign != 0 || isValue {
					continue
				}
				doc := group.Doc.Text() + declared.Doc.Text()
				if !ownership.MatchString(strings.Join(strings.Fields(doc), " ")) {
					silent = append(silent, path+": "+declared.Name.Name+": "+strings.Join(strings.Fields(doc), " "))
				}
			}
		}
		return nil
	}))
	assert.Empty(t, silent)
}
