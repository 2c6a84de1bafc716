package draw

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/trace"
)

// This file has the words and numbers that all drawings share. All texts are plain; a drawing escapes them for its own form.

// duration returns a duration with three digits: "0", "850 ns", "12.3 µs", "1.23 ms", "15 s".
func duration(d time.Duration) string {
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

// count returns a number of things: "1 command", "3 commands". It is empty for none.
func count(n int, thing string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + thing
	default:
		return fmt.Sprintf("%d %ss", n, thing)
	}
}

// share returns a part as a percentage: "<1 %", "33 %".
func share(part, whole time.Duration) string {
	switch {
	case whole <= 0 || part <= 0:
		return "0 %"
	case part*100 < whole:
		return "<1 %"
	default:
		return fmt.Sprintf("%.0f %%", float64(part)/float64(whole)*100)
	}
}

// clip returns a name on one line that takes at most width cells of a terminal. It escapes what is not printable, and
// quotes a name that one cannot see.
func clip(name string, width int) string {
	name = errtext.Text(name)
	if strings.TrimSpace(name) == "" {
		name = errtext.Quote(name)
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

// opName returns the op of a node without its namespace.
func opName(n *trace.Node) string { return n.Op[strings.LastIndex(n.Op, ":")+1:] }

// label returns the label of a node, or its id if it has none.
func label(n *trace.Node) string { return cmp.Or(n.Label, n.ID) }

// title returns the label of a node, or its id if it has none, in at most width cells.
func title(n *trace.Node, width int) string { return clip(label(n), width) }

// titles returns the id of a node, behind its label if it has one: "brand (n17)". The label takes at most width cells.
func titles(n *trace.Node, width int) string {
	if n.Label == "" {
		return clip(n.ID, width)
	}
	return fmt.Sprintf("%s (%s)", clip(n.Label, width), clip(n.ID, width))
}

// nodeName returns the title of a node, and its op if the title does not tell, in at most width cells.
func nodeName(n *trace.Node, width int) string {
	if op := opName(n); op != "" && !strings.Contains(label(n), op) {
		return clip(label(n)+" "+op, width)
	}
	return title(n, width)
}

// engineName says on what a trace ran: "the reactor (adaptive)", "two pools".
func engineName(t *trace.Trace) string {
	switch {
	case t.Engine == trace.Reactor && t.Scheduling != "":
		return "the reactor (" + clip(t.Scheduling, 20) + ")"
	case t.Engine == trace.Reactor:
		return "the reactor"
	case t.Engine == trace.TwoPools:
		return "two pools"
	default:
		return "the " + clip(t.Engine, 20) + " engine"
	}
}

// place says where a node ran: "loop", "inline", "pool", "fused into <the first node of its job>".
func place(t *trace.Trace, n *trace.Node) string {
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
		return "fused into " + title(&t.Nodes[first], 20)
	case n.Place == trace.OnPool && n.Fused > 1:
		return fmt.Sprintf("pool, %d fused", n.Fused)
	default:
		return string(n.Place)
	}
}

var waitingFor = map[trace.Reason]string{
	trace.ForRedis: "Redis", trace.ForHTTP: "a service", trace.ForTimer: "a timer", trace.ForFunction: "a function", trace.ForWorker: "a worker",
	trace.ForPlace: "admission", trace.ForPlan: "the plan that was asked for",
}

// waiting says for what a segment of the critical path waits. It is empty for one that runs.
func waiting(t *trace.Trace, r trace.Reason) string {
	what, known := waitingFor[r]
	switch {
	case r == trace.Running:
		return ""
	case known:
	case t.Engine == trace.Reactor:
		what = "the loop"
	default:
		what = "the request's goroutine"
	}
	return "waiting for " + what
}

// took says how long the request took, and on what, what its answer lacks, and what came from memory.
func (s *scene) took() string {
	text := fmt.Sprintf("%s took %s on %s", clip(s.Plan, 60), duration(s.Request.Ended), engineName(s.Trace))
	if s.Request.Error != "" {
		text += " and failed: " + errtext.Text(s.Request.Error)
	}
	return text + "." + missing(s.Trace) + cached(s.Trace)
}

// missing says what is missing in an answer: "Missing: n3 (timeout, empty instead).".
func missing(t *trace.Trace) string {
	if !t.Request.Degraded {
		return ""
	}
	return list(t, " Missing: ", func(n *trace.Node) string {
		if n.Error == "" {
			return ""
		}
		return status(n)
	})
}

// cached says what came from the engine's memory: "Cached: n3 (12 values, 3.01 s old).".
func cached(t *trace.Trace) string {
	return list(t, " Cached: ", func(n *trace.Node) string {
		if n.Cached == 0 {
			return ""
		}
		return fmt.Sprintf("%s, %s old", count(n.Cached, "value"), duration(n.CachedAge))
	})
}

// nodesMax is how many nodes a list has.
const nodesMax = 4

// list lists nodes behind some words, each with what it says of itself. It is empty if none says anything.
func list(t *trace.Trace, words string, says func(*trace.Node) string) string {
	var all []string
	for i := range t.Nodes {
		if text := says(&t.Nodes[i]); text != "" {
			all = append(all, clip(t.Nodes[i].ID, 20)+" ("+text+")")
		}
	}
	if len(all) == 0 {
		return ""
	}
	if len(all) > nodesMax {
		all = append(all[:nodesMax], "…")
	}
	return words + strings.Join(all, ", ") + "."
}

// status says how a node ended, what its readers see if it failed, and what came from memory: "ok", "timeout, empty instead",
// "ok, 3 rows dropped", "ok, 12 cached, 3.01 s old".
func status(n *trace.Node) string {
	switch text := string(n.Status); {
	case n.StandIn == trace.SkipStandIn:
		return text + ", its input instead"
	case n.StandIn != trace.NoStandIn:
		return text + ", " + clip(string(n.StandIn), 20) + " instead"
	case n.Dropped > 0:
		return fmt.Sprintf("%s, %d rows dropped", text, n.Dropped)
	case n.Status == trace.OK && n.Error != "":
		return text + ", without a part"
	case n.Cached > 0:
		return fmt.Sprintf("%s, %d cached, %s old", text, n.Cached, duration(n.CachedAge))
	default:
		return text
	}
}

// bound says which node bounds the request.
func (s *scene) bound() string {
	if s.latency.Bound < 0 {
		return "No node ran."
	}
	n := &s.Nodes[s.latency.Bound]
	op := clip(n.Op, 40)
	if n.Label != "" {
		op = clip(n.ID, 40) + ", " + op
	}
	doing, longest := "running", time.Duration(0)
	waits := make(map[trace.Reason]time.Duration)
	for _, g := range s.segments {
		if g.Node != n.Index {
			continue
		}
		if waits[g.For] += g.End - g.Start; waits[g.For] > longest {
			doing, longest = cmp.Or(waiting(s.Trace, g.For), "running"), waits[g.For]
		}
	}
	weight := n.End - n.Ready
	return fmt.Sprintf("%s (%s) bounds the request: %s, %s of it, of which %s %s.", title(n, 40), op, duration(weight), share(weight, s.Request.Ended), duration(longest), doing)
}

// pathNodes is how many nodes of a path a reader follows.
const pathNodes = 12

// path names the nodes of a critical path, and how its time adds up.
func (s *scene) path(p trace.Path) string {
	var names []string
	var wait, run time.Duration
	for i, step := range p.Steps {
		wait, run = wait+step.Wait, run+step.Run
		switch left := len(p.Steps) - pathNodes; {
		case left <= 1 || i < pathNodes/2 || i >= pathNodes/2+left:
			names = append(names, nodeName(&s.Nodes[step.Node], 30))
		case i == pathNodes/2:
			names = append(names, fmt.Sprintf("… %d nodes …", left))
		}
	}
	text := fmt.Sprintf("%s: %s from start to end", strings.Join(names, " → "), duration(run))
	if p.Mode == trace.Latency {
		text += fmt.Sprintf(", %s waiting to start, %s after the last", duration(wait), duration(p.Tail))
	}
	return text
}

// dropped says that a trace is incomplete. It is empty for a complete one.
func (s *scene) dropped() string {
	if s.Dropped == 0 {
		return ""
	}
	return fmt.Sprintf("The bounds of recording left out %d events, so this drawing is incomplete.", s.Dropped)
}
