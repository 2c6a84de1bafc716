package builtin

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/task"
)

// What reads Redis in this package says what it asks, and takes what the engine has read: it sends nothing, waits for
// nothing, takes no parts and knows no table.
func TestReadersOnlyAskAndMake(t *testing.T) {
	allowed := map[string][]string{ // by the file: what its task is for
		"sleep.go":  {"Sleep"},
		"recall.go": {"github.com/rankd/rankd/internal/taskrun"}, // the key to the engines' view of package task
	}
	waits := []string{"Send", "Parts", "Sleep", "Await", "Compute", "Put", "Peek", "Sending", "Env", "Invoke"}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		var met []string
		for _, i := range parsed.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			for _, secret := range []string{"rowcache", "taskrun", "scheduler", "reactor", "resp/"} {
				if strings.Contains(path, secret) {
					met = append(met, path)
				}
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if slices.Contains(waits, f.Sel.Name) {
				met = append(met, f.Sel.Name)
			}
			if on, ok := f.X.(*ast.CallExpr); ok { // c.Redis(…).Do(…): only to say what is wrong
				if of, ok := on.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "Redis" && !slices.Contains([]string{"Errorf", "CheckKind"}, f.Sel.Name) {
					met = append(met, "Redis."+f.Sel.Name)
				}
			}
			return true
		})
		for _, what := range met {
			assert.Contains(t, allowed[file], what, "%s: the engine does that between Ask and Make", file)
		}
	}
	for _, spec := range Specs() {
		reads := slices.ContainsFunc(spec.Params, func(p plan.ParamSchema) bool { return p.Name == "endpoint" })
		services := strings.HasPrefix(spec.Op, "core::remote")
		assert.Equal(t, reads && !services, spec.Ask != nil && spec.Make != nil && spec.Run == nil, spec.Op)
		assert.Equal(t, spec.Place == task.Waits, reads, spec.Op)
	}
}
