// Package caption, which follows the engine's needs, has the words and numbers that all drawings of a trace
// share: times, places, and the sentences that say what bounds a request. All texts are plain; a drawing escapes
// them for its own form.
package caption

import (
	"fmt"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/trace"
)

// Run is a trace with the name that a comparison gives it, such as a scheduling mode. The name is empty if nothing is
// compared. Immutable.
type Run struct {
	Name  string
	Trace *trace.Trace
}

// Time returns a duration with three digits: "0", "850 ns", "12.3 µs", "1.23 ms", "15 s".
func Time(d time.Duration) string {
	for _, unit := range [...]struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d >= unit.size {
			value := fmt.Sprintf("%.3g", float64(d)/float64(unit.size))
			if strings.Contains(value, "e") { // from 1000 on
				value = fmt.Sprintf("%.0f", float64(d)/float64(unit.size))
			}
			return value + " " + unit.name
		}
	}
	if d <= 0 {
		return "0"
	}
	return fmt.Sprintf("%d ns", d)
}

// Share returns a part as a percentage: "<1 %", "33 %".
func Share(part, whole time.Duration) string {
	switch {
	case whole <= 0 || part <= 0:
		return "0 %"
	case part*100 < whole:
		return "<1 %"
	default:
		return fmt.Sprintf("%.0f %%", float64(part)/float64(whole)*100)
	}
}

// Name returns a name on one line that takes at most width cells of a terminal. It escapes what is not printable, and
// quotes a name that one cannot see.
func Name(name string, width int) string {
	name = excerpt.Text(name)
	if strings.TrimSpace(name) == "" {
		name = excerpt.Quote(name)
	}
	if uniseg.StringWidth(name) <= width {
		return name
	}
	used := 0
	var kept strings.Builder
	for g := uniseg.NewGraphemes(name); g.Next(); {
		if used += g.Width(); used > width-1 {
			break
		}
		kept.WriteString(g.Str())
	}
	return kept.String() + "…"
}

// Op returns the op of a node without its namespace.
func Op(n *trace.Node) string { return n.Op[strings.LastIndex(n.Op, ":")+1:] }

// title returns the label of a node, or its id if it has none.
func title(n *trace.Node) string {
	if n.Label != "" {
		return n.Label
	}
	return n.ID
}

// Title returns the label of a node, or its id if it has none, in at most width cells.
func Title(n *trace.Node, width int) string { return Name(title(n), width) }

// Titles returns the id of a node, behind its label if it has one: "brand (n17)". The label takes at most width cells.
func Titles(n *trace.Node, width int) string {
	if n.Label == "" {
		return Name(n.ID, width)
	}
	return fmt.Sprintf("%s (%s)", Name(n.Label, width), Name(n.ID, width))
}

// Node returns the title of a node, and its op if the title does not tell, in at most width cells.
func Node(n *trace.Node, width int) string {
	if op := Op(n); op != "" && !strings.Contains(title(n), op) {
		return Name(title(n)+" "+op, width)
	}
	return Title(n, width)
}

// Engine says on what a trace ran: "the reactor (adaptive)", "two pools".
func Engine(t *trace.Trace) string {
	switch {
	case t.Engine == trace.Reactor && t.Scheduling != "":
		return "the reactor (" + Name(t.Scheduling, 20) + ")"
	case t.Engine == trace.Reactor:
		return "the reactor"
	case t.Engine == trace.TwoPools:
		return "two pools"
	default:
		return "the " + Name(t.Engine, 20) + " engine"
	}
}

// Place says where a node ran: "loop", "inline", "pool", "fused into <the first node of its job>".
func Place(t *trace.Trace, n *trace.Node) string {
	switch {
	case !n.Ran():
		return string(n.Status)
	case n.Place == trace.OnPool && n.Fused > 1 && n.Parent >= 0:
		first := n.Parent
		for range t.Nodes { // bounds the way back through a hostile trace
			if t.Nodes[first].Parent < 0 {
				break
			}
			first = t.Nodes[first].Parent
		}
		return "fused into " + Title(&t.Nodes[first], 20)
	case n.Place == trace.OnPool && n.Fused > 1:
		return fmt.Sprintf("pool, %d fused", n.Fused)
	default:
		return string(n.Place)
	}
}

// Rows returns the rows that a node took in and gave out.
func Rows(n *trace.Node) string {
	if !n.Ran() {
		return ""
	}
	return fmt.Sprintf("%d→%d", n.RowsIn, n.RowsOut)
}

