package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// raceLine is a line of .ci/race: a package, the tests that are run with the detector, if not all, and why that is so, or why
// the package is there although it starts no goroutine.
var raceLine = regexp.MustCompile(`^\./(\S*)(?: +(\w+(?:\|\w+)*))?(?: +# (.+))?$`)

// TestRaceDetector: .ci/test runs with the race detector each package whose own code starts a goroutine or holds a
// mutex. A line for another package, or with some tests alone, says why.
func TestRaceDetector(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".ci/race"))
	require.NoError(t, err)
	reasons, some, owner := map[string]string{}, map[string]bool{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		parts := raceLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if strings.HasPrefix(line, "#") {
			continue
		}
		require.NotNil(t, parts, line)
		name := parts[1]
		if name == "" {
			name = "."
		}
		assert.NotContains(t, reasons, name)
		reasons[name] = parts[3]
		if parts[2] == "" {
			continue
		}
		some[name] = true
		assert.NotEmpty(t, parts[3], "%s has names and no reason", name)
		for test := range strings.SplitSeq(parts[2], "|") {
			owner[test] = name
		}
	}
	for test, name := range owner { // One pattern has the names of all such packages.
		for folder := range some {
			assert.Equal(t, folder == name, hasTest(t, folder, test), "%s, which .ci/race names for %s, in %s", test, name, folder)
		}
	}
	for folder := range packages(t) {
		reason, listed := reasons[folder]
		delete(reasons, folder)
		tests, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		require.NoError(t, err)
		switch concurrent := startsOrLocks(t, folder); {
		case strings.HasPrefix(folder, "bench/peers") || strings.HasPrefix(folder, "adapters/beam") || strings.HasPrefix(folder, ".ci"): // modules of their own
		case len(tests) == 0:
			assert.False(t, listed, "%s has no test", folder)
		case concurrent:
			assert.True(t, listed, "%s starts a goroutine or holds a mutex, and .ci/race lacks it", folder)
		default:
			assert.Equal(t, listed, reason != "", "%s neither starts a goroutine nor holds a mutex: its line needs a reason", folder)
		}
	}
	for name, reason := range reasons { // packages of tests alone
		tests, err := filepath.Glob(filepath.Join(root, name, "*_test.go"))
		require.NoError(t, err)
		assert.True(t, len(tests) > 0 && reason != "", "%s of .ci/race has no test, or no reason", name)
	}
}

// hasTest reports whether a folder has a test of that name.
func hasTest(t *testing.T, folder, name string) bool {
	sources, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	require.NoError(t, err)
	return slices.ContainsFunc(sources, func(source string) bool {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		return strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)")
	})
}

// startsOrLocks reports whether the sources of a folder, without tests, have a go statement, a call of a method Go
// with a function, or a mutex.
func startsOrLocks(t *testing.T, folder string) (found bool) {
	sources, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	require.NoError(t, err)
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found = true
			case *ast.CallExpr:
				method, ok := n.Fun.(*ast.SelectorExpr)
				found = found || ok && method.Sel.Name == "Go" && len(n.Args) == 1
			case *ast.SelectorExpr:
				library, ok := n.X.(*ast.Ident)
				found = found || ok && library.Name == "sync" && (n.Sel.Name == "Mutex" || n.Sel.Name == "RWMutex")
			}
			return !found
		})
	}
	return found
}
