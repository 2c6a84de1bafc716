package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task/builtin"
)

// TestOutages: for each endpoint, the nodes that fail the request without it, and the outputs that could not have
// their rows.
func TestOutages(t *testing.T) {
	reg, err := registry.Load(fstest.MapFS{
		"keys.toml": {Data: []byte("[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n[[key]]\nid = 10\nname = \"country\"\ntype = \"string\"\nnullable = true\nwritable = true\n")}, "params.toml": {Data: []byte("")},
		"endpoints.dev.toml": {Data: []byte("[[endpoint]]\nid = \"ep_0001\"\nname = \"market\"\nkind = \"redis\"\nhost = \"127.0.0.1\"\nport = 1\n[[endpoint]]\nid = \"ep_0002\"\nname = \"users\"\nkind = \"redis\"\nhost = \"127.0.0.1\"\nport = 2\n")},
	}, "dev")
	require.NoError(t, err)
	source := func(id, ep string, limit int, more string) string {
		return of(id, "candidates", "", fmt.Sprintf(`"endpoint": %q, "key": "k:%s", "limit": %d`, ep, id, limit), more)
	}
	both := of("u", "concat", "m", `"rhs": "s"`, "")
	for _, c := range []struct {
		name, policy string
		least        int
		nodes        []string
		want         []string
	}{
		{"a plan that says nothing", `null`, 0, []string{source("m", "ep_0001", 5, ""), source("s", "ep_0002", 7, ""), both}, []string{"market: m fails", "users: s fails"}},
		{"sources that never suffice", `{"on_error": "auto"}`, 13, []string{source("m", "ep_0001", 5, ""), source("s", "ep_0002", 7, ""), both}, []string{"always: 0 has 12 of 13"}},
		{"auto", `{"on_error": "auto"}`, 0, []string{source("m", "ep_0001", 5, ""), source("s", "ep_0002", 7, ""), both}, nil},
		{"one that is forgotten", `{"timeout_ms": 9}`, 0, []string{source("m", "ep_0001", 5, `, "on_error": "empty"`), source("s", "ep_0002", 7, ""), both}, []string{"users: s fails"}},
		{"too few rows remain", `{"on_error": "auto"}`, 6, []string{source("m", "ep_0001", 5, ""), source("s", "ep_0002", 7, ""), both}, []string{"users: 0 has 5 of 6"}},
		{"a page of too few rows", `{"on_error": "auto"}`, 4, []string{source("m", "ep_0001", 5, ""), source("s", "ep_0002", 7, ""), of("c", "concat", "m", `"rhs": "s"`, ""), of("u", "take", "c", `"count": 2, "offset": 2`, "")}, nil},
		{"an exclude", `{"on_error": "auto"}`, 0, []string{source("m", "ep_0001", 5, ""), of("u", "exclude", "m", `"endpoint": "ep_0002", "key": "seen:{user}"`, "")}, []string{"users: u fails"}},
		{"an exclude that fails open", `{"on_error": "auto"}`, 5, []string{source("m", "ep_0001", 5, ""), of("u", "exclude", "m", `"endpoint": "ep_0002", "key": "seen:{user}", "fail_open": true`, "")}, []string{"market: 0 has 0 of 5"}},
		{"a lookup", `{"on_error": "auto"}`, 5, []string{source("m", "ep_0001", 5, ""), of("u", "lookup", "m", `"endpoint": "ep_0002", "key": "p:{id}", "value": "country"`, "")}, []string{"market: 0 has 0 of 5"}},
		{"a fallback elsewhere", `{"timeout_ms": 9}`, 5, []string{source("s", "ep_0002", 5, ""), source("u", "ep_0001", 9, `, "on_error": {"fallback": "s"}`)}, nil},
		{"a fallback at the same endpoint", `{"timeout_ms": 9}`, 0, []string{source("s", "ep_0001", 5, ""), of("t", "take", "s", `"count": 2`, ""), source("u", "ep_0001", 9, `, "on_error": {"fallback": "t"}`)}, []string{"market: s fails"}},
		{"a fallback of too few rows", `{"timeout_ms": 9}`, 6, []string{source("s", "ep_0002", 5, ""), source("u", "ep_0001", 9, `, "on_error": {"fallback": "s"}`)}, []string{"market: 0 has 5 of 6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			artifact := fmt.Sprintf(`{"schema_version": 1, "plan_name": "p", "nodes": [%s], "outputs": ["u"], "lenient": %s, "min_rows": [%d], "capabilities_required": ["cap.rankd.lenient.v1", "cap.rankd.min_rows.v1", "cap.rankd.on_error.v1"]}`, strings.Join(c.nodes, ","), c.policy, c.least)
			if c.least == 0 {
				artifact = strings.Replace(artifact, `, "min_rows": [0]`, "", 1)
			}
			artifact = strings.Replace(artifact, `, "lenient": null`, "", 1)
			g, err := plan.Load("p", []byte(artifact), builtin.Catalog(), reg)
			require.NoError(t, err)
			var got []string
			for _, o := range g.Outages() {
				if o.Endpoint == nil {
					o.Endpoint = &registry.Endpoint{Name: "always"}
				}
				for _, n := range o.Fatal {
					got = append(got, fmt.Sprintf("%s: %s fails", o.Endpoint.Name, n.ID))
				}
				for _, s := range o.Short {
					got = append(got, fmt.Sprintf("%s: %s has %d of %d", o.Endpoint.Name, s.Output, s.Rows, s.MinRows))
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}
