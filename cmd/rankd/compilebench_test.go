package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCompile measures rankd compile from a cold start to its end, as a shell does: the process, its child,
// the plans and the artifacts. It builds the program first. The plans are copies of complex_dag, the largest example.
func BenchmarkCompile(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "rankd")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(b, err, "%s", out)
	source, err := os.ReadFile("../../plans/complex_dag.plan.ts")
	require.NoError(b, err)
	for _, plans := range []int{1, 200} {
		folder := filepath.Join(dir, fmt.Sprint(plans))
		require.NoError(b, os.Mkdir(folder, 0o755))
		for i := range plans {
			name := fmt.Sprintf("p%d", i)
			text := strings.Replace(string(source), "complex_dag", name, 1)
			require.NoError(b, os.WriteFile(filepath.Join(folder, name+".plan.ts"), []byte(text), 0o644))
		}
		b.Run(fmt.Sprintf("plans=%d", plans), func(b *testing.B) {
			for b.Loop() {
				artifacts := filepath.Join(dir, "artifacts")
				out, err := exec.Command(program, "compile", folder, "-o", artifacts).CombinedOutput()
				require.NoError(b, err, "%s", out)
				written, err := os.ReadDir(artifacts)
				require.NoError(b, err)
				require.Len(b, written, plans)
				b.StopTimer()
				require.NoError(b, os.RemoveAll(artifacts))
				b.StartTimer()
			}
		})
	}
}
