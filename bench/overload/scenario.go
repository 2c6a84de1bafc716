package overload

import "time"

// A Scenario is a plan, and a server that bounds the requests that it admits. Immutable.
type Scenario struct {
	Name, Doc string
	// Artifact is the plan. Its name is the scenario's. Empty means the example of that name.
	Artifact              string
	MaxInflight, MaxQueue int
	Deadline              time.Duration // of each request
	// Arrivals bounds the requests in flight of the open loop.
	Arrivals int
	// Pipelined is the number of RESP connections that the requests share. Zero gives each request a connection of its own, so
	// that a refusal does not wait for the answer before it. HTTP always does.
	Pipelined int
	// RefusalP50 and RefusalP99 bound the time until a refusal. Zero bounds nothing.
	RefusalP50, RefusalP99 time.Duration
}

// Scenarios returns all scenarios, in the order in which they run.
func Scenarios() []Scenario {
	return []Scenario{
		{
			Name: "busy", Doc: "a node that keeps a CPU worker busy for 2 ms",
			MaxInflight: 8, MaxQueue: 32, Deadline: 100 * time.Millisecond, Arrivals: 256,
			RefusalP50: time.Millisecond, RefusalP99: 10 * time.Millisecond,
			Artifact: `{"schema_version": 1, "plan_name": "busy", "nodes": [
    {"node_id": "rows", "op": "fixed_source", "inputs": [], "params": {"row_count": 10}},
    {"node_id": "burn", "op": "busy_cpu", "inputs": ["rows"], "params": {"busy_wait_ms": 2}}
], "outputs": ["burn"]}`,
		},
		{
			Name: "concat_plan", Doc: "five nodes, three waves of reads",
			MaxInflight: 64, MaxQueue: 256, Deadline: 100 * time.Millisecond, Arrivals: 1024, Pipelined: 16,
		},
	}
}

// HoldPlan is the name of the plan whose request holds the only place of a server that is to refuse all others.
const HoldPlan = "hold"

// HoldArtifact is that plan: an hour of sleep.
const HoldArtifact = `{"schema_version": 1, "plan_name": "hold", "nodes": [
    {"node_id": "rows", "op": "fixed_source", "inputs": [], "params": {"row_count": 1}},
    {"node_id": "sleep", "op": "sleep", "inputs": ["rows"], "params": {"duration_ms": 3600000}}
], "outputs": ["sleep"]}`
