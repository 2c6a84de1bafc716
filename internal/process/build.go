package process

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds the program into a folder and returns its path. race adds the race detector.
func Build(ctx context.Context, folder string, race bool) (program string, err error) {
	const module = "github.com/rankd/rankd"
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	root, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", module, err)
	}
	program = filepath.Join(folder, "rankd")
	args := []string{"build", "-buildvcs=false", "-o", program}
	if race {
		program += "-race"
		args = []string{"build", "-buildvcs=false", "-race", "-o", program}
	}
	build := exec.CommandContext(ctx, "go", append(args, "./cmd/rankd")...)
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build rankd: %w\n%s", err, out)
	}
	return program, nil
}
