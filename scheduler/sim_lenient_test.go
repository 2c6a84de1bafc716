package scheduler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// This file has what the simulation knows of nodes that may fail. It makes nodes of random
// plans lenient, and has its own model of what their readers see.

// beLenient gives nodes on_error and optional, and adds fallbacks. Load refuses some of that:
// see beStricter.
func (m *planMaker) beLenient() {
	w := m.w
	for i := range m.nodes {
		if w.hits(0.5) {
			continue
		}
		n := &m.nodes[i]
		choice := w.rng.IntN(6)
		if strings.Contains(m.text[i], `"fanout"`) && w.hits(0.5) {
			choice = 2
		}
		switch choice {
		case 0:
			n.lenient = `, "on_error": "empty"`
		case 1:
			n.lenient = `, "on_error": "skip"`
		case 2:
			n.lenient = `, "on_error": "partial"`
		case 3, 4:
			n.lenient = fmt.Sprintf(`, "on_error": {"fallback": %q}`, m.id(m.fallback()))
		}
		if w.hits(0.4) {
			m.nodes[i].lenient += `, "optional": true`
		}
	}
}

// bePunctual gives the plan a policy, and nodes shares of the time. It draws from a generator of its own.
func (m *planMaker) bePunctual(name string) {
	rng := rand.New(rand.NewPCG(m.w.seed, xxhash.Sum64String(name)))
	if rng.IntN(2) == 0 {
		return
	}
	share := func() string { return fmt.Sprintf(`"%d%%"`, 1+rng.IntN(99)) }
	m.policy = `, "lenient": {"answer_by": ` + share()
	if rng.IntN(2) == 0 {
		m.policy += `, "on_error": "auto"`
	}
	if rng.IntN(2) == 0 {
		m.policy += `, "timeout": ` + share()
	}
	m.policy += "}"
	for i := range m.nodes {
		if rng.IntN(5) == 0 {
			m.text[i] += `, "timeout": ` + share()
		}
	}
}

// fallback adds a node that nobody reads, and sometimes others for it to read. It returns its number.
func (m *planMaker) fallback() int {
	w := m.w
	if w.hits(0.5) {
		m.add(plannedNode{}, "fixed_source", -1, `"row_count": %d`, w.rng.IntN(5))
	} else {
		m.add(plannedNode{}, "sleep", w.rng.IntN(len(m.nodes)), `"duration_ms": %d, "fail_after_sleep": %v`, w.rng.IntN(5), w.hits(0.2))
	}
	if w.hits(0.4) {
		m.add(plannedNode{}, "vm", len(m.nodes)-1, `"out_key": 2001, "expr_id": "weighted"`)
	}
	f := len(m.nodes) - 1
	if w.hits(0.3) {
		m.nodes[f].lenient = `, "on_error": "empty"`
	} else if w.hits(0.2) {
		// m.nodes may move, so the fallback's own fallback is added first.
		own := m.fallback()
		m.nodes[f].lenient = fmt.Sprintf(`, "on_error": {"fallback": %q}`, m.id(own))
	}
	return f
}

