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
func (r *reader) percent(v *jsondoc.Value, node, path, name string) Percent {
	field := v.Get(name)
	if field == nil {
		return 0
	}
	digits, ok := strings.CutSuffix(field.Str, "%")
	n, err := strconv.ParseUint(digits, 10, 8)
	if field.Kind != jsondoc.String || !ok || err != nil || n < 1 || n > 99 || digits != strconv.FormatUint(n, 10) {
		r.report(r.wrongEnum(node, member(path, name), `a share from "1%" to "99%"`, field))
	}
	return Percent(n)
}

// lenient reads the policy of the plan, if it has one.
func (r *reader) lenient(root *jsondoc.Value, d *document) {
	v := r.capable(root, d, "lenient", LenientCapability)
	if v == nil {
		return
	}
	if r.report(r.members(v, "", "lenient", "on_error", "timeout", "timeout_ms", "answer_by")); v.Kind == jsondoc.Object && len(v.Members) == 0 {
		r.report(r.fail("", "lenient", `says nothing: "on_error": "auto", "timeout", "timeout_ms" and "answer_by" are what it may say (onError, timeout, timeoutMs and answerBy in TypeScript)`))
	}
	if field := v.Get("on_error"); field != nil && (field.Kind != jsondoc.String || field.Str != onErrorAuto) {
		r.report(r.wrongEnum("", "lenient.on_error", `"auto"`, field))
	}
	d.lenient = lenientPolicy{
		auto: v.Get("on_error") != nil, limit: r.duration(v, "", "lenient", "timeout_ms", 1, time.Millisecond),
		timeout: r.percent(v, "", "lenient", "timeout"), answerBy: r.percent(v, "", "lenient", "answer_by"),
	}
}

// applyPolicy gives the nodes that read from outside what they do not say themselves: on_error, a timeout, and the
// instant at which the plan gives them up. An endpoint may say otherwise. The nodes are linked.
func (c *compiler) applyPolicy() {
	p := &c.doc.lenient
	if *p == (lenientPolicy{}) {
		return
	}
	holds := p.auto || c.doc.below.Plan() != "" // for something: a plan that another one follows has its share of the time
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
		n.AnswerBy, holds = p.answerBy, true
		if doc.timeout == 0 && doc.share == 0 {
			n.Timeout, n.Share, n.Granted = p.limit, p.timeout, true
			if n.Endpoint != nil && n.Endpoint.Policy.TimeoutPercent > 0 {
				n.Share = Percent(n.Endpoint.Policy.TimeoutPercent)
			}
		}
	}
	if !holds {
		c.report(c.fail("", "lenient", `holds for no node: none that reads from outside is lenient. "on_error": "auto" makes them so (onError in TypeScript)`))
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
// passes them on. The readers of a failed node see what its fallback gives. The graph has no cycle.
func (g *Graph) decides(n *Node, columns []registry.KeyID) string {
	from := map[int][]registry.KeyID{n.Index: columns} // the columns that depend on n, by each node that does
	depends := func(i int) bool { _, does := from[i]; return does }
	for _, index := range g.Order {
		next, given := g.Nodes[index], from[index]
		for _, before := range slices.Concat(next.Inputs, next.Refs) {
			given = append(given[:len(given):len(given)], from[before]...)
		}
		first := func(of ColumnsOf) int { // of these columns that depends on n
			if of == nil {
				return -1
			}
			return slices.IndexFunc(of(next, g.Registry), func(key registry.KeyID) bool { return slices.Contains(given, key) })
		}
		if index != n.Index {
			if !slices.ContainsFunc(next.Inputs, depends) && !slices.ContainsFunc(next.Refs, depends) {
				continue
			}
			if next.Schema.Inherits != InheritsAll && slices.ContainsFunc(next.Refs, depends) {
				return fmt.Sprintf("%s (%s) makes something of other rows by it", next.label(), next.Op)
			}
			if i := first(next.Schema.ChoosesBy); i >= 0 {
				return fmt.Sprintf("%s (%s) chooses rows by its column %s", next.label(), next.Op, g.label(next.Schema.ChoosesBy(next, g.Registry)[i]))
			}
			if next.Schema.Writes != nil && (columns == nil && next.Schema.Across || first(next.Schema.Reads) >= 0) {
				given = slices.Concat(given, next.Schema.Writes(next, g.Registry))
			}
		}
		given = slices.Compact(slices.Sorted(slices.Values(given)))
		for ; next != nil; next = next.StandsFor {
			from[next.Index] = slices.Concat(from[next.Index], given)
		}
	}
	return ""
}
