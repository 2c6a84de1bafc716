package placement

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing/fstest"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/harness"
	"github.com/rankd/rankd/bench/internal/engines"
)

// A Scenario is a load on plans, and the figure that the modes are compared by. Immutable.
type Scenario struct {
	Name, Doc string
	// Plans returns the plans by name, which takes random ones some time; requests take those of Order in rotation.
	Plans func() map[string]string
	Order []string
	// Concurrency is the number of requests in flight; with a Rate the most.
	Concurrency int
	Rate        float64 // arrivals per second; zero means a closed loop
	Key         Figure
	Aims        []Aim
	// Costed says that Simulate knows what the nodes cost: each is heavy, waits, or works on a few rows.
	Costed bool
	// Ask is the mode that requests for the plan "large" ask for; empty means that they ask for none.
	Ask rankd.SchedulingMode
}

// An Aim is what a scenario is meant to show of adaptive. Immutable.
type Aim struct {
	Of    Of
	Bound harness.Bound
}

// Of says which figure of adaptive an aim is about.
type Of int

// The figures of aims.
const (
	Ratio    Of = iota // how many times better than offload_all it is, by the scenario's key figure
	Median             // p50, µs
	Callback           // 99.9th percentile of the processor time of a callback on the loop, µs
)

// ratioOf returns the aim of being so many times better than offload_all.
func ratioOf(least float64) Aim { return Aim{Ratio, harness.AtLeast(least)} }

// medianOf returns the aim of a p50 of so many µs at most.
func medianOf(us float64) Aim { return Aim{Median, harness.AtMost(us)} }

// Figure is what a scenario is compared by.
type Figure string

// The figures.
const (
	P50       Figure = "p50"        // µs; less is better
	CheapP99  Figure = "cheap p99"  // µs, of requests for the plan "cheap"; less is better
	PerSecond Figure = "requests/s" // more is better
)

// The plans of mixes. The latencies of cheap are recorded by themselves.
const (
	cheap = "cheap"
	heavy = "heavy"
	large = "large"
)

// Scenarios returns all scenarios, in the order in which they run.
func Scenarios() []Scenario {
	single := func(name, doc, plan string) Scenario {
		return Scenario{Name: name, Doc: doc, Plans: texts(map[string]string{name: plan}), Order: []string{name}, Concurrency: 1, Key: P50}
	}
	five := single("five_nodes", "fixed_source → vm → filter → sort → take on 10 rows", rank(10, 5))
	five.Aims = []Aim{ratioOf(6)}
	chain := single("chain_1000", "a chain of 1,000 takes on 10 rows", takes(1000))
	chain.Aims = []Aim{medianOf(1000)}
	scenarios := []Scenario{five, chain}
	for _, s := range []struct {
		rows int
		most float64
	}{{1000, 30}, {10_000, 200}, {100_000, 2000}} {
		top := single(fmt.Sprintf("top_%d", s.rows), fmt.Sprintf("fixed_source → vm → filter → sort → take(10) on %d rows", s.rows), rank(s.rows, 10))
		top.Aims = []Aim{medianOf(s.most)}
		scenarios = append(scenarios, top)
	}
	full := single("large", "fixed_source → vm → filter → sort on 100000 rows", rank(100_000, 0))
	full.Aims = []Aim{ratioOf(0.97)}
	mixed := mix("mix", "1 % requests with a node of 10 ms among cheap ones, 2,000 a second", heavy, heavyPlan(10))
	mixed.Aims = []Aim{ratioOf(1), {Callback, harness.AtMost(1000)}}
	scenarios = append(scenarios, full, mixed, dags(50), dags(500))
	guest := mix("mix_large", "1 % requests on 100,000 rows among cheap ones, 2,000 a second", large, rank(100_000, 10))
	stranger := guest
	stranger.Name, stranger.Doc, stranger.Ask = "mix_asking", "the same, and those on 100,000 rows ask for inline_all", rankd.InlineAll
	return append(scenarios, guest, stranger)
}

// mix returns a scenario of cheap requests, of which every hundredth is for another plan instead.
func mix(name, doc, other, plan string) Scenario {
	s := Scenario{
		Name: name, Doc: doc, Concurrency: 256, Rate: 2000, Key: CheapP99,
		Plans: texts(map[string]string{cheap: rank(10, 5), other: plan}),
	}
	for i := range 100 {
		name := cheap
		if i == 50 {
			name = other
		}
		s.Order = append(s.Order, name)
	}
	return s
}

// dags returns a scenario of random plans of n nodes.
func dags(n int) Scenario {
	s := Scenario{
		Name: fmt.Sprintf("dag_%d", n), Doc: fmt.Sprintf("8 random plans of %d nodes, 90 %% cheap, 8 %% waiting for 1 ms, 2 %% heavy (1 ms)", n),
		Concurrency: 16, Key: PerSecond, Costed: true,
	}
	for seed := range 8 {
		s.Order = append(s.Order, fmt.Sprintf("dag_%d_%d", n, seed))
	}
	s.Plans = func() map[string]string {
		plans := make(map[string]string)
		for seed, name := range s.Order {
			plans[name] = dag(n, uint64(seed))
		}
		return plans
	}
	return s
}

