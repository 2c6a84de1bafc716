package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
)

// TestOutputNames: a plan may name its outputs, each once.
func TestOutputNames(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, c := range []struct {
		name, names, capability string
		want                    []string
		err                     string
	}{
		{name: "none", capability: plan.OutputNamesCapability},
		{name: "two", names: `["home", "_deals2"]`, capability: plan.OutputNamesCapability, want: []string{"home", "_deals2"}},
		{name: "the longest", names: `["a", "` + long + `"]`, capability: plan.OutputNamesCapability, want: []string{"a", long}},
		{name: "without the capability", names: `["home", "deals"]`, capability: plan.ReturnsCapability,
			err: `t.plan.json: output_names: needs "cap.rankd.output_names.v1" in capabilities_required`},
		{name: "no array", names: `"home"`, capability: plan.OutputNamesCapability, err: "output_names: must be an array of strings, not"},
		{name: "no string", names: `["home", 1]`, capability: plan.OutputNamesCapability, err: "output_names[1]: must be a string, not"},
		{name: "too few", names: `["home"]`, capability: plan.OutputNamesCapability, err: "output_names: must name each of the 2 outputs, and has 1 name"},
		{name: "too many", names: `["a", "b", "c"]`, capability: plan.OutputNamesCapability, err: "output_names: must name each of the 2 outputs, and has 3 names"},
		{name: "twice", names: `["home", "home"]`, capability: plan.OutputNamesCapability, err: `output_names[1]: "home" is there twice`},
		{name: "empty", names: `["home", ""]`, capability: plan.OutputNamesCapability, err: `output_names[1]: "" must be 1 to 64 letters, digits and _, and begin with no digit`},
		{name: "a digit first", names: `["1st", "b"]`, capability: plan.OutputNamesCapability, err: `output_names[0]: "1st" must be`},
		{name: "a blank", names: `["a b", "b"]`, capability: plan.OutputNamesCapability, err: `output_names[0]: "a b" must be`},
		{name: "a line end", names: `["a\n", "b"]`, capability: plan.OutputNamesCapability, err: `output_names[0]: "a\n" must be`},
		{name: "too long", names: `["x` + long + `", "b"]`, capability: plan.OutputNamesCapability, err: `output_names[0]: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			names := ""
			if c.names != "" {
				names = `"output_names": ` + c.names + ","
			}
			g, err := plan.Load("t.plan.json", fmt.Appendf(nil, `{"schema_version": 1, "plan_name": "t", %s "capabilities_required": [%q],
				"nodes": [{"node_id": "s", "op": "fixed_source", "inputs": [], "params": {"row_count": 3}}], "outputs": ["s", "s"]}`, names, c.capability), testOps(), testRegistry(t))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, g.OutputNames)
			assert.Equal(t, c.want, g.Info().OutputNames)
		})
	}
}
