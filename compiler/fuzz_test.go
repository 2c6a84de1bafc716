package compiler

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// FuzzCompile compiles any text. Either the engine accepts the artifact, or there are errors,
// each in a line of the source.
func FuzzCompile(f *testing.F) {
	_, files := BadPlans(f)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if "m" < name && name < "t" {
			f.Add(files[name])
		}
	}
	for _, code := range plainCode[:20] {
		f.Add(planOf("vm", "outKey: Key.score, expr", []string{"{" + code + "}"}))
	}
	reg, err := registry.Default("dev")
	require.NoError(f, err)
	catalog := builtin.Catalog()
	c, err := New(Config{Tasks: catalog, Registry: reg})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			return
		}
		source := Source{Folder: t.TempDir(), File: "a.plan.ts", Text: []byte(text)}
		u := newUnit(c.Language(), "plans", source)
		stop := time.AfterFunc(time.Second, func() { // what a child's watchdog does
			if vm := u.running.Load(); vm != nil {
				vm.Interrupt(interruption{"timeout", "slow", "slow"})
			}
		})
		defer stop.Stop()
		u.compile()
		lines := len(lineEnd.Split(text, -1))
		r := c.result(source, u.answer)
		for _, d := range r.Errors {
			require.NotEqual(t, "internal", d.Code, d.String())
			require.True(t, d.File != r.Path() || 1 <= d.Line && d.Line <= lines, d.String())
			require.NotEmpty(t, d.Message)
			require.NotContains(t, d.Message, "\n")
			_ = d.String()
		}
		if len(r.Errors) > 0 {
			require.Nil(t, r.Artifact)
			return
		}
		_, err := plan.Load("a", r.Artifact, catalog, reg)
		require.NoError(t, err)
	})
}
