package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rankd/rankd"
)

// listPlans prints one line per sound plan of the plan folder. Each plan that does not load
// is an error, and the sound ones stay on the list.
func listPlans(e *rankd.Engine, w io.Writer) error {
	plans, err := e.Plans()
	if err != nil {
		return err
	}
	var broken []error
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PLAN\tNODES\tOUTPUTS\tOPS")
	for _, p := range plans {
		if p.Err != nil {
			broken = append(broken, p.Err)
			continue
		}
		var ops []string
		for _, n := range p.Info.Nodes {
			ops = append(ops, strings.TrimPrefix(n.Op, "core::"))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", p.Name, len(p.Info.Nodes), len(p.Info.Outputs), strings.Join(ops, " "))
	}
	for _, a := range e.Generation().Aliases {
		fmt.Fprintf(table, "%s\t\t\talias of %s\n", a.Name, a.String())
	}
	return errors.Join(append(broken, table.Flush())...)
}

// printPlanInfo prints the chosen plan as one JSON document.
func printPlanInfo(e *rankd.Engine, w io.Writer) error {
	info, err := e.PlanInfo("")
	if err != nil {
		return err
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(info)
}
