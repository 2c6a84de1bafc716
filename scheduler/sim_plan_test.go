package scheduler

import (
	"bytes"
	"fmt"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// Parameters that a request of the simulation may set.
const (
	paramBlocklist = 2
	paramWeight    = 4
)

// simTables are the expressions and predicates of all plans. "perhaps" is null where its column
// is missing. "param" fails if the request does not set its pattern.
const simTables = `
"expr_table": {
 "weighted": {"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b":
   {"op": "coalesce", "a": {"op": "param_ref", "param_id": 4}, "b": {"op": "const_number", "value": 0.5}}},
 "shifted": {"op": "sub", "a": {"op": "coalesce", "a": {"op": "key_ref", "key_id": 2001},
   "b": {"op": "key_ref", "key_id": 1}}, "b": {"op": "const_number", "value": 3}},
 "perhaps": {"op": "neg", "x": {"op": "key_ref", "key_id": 2002}}},
"pred_table": {
 "large": {"op": "cmp", "cmp": ">", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 100}},
 "low": {"op": "not", "x": {"op": "cmp", "cmp": ">", "a": {"op": "key_ref", "key_id": 2001},
   "b": {"op": "const_number", "value": 200}}},
 "digit": {"op": "regex", "key_id": 3001, "pattern": {"kind": "literal", "value": "[0-6]$"}, "flags": ""},
 "param": {"op": "regex", "key_id": 3001, "pattern": {"kind": "param", "param_id": 2}, "flags": "i"}}`

// simRowsMax bounds the rows of any node.
const simRowsMax = 96

// planMaker writes a random plan.
type planMaker struct {
	w     *simWorld
	nodes []plannedNode
	text  []string // of each node

	policy string // of the plan, as its member
}

// plannedNode is what the maker knows of a node.
type plannedNode struct {
	rowsMax int
	country bool
	score   bool   // 2001
	typed   bool   // a column of each other type: see withTypes
	read    bool   // some node depends on it
	lenient string // on_error and optional, as members of the node
}

// makePlan returns a random plan.
func (w *simWorld) makePlan(name string) *plan.Graph {
	m := planMaker{w: w}
	m.source()
	for range 2 + w.rng.IntN(8) {
		if w.hits(0.15) {
			m.chain()
		} else if w.hits(0.12) {
			m.source()
		} else {
			m.inner()
		}
	}
	var outputs []string
	for i := range m.nodes {
		if !m.nodes[i].read && w.hits(0.9) || w.hits(0.1) {
			outputs = append(outputs, fmt.Sprintf("%q", m.id(i)))
		}
	}
	if w.cfg.lenient {
		m.beLenient()
		m.bePunctual(name)
	}
	order := w.rng.Perm(len(m.text))
	if w.falls != nil {
		outputs, order = m.beEnough(name, outputs, order)
	}
	for {
		artifact := m.artifact(name, order, outputs)
		g, err := plan.Load(name, artifact, w.lab.tasks, w.lab.reg)
		if err == nil {
			w.logf("%s", artifact)
			if w.swaps.texts == nil {
				w.swaps.texts = make(map[*plan.Graph][]byte)
			}
			w.swaps.texts[g] = artifact
			return g
		}
		if !m.beStricter(err) {
			panic(err) // the maker writes only valid plans otherwise
		}
	}
}

// artifact writes the plan with its nodes in that order.
func (m *planMaker) artifact(name string, order []int, outputs []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"schema_version": 1, "plan_name": %q, "nodes": [`, name)
	for k, i := range order {
		if k > 0 {
			b.WriteString(",\n")
		}
		b.WriteString(m.text[i] + m.nodes[i].lenient + "}")
	}
	b.WriteString(`], "outputs": [`)
	for i, id := range outputs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(id)
	}
	fmt.Fprintf(&b, `], "capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.min_rows.v1", "cap.rankd.on_error.v1"]%s, %s}`, m.policy, simTables)
	return b.Bytes()
}

// crowdNodes is how many nodes of a crowd's plan sleep at the same time.
const crowdNodes = 100

// makeCrowd returns a plan whose nodes all sleep for longer than most requests have.
func (w *simWorld) makeCrowd(name string) *plan.Graph {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"schema_version": 1, "plan_name": %q, "outputs": ["n0"], %s, "nodes": [
{"node_id": "src", "op": "fixed_source", "inputs": [], "params": {"row_count": 1}}`, name, simTables)
	timeouts := w.hits(0.5)
	for i := range crowdNodes {
		timeout := ""
		if timeouts && w.hits(0.9) {
			timeout = fmt.Sprintf(`, "timeout_ms": %d`, 1+w.rng.IntN(12))
		}
		fmt.Fprintf(&b, `,
{"node_id": "n%d", "op": "sleep", "inputs": ["src"], "params": {"duration_ms": 60000}%s}`, i, timeout)
	}
	b.WriteString("]}")
	g, err := plan.Load(name, b.Bytes(), w.lab.tasks, w.lab.reg)
	if err != nil {
		panic(err) // as above
	}
	return g
}

