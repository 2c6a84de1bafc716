package compiler

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// FuzzCompile gives any text to the compiler. Either the engine accepts the artifact, or there are
// errors, each at a line that the source has.
func FuzzCompile(f *testing.F) {
	files, err := filepath.Glob("testdata/*/[m-s]*.ts")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	for _, code := range plainCode[:20] {
		f.Add(planOf("vm", "outKey: Key.score, expr", []string{"{" + code + "}"}))
	}
	reg, err := registry.Default("dev")
	require.NoError(f, err)
	catalog := builtin.Catalog()
	language := NewLanguage(catalog, reg)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			return
		}
		u := newUnit(language, "plans", Source{Folder: t.TempDir(), File: "a.plan.ts", Text: []byte(text)})
		stop := time.AfterFunc(time.Second, func() { // what a child's watchdog does
			if vm := u.running.Load(); vm != nil {
				vm.Interrupt(interruption{"timeout", "slow", "slow"})
			}
		})
		defer stop.Stop()
		u.compile()
		lines := len(lineEnd.Split(text, -1))
		for _, d := range u.answer.Errors {
			require.NotEqual(t, "internal", d.Code, d.String())
			require.True(t, d.File != "a.plan.ts" || 1 <= d.Line && d.Line <= lines, d.String())
			require.NotEmpty(t, d.Message)
			require.NotContains(t, d.Message, "\n")
			_ = d.String()
		}
		if len(u.answer.Errors) > 0 {
			require.Nil(t, u.answer.Artifact)
			return
		}
		require.True(t, json.Valid(u.answer.Artifact))
		if _, err := plan.Load("a", u.answer.Artifact, catalog, reg); err != nil {
			var bad *plan.Error // by the own check of a strict op; result reports it at the node's place
			require.ErrorAs(t, err, &bad)
			require.NotEmpty(t, bad.SourceSpan, err.Error())
		}
	})
}
