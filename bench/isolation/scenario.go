package isolation

import (
	"fmt"
	"time"
)

// A Scenario is a kind of large request, and the bound that the small ones beside it have to keep.
// Immutable.
type Scenario struct {
	Name, Doc string
	Plan      string // its text; its name is the scenario's
	Heavy     int64  // the user of the large requests
	// MaxP99 bounds the 99th percentile of the small ones.
	MaxP99 time.Duration

	load func(*loader) // stores what Heavy reads
}

// Scenarios returns all scenarios, in the order in which they run.
func Scenarios() []Scenario {
	return []Scenario{
		{
			Name: "large_replies", Heavy: mediaUser, MaxP99: 20 * time.Millisecond, load: loadMedia,
			Doc: fmt.Sprintf("follow(%d) → media(%d): 67 MiB of replies to one batch", mediaOwners, mediaEach),
			Plan: artifact("large_replies", fmt.Sprintf(`
    {"node_id": "follow", "op": "core::follow", "inputs": ["viewer"], "params": {"endpoint": "ep_0001", "fanout": %d}},
    {"node_id": "media", "op": "core::media", "inputs": ["follow"], "params": {"endpoint": "ep_0001", "fanout": %d}}`,
				mediaOwners, mediaEach), "media"),
		},
		{
			Name: "many_rows", Heavy: rowsUser, MaxP99: 5 * time.Millisecond, load: loadRows,
			Doc: fmt.Sprintf("follow(%d): %d commands in one batch", manyRows, manyRows),
			Plan: artifact("many_rows", fmt.Sprintf(`
    {"node_id": "follow", "op": "core::follow", "inputs": ["viewer"], "params": {"endpoint": "ep_0001", "fanout": %d}}`,
				manyRows), "follow"),
		},
	}
}

// artifact returns a plan of viewer, nodes, and a take of ten rows from the last of them.
func artifact(name, nodes, last string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "nodes": [
    {"node_id": "viewer", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},%s,
    {"node_id": "top", "op": "core::take", "inputs": [%q], "params": {"count": 10}}
], "outputs": ["top"]}`, name, nodes, last)
}

// arrivalsMax bounds the arrivals of a round, whose users go along with it.
const arrivalsMax = 1_000_000

// users returns the users of n arrivals: small ones in turn, and so many large ones, evenly spread.
func (s *Scenario) users(n, large int) []int64 {
	users := make([]int64, n)
	for i := range users {
		users[i] = int64(i%SmallUsers) + 1
	}
	for i := range large {
		users[(2*i+1)*n/(2*large)] = s.Heavy
	}
	return users
}