// Waiting says for what a segment of the critical path waits. It is empty for one that runs.
func Waiting(t *trace.Trace, r trace.Reason) string {
	switch {
	case r == trace.Running:
		return ""
	case r == trace.ForRedis:
		return "waiting for Redis"
	case r == trace.ForHTTP:
		return "waiting for a service"
	case r == trace.ForTimer:
		return "waiting for a timer"
	case r == trace.ForFunction:
		return "waiting for a function"
	case r == trace.ForWorker:
		return "waiting for a worker"
	case r == trace.ForPlace:
		return "waiting to be let in"
	case t.Engine == trace.Reactor:
		return "waiting for the loop"
	default:
		return "waiting for the request's goroutine"
	}
}

// Took says how long the request took, and on what.
func Took(t *trace.Trace) string {
	text := fmt.Sprintf("%s took %s on %s", Name(t.Plan, 60), Time(t.Request.Ended), Engine(t))
	if t.Request.Error != "" {
		text += " and failed: " + excerpt.Text(t.Request.Error)
	}
	return text + "." + missing(t)
}

// missingMax is how many nodes Took lists whose results are missing.
const missingMax = 4

// missing says what is missing in an answer: "Missing: n3 (timeout, empty instead).".
func missing(t *trace.Trace) string {
	if !t.Request.Degraded {
		return ""
	}
	var all []string
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Error != "" {
			all = append(all, Name(n.ID, 20)+" ("+Status(n)+")")
		}
	}
	if len(all) > missingMax {
		all = append(all[:missingMax], "…")
	}
	return " Missing: " + strings.Join(all, ", ") + "."
}

// Status says how a node ended, and what its readers see if it failed: "ok", "timeout, empty instead", "ok, 3 rows dropped".
func Status(n *trace.Node) string {
	switch text := string(n.Status); {
	case n.StandIn == trace.SkipStandIn:
		return text + ", its input instead"
	case n.StandIn != trace.NoStandIn:
		return text + ", " + Name(string(n.StandIn), 20) + " instead"
	case n.Dropped > 0:
		return fmt.Sprintf("%s, %d rows dropped", text, n.Dropped)
	case n.Status == trace.OK && n.Error != "":
		return text + ", without a part"
	default:
		return text
	}
}

// Bound says which node bounds the request.
func Bound(t *trace.Trace) string {
	p := t.CriticalPath(trace.Latency)
	if p.Bound < 0 {
		return "No node ran."
	}
	n := &t.Nodes[p.Bound]
	weight := n.End - n.Ready
	op := Name(n.Op, 40)
	if n.Label != "" {
		op = Name(n.ID, 40) + ", " + op
	}
	text := fmt.Sprintf("%s (%s) bounds the request: %s, %s of it", Title(n, 40), op, Time(weight), Share(weight, t.Request.Ended))
	longest, reason := time.Duration(0), trace.Running
	waits := make(map[trace.Reason]time.Duration)
	for _, s := range t.Segments() {
		if s.Node != n.Index {
			continue
		}
		if waits[s.For] += s.End - s.Start; waits[s.For] > longest {
			longest, reason = waits[s.For], s.For
		}
	}
	if doing := Waiting(t, reason); doing != "" {
		return text + fmt.Sprintf(", of which %s %s.", Time(longest), doing)
	}
	return text + fmt.Sprintf(", of which %s running.", Time(longest))
}

// Path names the nodes of a critical path, and how its time adds up.
func Path(t *trace.Trace, m trace.Mode) string {
	p := t.CriticalPath(m)
	const most = 12 // nodes that a reader follows
	var names []string
	for i, s := range p.Steps {
		if len(p.Steps) > most && i >= most/2 && i < len(p.Steps)-most/2 {
			if i == most/2 {
				names = append(names, fmt.Sprintf("… %d nodes …", len(p.Steps)-most))
			}
			continue
		}
		names = append(names, Node(&t.Nodes[s.Node], 30))
	}
	text := strings.Join(names, " → ")
	var wait, run time.Duration
	for _, s := range p.Steps {
		wait, run = wait+s.Wait, run+s.Run
	}
	if m == trace.Latency {
		return fmt.Sprintf("%s: %s from start to end, %s waiting to start, %s after the last", text, Time(run), Time(wait), Time(p.Tail))
	}
	return fmt.Sprintf("%s: %s from start to end", text, Time(run))
}

// Dropped says that a trace is incomplete. It is empty for a complete one.
func Dropped(t *trace.Trace) string {
	if t.Dropped == 0 {
		return ""
	}
	return fmt.Sprintf("The bounds of recording left out %d events, so this drawing is incomplete.", t.Dropped)
}
