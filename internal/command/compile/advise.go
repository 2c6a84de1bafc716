package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// advise reports, with --advise, the columns that a plan looks up and nobody reads, those that it looks up for rows that it does not keep, and
// those in its answer that it only computes with, and outages. All plans are there.
func (k *checker) advise(path string, g *plan.Graph) {
	if !k.options.advise {
		return
	}
	for _, n := range g.Nodes {
		if unread := g.Unread(n); len(unread) > 0 && n.Missing() != plan.MissingFail {
			k.add(path, n.SourceSpan, compiler.Diagnostic{Severity: compiler.Advice, Code: "unread-column",
				Message: fmt.Sprintf("node %q looks %s up, and nobody reads that: no node, and not returns", n.ID, names(unread)),
				Hint:    "drop it from the lookup"})
		}
	}
	for _, late := range g.LateLookups() {
		unread := g.Unread(late.Node)
		late.Columns = slices.DeleteFunc(late.Columns, func(key *registry.Key) bool { return slices.Contains(unread, key) })
		if len(late.Columns) == 0 {
			continue
		}
		if n := late.Node; n.Params.Given("timestamp") && len(late.Columns) < len(n.Params.Keys("fields")) {
			continue // All values of a row need its timestamp.
		}
		d := compiler.Diagnostic{Severity: compiler.Advice, Code: "late-lookup", Message: lateMessage(&late), Hint: lateHint(&late)}
		k.add(path, late.Node.SourceSpan, d)
	}
	k.outages(path, g)
	if shown := g.ShownInputs(); len(shown) > 0 {
		k.add(path, "", compiler.Diagnostic{Severity: compiler.Advice, Code: "shown-input",
			Message: "the answer shows " + names(shown) + ", with which the plan computes", Hint: "returns: [Key.…] of the plan says which columns go out"})
	}
}

func (k *checker) add(path, span string, d compiler.Diagnostic) {
	k.report.Diagnostics = append(k.report.Diagnostics, located(d, path, span))
	k.report.advice++
}

func names(keys []*registry.Key) string {
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = key.Name
	}
	return strings.Join(all, ", ")
}

// outages reports, of a plan that goes on without some node or has a minimum, what fails all the same, and what of the plan that answers in its
// place.
func (k *checker) outages(path string, g *plan.Graph) {
	if !g.Lenient && g.MinRows == nil {
		return
	}
	for _, o := range g.Outages() {
		message := "by the limits of its sources " + outageCost(&o)
		if o.Endpoint != nil {
			message = "if the endpoint " + o.Endpoint.Name + " is down or slow, " + outageCost(&o)
		}
		if below := g.Below.Plan(); below != "" {
			message += ": plan " + below + " answers"
			if there := k.plans[below].graph; there != nil {
				for _, other := range there.Outages() {
					if other.Endpoint == nil || other.Endpoint == o.Endpoint {
						message += ", and there " + outageCost(&other)
					}
				}
			}
		}
		span, hint := outageHint(&o, g)
		k.add(path, span, compiler.Diagnostic{Severity: compiler.Advice, Code: "outage", Message: message, Hint: hint})
	}
}

func outageCost(o *plan.Outage) string {
	var what []string
	for _, n := range o.Fatal {
		what = append(what, fmt.Sprintf("node %q (%s) fails the request", n.ID, n.Op))
	}
	for _, s := range o.Short {
		what = append(what, fmt.Sprintf("output %s has at most %s, and the plan wants %d", s.Output, errtext.Count(s.Rows, "row"), s.MinRows))
	}
	return strings.Join(what, ", and ")
}

// outageHint returns the place of the first node or output that an endpoint takes away, and how the plan could do without.
func outageHint(o *plan.Outage, g *plan.Graph) (span, hint string) {
	if o.Fatal == nil {
		return g.Nodes[g.Outputs[o.Short[0].Index]].SourceSpan, "another source, or a lower minRows"
	}
	hint = `onError of the node, or lenient: { onError: "auto" } of the plan, says how to go on`
	if i := slices.IndexFunc(o.Fatal, func(n *plan.Node) bool { return n.AutoWhy != "" }); i >= 0 {
		hint = fmt.Sprintf("lenient leaves node %q at fail: %s; its own onError may say otherwise", o.Fatal[i].ID, o.Fatal[i].AutoWhy)
	}
	return o.Fatal[0].SourceSpan, hint
}

func lateMessage(late *plan.LateLookup) string {
	rows := "for all rows"
	if late.Rows < plan.Unbounded {
		rows = "for up to " + errtext.Count(int(late.Rows), "row")
	}
	return fmt.Sprintf("node %q looks %s up %s, and nobody reads that before node %q (%s) keeps %d",
		late.Node.ID, names(late.Columns), rows, late.After.ID, late.After.Op, late.Kept)
}

// lateHint says what a later lookup saves. Bytes are the least that Redis and rankd exchange for a value: the name of
// the field, and a null as the answer.
func lateHint(late *plan.LateLookup) string {
	bytes := 0
	for _, key := range late.Columns {
		bytes += len(fmt.Sprintf("$%d\r\n%s\r\n$-1\r\n", len(key.Field), key.Field))
	}
	commands := "commands for all rows that it does not keep"
	switch fewer := int(late.Fewer); {
	case late.Fewer == plan.Unbounded:
	case fewer >= 0:
		commands = fmt.Sprintf("up to %s", errtext.Count(fewer, "command"))
	default:
		commands = fmt.Sprintf("no command (it costs up to %d more)", -fewer)
	}
	saved := fmt.Sprintf("and %d bytes and the values for each of these rows", bytes)
	if late.Rows < plan.Unbounded {
		saved = fmt.Sprintf("and up to %d bytes besides the values", (late.Rows-late.Kept)*int64(bytes))
	}
	hint := fmt.Sprintf("a lookup behind node %q saves a request %s, %s", late.After.ID, commands, saved)
	if late.Drops {
		hint += "; this lookup may drop rows, and would drop them there"
	}
	return hint
}