func (m *planMaker) id(node int) string { return fmt.Sprintf("n%d", node) }

// add adds a node. input is -1 if it has none.
func (m *planMaker) add(n plannedNode, op string, input int, params string, args ...any) {
	inputs := ""
	if input >= 0 {
		inputs = fmt.Sprintf("%q", m.id(input))
		m.nodes[input].read = true
	}
	timeout := ""
	if w := m.w; w.cfg.planTimeouts && w.hits(0.3) {
		timeout = fmt.Sprintf(`, "timeout_ms": %d`, 1+w.rng.IntN(12))
	}
	if w := m.w; w.cfg.hints && w.hits(0.3) {
		timeout += fmt.Sprintf(`, "scheduling": {"inline": %v, "cost_estimate_us": %d}`, w.hits(0.7), 1+w.rng.IntN(2000))
	}
	m.text = append(m.text, fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": [%s], "params": {%s}%s`,
		m.id(len(m.nodes)), op, inputs, fmt.Sprintf(params, args...), timeout))
	m.nodes = append(m.nodes, n)
}

// anyKey returns a key by which the rows of a node can be sorted. It draws no random number.
func (m *planMaker) anyKey(n plannedNode) registry.KeyID {
	if !n.typed {
		return registry.IDKey
	}
	return [...]registry.KeyID{registry.IDKey, simInt, simBool}[len(m.nodes)%3]
}

func (m *planMaker) endpoint() string {
	return fmt.Sprintf(`"endpoint": "ep_000%d"`, 1+m.w.rng.IntN(2))
}

func (m *planMaker) source() {
	if m.w.hits(0.7) {
		m.add(plannedNode{rowsMax: 1, country: true}, "viewer", -1, "%s", m.endpoint())
		return
	}
	rows := m.w.rng.IntN(12)
	if m.w.hits(0.03) {
		rows += loopRowsMax - 5 // some on the loop, some on the pool
	}
	m.add(plannedNode{rowsMax: rows, typed: true}, "fixed_source", -1, `"row_count": %d`, rows)
}

// chain adds computing nodes of which each reads the one before.
func (m *planMaker) chain() {
	rng := m.w.rng
	input := rng.IntN(len(m.nodes))
	for range 2 + rng.IntN(4) {
		n := m.nodes[input]
		n.read = false
		switch rng.IntN(5) {
		case 0:
			if m.w.cfg.lenient && m.w.hits(0.3) {
				m.add(n, "sim::thrifty", input, "")
				break
			}
			m.add(n, "filter", input, `"pred_id": "large"`)
		case 1:
			m.add(n, "sort", input, `"by": %d, "order": %q`, m.anyKey(n), []string{"asc", "desc"}[rng.IntN(2)])
		case 2:
			m.add(n, "take", input, `"count": %d`, 1+rng.IntN(8))
		case 3:
			m.add(n, "sim::stubborn", input, "")
		default:
			n.score = true
			m.add(n, "vm", input, `"out_key": 2001, "expr_id": "weighted"`)
		}
		input = len(m.nodes) - 1
	}
}