// beStricter removes from a node what made Load refuse the plan. It returns false if something
// else was the reason.
func (m *planMaker) beStricter(err error) bool {
	var bad *plan.Error
	if !errors.As(err, &bad) {
		return false
	}
	named := -1
	for i := range m.nodes {
		if m.id(i) == bad.Node {
			named = i
		}
	}
	switch {
	case strings.HasPrefix(bad.Msg, "holds for no node"):
		_, rest, _ := strings.Cut(m.policy, "}")
		m.policy = rest
		return true
	case strings.Contains(bad.Msg, "ends its page at row"): // the minimum of an output that was a page already
		var output, most int
		_, found := fmt.Sscanf(bad.Field, "min_rows[%d]", &output)
		_, page, _ := strings.Cut(bad.Msg, "ends its page at row ")
		_, end := fmt.Sscanf(page, "%d", &most)
		before, list, _ := strings.Cut(m.policy, `"min_rows": [`)
		list, after, _ := strings.Cut(list, "]")
		minimums := strings.Split(list, ",")
		minimums[output] = fmt.Sprint(most)
		m.policy = before + `"min_rows": [` + strings.Join(minimums, ",") + "]" + after
		return found == nil && end == nil
	case strings.HasPrefix(bad.Msg, "depends on itself"):
		stricter := false
		for _, all := range []bool{false, true} { // The message may not mention the fallback that closes the circle.
			for i := range m.nodes {
				_, fallback, ok := strings.Cut(m.nodes[i].lenient, `"fallback": `)
				fallback, _, _ = strings.Cut(fallback, "}")
				if ok && !stricter && (all || strings.Contains(bad.Msg, fallback)) {
					m.nodes[i].lenient, stricter = "", true
				}
			}
		}
		return stricter
	case strings.Contains(bad.Msg, "which is missing if node "):
		_, failing, _ := strings.Cut(bad.Msg, "which is missing if node ")
		for i := range m.nodes {
			if strings.HasPrefix(failing, fmt.Sprintf("%q ", m.id(i))) {
				m.nodes[i].lenient = ""
				return true
			}
		}
		return false
	case named >= 0 && m.nodes[named].lenient != "":
		m.nodes[named].lenient = ""
		return true
	}
	return false
}

// drawRequired has a request require some nodes of its plan.
func (w *simWorld) drawRequired(q *simRequest) {
	if !w.cfg.lenient || w.hits(0.7) {
		return
	}
	for range 1 + w.rng.IntN(2) {
		q.required = append(q.required, w.rng.IntN(len(q.graph.Nodes)))
	}
	q.req.Required = slices.Clone(q.required)
}

// lenient reports whether the plan goes on without a node in this request.
func (q *simRequest) lenient(n *plan.Node) bool {
	return n.OnError != plan.OnErrorFail && !slices.Contains(q.required, n.Index)
}

// openPrefix begins the error of a body that fails open.
const openPrefix = "open: "

// standIn is what the readers of a failed node see.
func standIn(n *plan.Node, inputs, refs []rowset.RowSet) rowset.RowSet {
	if n.OnError == plan.OnErrorSkip {
		return inputs[0]
	}
	var keys []registry.KeyID
	inherit := func(all []rowset.RowSet) {
		for _, in := range all {
			keys = in.Batch.AppendKeys(keys)
		}
	}
	switch n.Op {
	case "core::viewer", "core::follow", "core::recommendation":
		keys = append(keys, 3001)
	case "core::media":
	case "test::fixed_source":
		keys = append(keys, simInt, simBool, simSet)
	case "core::vm":
		inherit(inputs)
		keys = append(keys, 2001)
	case "core::concat":
		inherit(inputs)
		inherit(refs)
	default:
		inherit(inputs)
	}
	slices.Sort(keys)
	var empty []rowset.Column
	for _, key := range slices.Compact(keys) {
		switch key {
		case simInt:
			empty = append(empty, &rowset.IntColumn{Key: key})
		case simBool:
			empty = append(empty, &rowset.BoolColumn{Key: key})
		case simSet:
			empty = append(empty, &rowset.SetColumn{Key: key, Dict: &rowset.SetDict{Offsets: []int32{0}, Strings: new(rowset.Dict)}})
		case 3001:
			empty = append(empty, &rowset.StringColumn{Key: key, Dict: new(rowset.Dict)})
		default:
			empty = append(empty, &rowset.FloatColumn{Key: key})
		}
	}
	return rowset.Dense(rowset.NewBatch([]int64{}, empty...))
}

