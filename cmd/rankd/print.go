package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// listPlans prints one line per sound plan of the library. Each plan that does not load
// is an error, which takes no sound one off the list.
func (a *app) listPlans(w io.Writer) error {
	plans, err := a.library.List()
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
		for _, n := range p.Graph.Nodes {
			ops = append(ops, strings.TrimPrefix(n.Op, "core::"))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", p.Name, len(p.Graph.Nodes), len(p.Graph.Outputs), strings.Join(ops, " "))
	}
	return errors.Join(append(broken, table.Flush())...)
}

// printPlanInfo prints the chosen plan as one JSON document.
func (a *app) printPlanInfo(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(a.plan.Info())
}