// inner adds a node that reads others. Younger nodes are likelier to be read.
func (m *planMaker) inner() {
	rng := m.w.rng
	pick := func() int { return max(rng.IntN(len(m.nodes)), rng.IntN(len(m.nodes))) }
	input := pick()
	n := m.nodes[input]
	n.read = false
	if m.w.cfg.taskFaults && m.w.hits(0.06) {
		kind := []string{"panics_on_loop", "panics_on_pool", "fails_on_loop", "fails_on_pool", "wrong_on_loop",
			"wrong_on_pool"}[rng.IntN(6)]
		m.add(n, "sim::"+kind, input, "")
		return
	}
	if m.w.cfg.persistent && m.w.hits(0.15) {
		m.add(n, "sim::persistent", input, `%s, "deaf": %v`, m.endpoint(), m.w.hits(0.5))
		return
	}
	if m.w.cfg.lenient && m.w.hits(0.1) {
		if m.w.hits(0.5) {
			m.add(n, "sim::open", input, "%s", m.endpoint())
		} else {
			m.add(n, "sim::thrifty", input, "")
		}
		return
	}
	if m.w.cfg.watchful && m.w.hits(0.15) {
		m.add(n, "sim::watchful", input, "")
		return
	}
	if m.w.cfg.popular && m.w.hits(0.3) {
		m.add(n, "sim::popular", input, "%s", m.endpoint())
		return
	}
	if m.w.hits(0.08) {
		m.add(n, "sim::service", input, "")
		return
	}
	fanout := 1 + rng.IntN(6)
	expand := func(op string, country bool) {
		if n.rowsMax*fanout > simRowsMax {
			m.add(n, "take", input, `"count": %d`, fanout)
			return
		}
		m.add(plannedNode{rowsMax: n.rowsMax * fanout, country: country}, op, input, `%s, "fanout": %d`, m.endpoint(), fanout)
	}
	switch rng.IntN(24) {
	case 0, 1, 2, 3:
		expand("follow", true)
	case 4, 5:
		expand("recommendation", true)
	case 6, 7:
		expand("media", false)
	case 8, 9, 10:
		expression := []string{"weighted", "shifted", "shifted"}[rng.IntN(3)]
		if m.w.hits(0.02) {
			expression = "perhaps"
		}
		n.score = true
		m.add(n, "vm", input, `"out_key": 2001, "expr_id": %q`, expression)
	case 11, 12:
		predicate := []string{"large", "low", "digit"}[rng.IntN(3)]
		if m.w.hits(0.1) {
			predicate = "param"
		}
		m.add(n, "filter", input, `"pred_id": %q`, predicate)
	case 13, 14:
		by := m.anyKey(n)
		switch {
		case n.score && m.w.hits(0.6):
			by = 2001
		case n.country && m.w.hits(0.6), m.w.hits(0.01): // rarely a column that does not exist
			by = 3001
		}
		m.add(n, "sort", input, `"by": %d, "order": %q`, by, []string{"asc", "desc"}[rng.IntN(2)])
	case 15:
		m.add(n, "take", input, `"count": %d`, 1+rng.IntN(8))
	case 16, 17, 18:
		rhs := pick()
		r := &m.nodes[rhs]
		if n.rowsMax+r.rowsMax > simRowsMax {
			m.add(n, "take", input, `"count": %d`, fanout)
			return
		}
		r.read = true
		m.add(plannedNode{rowsMax: n.rowsMax + r.rowsMax, country: n.country || r.country, score: n.score || r.score, typed: n.typed || r.typed},
			"concat", input, `"rhs": %q`, m.id(rhs))
	case 19, 20:
		m.add(n, "sleep", input, `"duration_ms": %d, "fail_after_sleep": %v`, rng.IntN(12), m.w.hits(0.05))
	case 21:
		m.add(n, "busy_cpu", input, `"busy_wait_ms": %d`, rng.IntN(8))
	case 22:
		m.add(n, "sim::stubborn", input, "")
	default:
		m.add(n, []string{"sim::chatty", "sim::deaf"}[rng.IntN(2)], input, "%s", m.endpoint())
	}
}
