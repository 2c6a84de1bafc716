package server

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// loggers are the calls of a logger in what accepts and reads connections, and in what a request of theirs reaches in
// the library. Each has a bound: a stranger must not fill a log.
var loggers = []string{
	"../../../engine.go: h.engine.options.Logger.Warn", // a reload causes it
}

// TestEachLineThatAStrangerCausesIsBounded lists the calls of the logger that accepting and reading can reach: all in
// the packages of fronts and connections, and in the library.
func TestEachLineThatAStrangerCausesIsBounded(t *testing.T) {
	var found []string
	for _, folder := range []string{
		"../../..", "../../../serve", "../../../serve/session", "../../../serve/httpfront", "../../../serve/respfront", "../../../serve/access",
		"../../../reactor", "../../../reactor/stream", "../../../reactor/transport",
	} {
		files, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			path := filepath.Join(folder, f.Name())
			tree, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(tree, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if logs := loggerCall(call); logs != "" && !slices.Contains(found, path+": "+logs) {
						found = append(found, path+": "+logs)
					}
				}
				return true
			})
		}
	}
	slices.Sort(found)
	assert.Equal(t, loggers, found, "a line that a stranger can cause goes through fileio.Lines")
}

// loggerCall returns the text of a call of a slog.Logger, "" if it is none.
func loggerCall(call *ast.CallExpr) string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	levels := []string{"Debug", "Info", "Warn", "Error", "Log", "LogAttrs", "DebugContext", "InfoContext", "WarnContext", "ErrorContext", "Print", "Printf", "Println"}
	if !ok || !slices.Contains(levels, method.Sel.Name) {
		return ""
	}
	receiver := textOf(method.X)
	last := receiver[strings.LastIndexByte(receiver, '.')+1:]
	if last != "slog" && last != "log" && !strings.HasSuffix(strings.ToLower(last), "logger") && !strings.HasPrefix(receiver, "slog.") {
		return ""
	}
	return receiver + "." + method.Sel.Name
}

func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return textOf(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		return textOf(e.Fun)
	default:
		return fmt.Sprintf("%T", e)
	}
}