func texts(plans map[string]string) func() map[string]string {
	return func() map[string]string { return plans }
}

// Folder returns the plans as a plan folder.
func (s *Scenario) Folder() fstest.MapFS {
	folder := fstest.MapFS{}
	for name, text := range s.Plans() {
		folder[name+".plan.json"] = &fstest.MapFile{Data: []byte(strings.Replace(text, "PLAN", name, 1))}
	}
	return folder
}

// A Variant is an engine that is measured. Immutable.
type Variant struct {
	Name   string
	Engine engines.Spec
}

// The places of variants in a list of them.
const (
	OffloadAll = iota // what the others are measured against
	Adaptive
	nothingInline
	inlineAll
	Base // another build, if there is one
)

// Variants returns the settings of the scheduling that are compared and, unless the path is empty, the
// build of rankd at that path, as it comes.
func Variants(otherBuild string) []Variant {
	variants := []Variant{
		OffloadAll:    {"offload_all", engines.Spec{Kind: engines.Reactor, Scheduling: rankd.OffloadAll}},
		Adaptive:      {"adaptive", engines.Spec{Kind: engines.Reactor}},
		nothingInline: {"adaptive, nothing inline", engines.Spec{Kind: engines.Reactor, NoInline: true}},
		inlineAll:     {"inline_all", engines.Spec{Kind: engines.Reactor, Scheduling: rankd.InlineAll}},
	}
	if otherBuild != "" {
		variants = append(variants, Variant{"base", engines.Spec{Kind: engines.Reactor, Binary: otherBuild}})
	}
	return variants
}

// builder writes a plan.
type builder struct{ nodes []string }

func (b *builder) add(op, input, params string) string {
	id := fmt.Sprintf("n%d", len(b.nodes))
	inputs := ""
	if input != "" {
		inputs = `"` + input + `"`
	}
	b.nodes = append(b.nodes, fmt.Sprintf(`{"node_id": %q, "op": %q, "inputs": [%s], "params": {%s}}`, id, op, inputs, params))
	return id
}

func (b *builder) source(rows int) string {
	return b.add("fixed_source", "", fmt.Sprintf(`"row_count": %d`, rows))
}

func (b *builder) take(input string, k int) string {
	return b.add("take", input, fmt.Sprintf(`"count": %d`, k))
}

func (b *builder) vm(input string) string {
	return b.add("vm", input, `"out_key": 2001, "expr_id": "scrambled"`)
}

func (b *builder) sort(input string) string {
	return b.add("sort", input, `"by": 2001, "order": "desc"`)
}

// plan returns the plan with the outputs. Its expression is an order that is not the ids'.
func (b *builder) plan(outputs ...string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": "PLAN", "nodes": [
%s], "outputs": ["%s"],
"expr_table": {"scrambled": {"op": "mul", "a": {"op": "key_ref", "key_id": 1},
	"b": {"op": "sub", "a": {"op": "const_number", "value": 7919}, "b": {"op": "key_ref", "key_id": 1}}}},
"pred_table": {"most": {"op": "cmp", "cmp": ">=", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 2}}}}
`, strings.Join(b.nodes, ",\n"), strings.Join(outputs, `", "`))
}

// rank returns fixed_source → vm → filter → sort → take(k), without the take if k is 0.
func rank(rows, k int) string {
	var b builder
	out := b.sort(b.add("filter", b.vm(b.source(rows)), `"pred_id": "most"`))
	if k > 0 {
		out = b.take(out, k)
	}
	return b.plan(out)
}

// takes returns a chain of n takes.
func takes(n int) string {
	var b builder
	out := b.source(10)
	for range n {
		out = b.take(out, 10)
	}
	return b.plan(out)
}

// heavyPlan returns a plan with one node that computes for so many milliseconds.
func heavyPlan(ms int) string {
	var b builder
	return b.plan(b.add(burnOp, b.source(10), fmt.Sprintf(`"busy_wait_ms": %d`, ms)))
}

// dag returns a random plan of n nodes, the same for the same seed. Cheap nodes work on at
// most 32 rows.
func dag(n int, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	var b builder
	var scored []string // nodes with column 2001
	scored = append(scored, b.vm(b.source(16)))
	for len(b.nodes) < n-1 {
		input := scored[random.IntN(len(scored))]
		switch kind := random.IntN(100); {
		case kind < 2:
			scored = append(scored, b.add(burnOp, input, `"busy_wait_ms": 1`))
		case kind < 10:
			scored = append(scored, b.add("sleep", input, `"duration_ms": 1`))
		case kind < 40:
			scored = append(scored, b.vm(input))
		case kind < 60:
			scored = append(scored, b.sort(input))
		case kind < 80:
			scored = append(scored, b.take(input, 16))
		default:
			scored = append(scored, b.add("filter", input, `"pred_id": "most"`))
		}
	}
	last := scored[len(scored)-1]
	return b.plan(b.add("concat", last, fmt.Sprintf(`"rhs": %q`, scored[len(scored)/2])))
}