// checkCompleteness compares what an answer says of its nodes with the request's reference.
func (w *simWorld) checkCompleteness(q *simRequest, r *Result, ref *reference) {
	last := -1
	for i := range r.Completeness() {
		c := &r.Completeness()[i]
		w.answers["node "+string(c.Status)]++
		w.check(c.Node.Index > last, "request %d: completeness lists node %s behind later ones", q.user, c.Node.ID)
		last = c.Node.Index
		w.checkContribution(q, c, ref)
	}
	for _, n := range q.graph.Nodes {
		listed := ref.told[n.Index] != nil
		ran := ref.status[n.Index] != refTodo
		w.check(r.Err != nil || listed == (ran && n.Lenient() || ref.shortfalls[n.Index] != (task.Shortfall{})), "request %d: node %s is in the completeness: %v", q.user, n.ID, listed)
		w.check(r.Err != nil || ran || !q.begun[n.Index], "request %d: node %s ran, and nobody needed it", q.user, n.ID)
		if q.lateBodies[n.Index] && r.Err == nil {
			w.check(listed && ref.told[n.Index].Status != outcome.NodeOK && ref.told[n.Index].Status != outcome.NodePartial, "request %d succeeded, though node %s ended after its deadline", q.user, n.ID)
		}
	}
}

// idle returns how many nodes nobody needed.
func (ref *reference) idle() (n int) {
	for _, status := range ref.status {
		if status == refTodo {
			n++
		}
	}
	return n
}

// waitsForRequired reports whether a node runs that the request must wait for.
func (w *simWorld) waitsForRequired(r *run) bool {
	q := w.requests[r.Req.UserID-1]
	for i, n := range r.Req.Graph.Nodes {
		if r.State.nodes[i].status == running && (!n.Optional || slices.Contains(q.required, i)) {
			return true
		}
	}
	return false
}

// nodeOfCluster matches the node of a Redis Cluster that an error names.
var nodeOfCluster = regexp.MustCompile(`redis node\d+:\d+: `)

// ofAnyNode returns the text of an error without that node: which one answers depends on how slots have moved.
func ofAnyNode(err error) string { return nodeOfCluster.ReplaceAllString(err.Error(), "") }

// checkContribution checks what an answer says of one node.
func (w *simWorld) checkContribution(q *simRequest, c *Completeness, ref *reference) {
	n, i := c.Node, c.Node.Index
	open := c.Err != nil && strings.HasPrefix(c.Err.Error(), openPrefix)
	why := ref.errors[i] // nil unless the node fails where nothing but the plan decides
	w.check((c.Err == nil) == (c.Status == outcome.NodeOK), "request %d: node %s is %s because of %v", q.user, n.ID, c.Status, c.Err)
	w.check(c.Status == outcome.NodeOK || open || q.lenient(n), "request %d: node %s is %s, and must not be", q.user, n.ID, c.Status)
	switch c.Status {
	case outcome.NodeOK:
		w.check(why == nil && ref.shortfalls[i].Err == nil, "request %d: node %s is ok, and should fail with %v, %v", q.user, n.ID, why, ref.shortfalls[i].Err)
		w.check(reflect.DeepEqual(c.Malformed, ref.shortfalls[i].Malformed), "request %d: node %s tells of ids %+v, and should tell of %+v", q.user, n.ID, c.Malformed, ref.shortfalls[i].Malformed)
		w.check(q.begun[i], "request %d: node %s is ok and never began", q.user, n.ID)
	case outcome.NodePartial:
		shortfall := ref.shortfalls[i]
		w.check(n.OnError == plan.OnErrorPartial && why == nil, "request %d: node %s is partial, and should fail with %v", q.user, n.ID, why)
		w.check(w.cfg.maxRows > 0 || shortfall.Dropped == c.Dropped && shortfall.Err != nil && ofAnyNode(shortfall.Err) == ofAnyNode(c.Err),
			"request %d: node %s lacks %d rows because of %v, and should lack %d because of %v", q.user, n.ID, c.Dropped, c.Err, shortfall.Dropped, shortfall.Err)
	case outcome.NodeLate:
		w.check(n.Optional && errors.Is(c.Err, ErrGivenUp), "request %d: node %s is late because of %v", q.user, n.ID, c.Err)
	case outcome.NodeFallback:
		w.check(n.Fallback != nil, "request %d: node %s has no fallback", q.user, n.ID)
		fallthrough
	case outcome.NodeFailed:
		if errors.Is(c.Err, ErrGivenUp) {
			w.check(n.Optional && n.Fallback != nil, "request %d: node %s was given up", q.user, n.ID)
			return
		}
		if open {
			why = ref.shortfalls[i].Err
		}
		w.check(why != nil && why.Error() == c.Err.Error() && (!open || why != c.Err || why == errThrifty) || w.mayFallShort(q, n, c.Err), "request %d: node %s failed with %q, should fail with %v", q.user, n.ID, c.Err, why)
	default:
		w.violate("request %d: node %s is %s", q.user, n.ID, c.Status)
	}
}

