package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/jsondoc"
	"github.com/rankd/rankd/registry"
)

// Percent is a share of a request's time, from 1 to 99 percent; 0: none is given. Immutable; any goroutine.
type Percent uint8

// Of returns that share of d, rounded down.
func (p Percent) Of(d time.Duration) time.Duration {
	return d/100*time.Duration(p) + d%100*time.Duration(p)/100
}

// String returns the share as artifacts write it: "40%"; empty for 0.
func (p Percent) String() string {
	if p == 0 {
		return ""
	}
	return strconv.Itoa(int(p)) + "%"
}

// lenientPolicy is what an artifact says of the nodes that read from outside and say nothing themselves.
type lenientPolicy struct {
	auto              bool // on_error is "auto"
	timeout, answerBy Percent
	limit             time.Duration // timeout_ms
}

// onErrorAuto is the on_error of a policy: each node gets the mildest value that lets nothing through.
const onErrorAuto = "auto"

// percent reads an optional share, "1%" to "99%".
func (r *reader) percent(v *jsondoc.Value, node, path, name string) (Percent, *Error) {
	field, path := v.Get(name), member(path, name)
	if field == nil {
		return 0, nil
	}
	digits, ok := strings.CutSuffix(field.Str, "%")
	n, err := strconv.ParseUint(digits, 10, 8)
	if field.Kind != jsondoc.String || !ok || err != nil || n < 1 || n > 99 || digits != strconv.FormatUint(n, 10) {
		bad := r.wrongKind(node, path, `a share from "1%" to "99%"`, field)
		bad.Code = FaultEnum
		return 0, bad
	}
	return Percent(n), nil
}

// lenient reads the policy of the plan, if it has one.
func (r *reader) lenient(root *jsondoc.Value, d *document) {
	v := r.capable(root, d, "lenient", LenientCapability)
	if v == nil {
		return
	}
	if v.Kind != jsondoc.Object {
		r.report(r.wrongKind("", "lenient", "an object", v))
		return
	}
	p, bad := &d.lenient, (*Error)(nil)
	for i := range v.Members {
		switch m := &v.Members[i]; m.Name {
		case "on_error":
			if p.auto = m.Value.Kind == jsondoc.String && m.Value.Str == onErrorAuto; !p.auto {
				bad = r.wrongKind("", "lenient.on_error", `"auto"`, &m.Value)
				bad.Code = FaultEnum
			}
		case "timeout":
			p.timeout, bad = r.percent(v, "", "lenient", "timeout")
		case "timeout_ms":
			p.limit, bad = r.duration(v, "", "lenient", "timeout_ms", 1, time.Millisecond)
		case "answer_by":
			p.answerBy, bad = r.percent(v, "", "lenient", "answer_by")
		default:
			bad = r.fail("", member("lenient", m.Name), "unknown field")
		}
		r.report(bad)
		bad = nil
	}
}

// applyPolicy gives the nodes that read from outside what they do not say themselves: on_error, a timeout, and the
// instant at which the plan gives them up. An endpoint may say otherwise. The nodes are linked.
func (c *compiler) applyPolicy() {
	p := &c.doc.lenient
	if *p == (lenientPolicy{}) {
		return
	}
	for i, n := range c.graph.Nodes {
		doc := &c.doc.nodes[i]
		if !n.Schema.Outside {
			continue
		}
		if p.auto && doc.onError == nil && !n.Optional {
			n.OnError, n.AutoWhy = c.auto(n)
			c.graph.Lenient = c.graph.Lenient || n.Lenient()
		}
		if !n.Lenient() {
			continue
		}
		n.AnswerBy = p.answerBy
		if doc.timeout == 0 && doc.share == 0 {
			n.Timeout, n.Share, n.Granted = p.limit, p.timeout, true
			if n.Endpoint != nil && n.Endpoint.Policy.TimeoutPercent > 0 {
				n.Share = Percent(n.Endpoint.Policy.TimeoutPercent)
			}
		}
	}
}

// auto returns the mildest on_error with which a failure of n lets no row through that n, or a filter behind it, might
// have dropped, and says why it is that.
func (c *compiler) auto(n *Node) (OnError, string) {
	if n.Endpoint != nil && n.Endpoint.Policy.OnError == OnErrorFail.String() {
		return OnErrorFail, "the endpoint " + errtext.Quote(n.Endpoint.Name) + " says so"
	}
	if n.Schema.Inherits == InheritsNothing {
		if why := c.graph.decides(n, nil); why != "" {
			return OnErrorFail, why
		}
		if n.Schema.Partial {
			return OnErrorPartial, "only the rows whose keys fail are lost"
		}
		return OnErrorEmpty, "only its own rows are lost"
	}
	if !n.keepsRows() || !n.Schema.AddsColumns {
		return OnErrorFail, "it may drop rows, and a failure must not let them through"
	}
	if bad := c.nullable(n, ""); bad != nil {
		return OnErrorFail, "its columns cannot be null: " + strings.TrimPrefix(bad.Msg, `must not be "null": `)
	}
	if why := c.graph.decides(n, n.Schema.Writes(n, c.registry)); why != "" {
		return OnErrorFail, why
	}
	return OnErrorNull, "only its columns are lost"
}

// decides returns which node behind n chooses among other rows by what n gives, or "". What n gives are these columns,
// or its rows if there are none. A node chooses by columns (ChoosesBy), or by the rows of a node reference, unless it
// passes them on. The readers of a failed node see what its fallback gives.
func (g *Graph) decides(n *Node, columns []registry.KeyID) string {
	// The columns that depend on n, by node. They only grow, so this ends also if the graph has a cycle.
	from := map[int][]registry.KeyID{n.Index: columns}
	queue := []*Node{n}
	pass := func(next *Node, given []registry.KeyID) {
		known, seen := from[next.Index]
		all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(known, given))))
		if !seen || len(all) > len(known) {
			from[next.Index] = all
			queue = append(queue, next)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		given := from[at.Index]
		if at.StandsFor != nil {
			pass(at.StandsFor, given)
		}
		first := func(next *Node, of ColumnsOf) int { // of these columns that depends on n
			if of == nil {
				return -1
			}
			return slices.IndexFunc(of(next, g.Registry), func(key registry.KeyID) bool { return slices.Contains(given, key) })
		}
		for _, index := range at.Succs {
			next, by := g.Nodes[index], given
			if next.Schema.Inherits != InheritsAll && slices.Contains(next.Refs, at.Index) {
				return fmt.Sprintf("%s (%s) makes something of other rows by it", next.label(), next.Op)
			}
			if i := first(next, next.Schema.ChoosesBy); i >= 0 {
				return fmt.Sprintf("%s (%s) chooses rows by its column %s", next.label(), next.Op, g.label(next.Schema.ChoosesBy(next, g.Registry)[i]))
			}
			if next.Schema.Writes != nil && (columns == nil && next.Schema.Across || first(next, next.Schema.Reads) >= 0) {
				by = slices.Concat(given, next.Schema.Writes(next, g.Registry))
			}
			pass(next, by)
		}
	}
	return ""
}
