package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// TestReturns: a plan may choose the columns of its answer.
func TestReturns(t *testing.T) {
	for _, c := range []struct {
		name, returns, capability string
		want                      []registry.KeyID
		err                       string
	}{
		{name: "all columns", capability: plan.ReturnsCapability},
		{name: "two", returns: `"returns": [2002, 3001],`, capability: plan.ReturnsCapability, want: []registry.KeyID{2002, 3001}},
		{name: "none", returns: `"returns": [],`, capability: plan.ReturnsCapability, want: []registry.KeyID{}},
		{name: "without the capability", returns: `"returns": [2002],`, capability: plan.OnErrorCapability,
			err: `t.plan.json: returns: needs "cap.rankd.returns.v1" in capabilities_required`},
		{name: "no array", returns: `"returns": 2002,`, capability: plan.ReturnsCapability, err: "returns: must be an array of key ids, not"},
		{name: "no key id", returns: `"returns": ["score"],`, capability: plan.ReturnsCapability, err: "returns[0]: must be a key id, not"},
		{name: "beyond 32 bits", returns: `"returns": [4294967298],`, capability: plan.ReturnsCapability, err: "returns[0]: must be a key id, not"},
		{name: "a negative number", returns: `"returns": [-1],`, capability: plan.ReturnsCapability, err: "returns[0]: must be a key id, not"},
		{name: "an unknown key", returns: `"returns": [2002, 77],`, capability: plan.ReturnsCapability, err: "returns[1]: there is no key 77"},
		{name: "twice", returns: `"returns": [2002, 2002],`, capability: plan.ReturnsCapability, err: "returns[1]: key 2002 is there twice"},
		{name: "the id", returns: `"returns": [1],`, capability: plan.ReturnsCapability, err: "returns[0]: each row has its id: leave it out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := plan.Load("t.plan.json", fmt.Appendf(nil, `{"schema_version": 1, "plan_name": "t", %s "capabilities_required": [%q],
				"nodes": [{"node_id": "s", "op": "fixed_source", "inputs": [], "params": {"row_count": 3}}], "outputs": ["s"]}`, c.returns, c.capability), testOps(), testRegistry(t))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var got []registry.KeyID
			if g.Returns != nil {
				got = []registry.KeyID{}
			}
			for _, key := range g.Returns {
				got = append(got, key.ID)
			}
			assert.Equal(t, c.want, got)
		})
	}
}