// mayFallShort reports whether the world explains that a node has failed and the plan went on.
func (w *simWorld) mayFallShort(q *simRequest, n *plan.Node, err error) bool {
	var late *TimeoutError
	switch {
	case errors.Is(err, ErrShuttingDown):
		return false
	case errors.Is(err, task.ErrTooManyRows):
		return w.cfg.maxRows > 0
	case errors.As(err, &late): // its own limit: the request's deadline is over for all nodes
		before := late.Kind == ErrDeadlineBeforeStart && n.AnswerBy > 0
		return (late.Kind == ErrNodeTimeout || before) && late.Elapsed >= late.Limit && w.limited(q, n)
	}
	return w.mayFail(q, &NodeError{Node: n.ID, Op: n.Op, Err: err})
}

// limited reports whether a node has a limit besides the deadline of the request.
func (w *simWorld) limited(q *simRequest, n *plan.Node) bool {
	byPolicy := q.deadline != 0 && !slices.Contains(q.required, n.Index) && n.AnswerBy > 0
	return w.cfg.nodeTimeout > 0 || n.Timeout > 0 || n.Share > 0 || byPolicy
}

// lateness is how long after its limit a node may still be seen to run: the loop looks at its timers each millisecond.
const lateness = 2 * time.Millisecond

// checkPunctual checks that no node runs on after its share of the time, or after that of its request.
func (w *simWorld) checkPunctual(user int64, j *asyncJob, s *State) {
	share := func(of plan.Percent, from clock.Time) clock.Time {
		return from.Add(time.Duration(float64(s.deadline.Sub(from)) * float64(of) / 100)).Add(lateness)
	}
	n, now := j.node, w.sim.Now()
	if w.stalled || j.started == 0 || slices.Contains(w.requests[user-1].required, n.Index) {
		return
	}
	from := s.arrived
	if q := w.runOf(user, n); q.fell != 0 {
		from = q.fell
	}
	w.check(n.AnswerBy == 0 || now < share(n.AnswerBy, from), "request %d: node %s runs on after %s of the request's time", user, n.ID, n.AnswerBy)
	w.check(n.Share == 0 || now < share(n.Share, j.started), "request %d: node %s runs on after %s of the time that was left", user, n.ID, n.Share)
}

// fault is a reply that a server was told to spoil.
type fault struct {
	command int // of the node, counted from 0 over all its batches
	isError bool
	text    string
}

func (f *fault) append(dst []byte) []byte {
	if f.isError {
		return redcon.AppendError(dst, f.text)
	}
	return redcon.AppendBulkString(dst, f.text)
}

// shortfall returns what an answer says of a node.
func (c *Completeness) shortfall() task.Shortfall {
	return task.Shortfall{Dropped: c.Dropped, Err: c.Err, Malformed: c.Malformed}
}

// noteFault notes a reply that a server has spoiled.
func (q *simRequest) noteFault(node, command int, reply resp.Reply) {
	q.faults[node] = append(q.faults[node], fault{command, reply.Kind() == resp.Error, string(reply.Bytes())})
}
