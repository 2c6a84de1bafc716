package program

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/reference"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
)

// tasksCommand returns "rankd tasks".
func (p *program) tasksCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "tasks [task] [flags]", Short: "List the tasks of plans, or describe one",
		Long: `List the tasks that plans may use. With the name of a task describe it: what it does, its
parameters, rows and columns to the edge, and an example with its answer.`,
		Example: `  rankd tasks
  rankd tasks sort
  rankd tasks core::sort --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("rankd tasks takes the name of one task, not %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			catalog, err := task.NewCatalog(append(builtin.Specs(), p.own.Tasks...)...)
			if err != nil {
				return err
			}
			tasks := reference.Tasks(catalog)
			if len(args) == 0 {
				if asJSON {
					return p.printJSON(tasks)
				}
				return reference.WriteList(p.stdout, tasks)
			}
			t, ok := reference.Find(tasks, args[0])
			if !ok {
				near, _ := reference.Nearest(tasks, args[0])
				return fmt.Errorf("task %s does not exist; did you mean %s? rankd tasks lists all", errtext.Quote(args[0]), near)
			}
			if asJSON {
				return p.printJSON(t)
			}
			return reference.WriteText(p.stdout, t)
		},
	}
	return cmdline.Dress(cmd, []cmdline.Setting{{Name: "json", To: &asJSON, Help: "print the same as JSON"}})
}

// printJSON prints a value as JSON for people to read.
func (p *program) printJSON(v any) error {
	out := json.NewEncoder(p.stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(v)
}
