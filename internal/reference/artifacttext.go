package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// artifactText returns the artifact with one node a line.
func (e *Example) artifactText() string {
	var a struct {
		SchemaVersion json.RawMessage              `json:"schema_version"`
		PlanName      json.RawMessage              `json:"plan_name"`
		Capabilities  json.RawMessage              `json:"capabilities_required"`
		Nodes         []map[string]json.RawMessage `json:"nodes"`
		Outputs       json.RawMessage              `json:"outputs"`
		ExprTable     map[string]json.RawMessage   `json:"expr_table"`
		PredTable     map[string]json.RawMessage   `json:"pred_table"`
	}
	if err := json.Unmarshal(e.Artifact, &a); err != nil {
		panic(err) // a test has loaded the artifact
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"schema_version\": %s,\n  \"plan_name\": %s,\n", a.SchemaVersion, a.PlanName)
	if a.Capabilities != nil {
		fmt.Fprintf(&b, "  \"capabilities_required\": %s,\n", spaced(a.Capabilities))
	}
	b.WriteString("  \"nodes\": [")
	for i, n := range a.Nodes {
		fmt.Fprintf(&b, "%s\n    %s", comma(i), nodeText(n))
	}
	fmt.Fprintf(&b, "\n  ],\n  \"outputs\": %s", spaced(a.Outputs))
	writeTable(&b, "expr_table", a.ExprTable)
	writeTable(&b, "pred_table", a.PredTable)
	b.WriteString("\n}")
	return b.String()
}

// nodeText returns a node on one line, with its members in the order of the plan format.
func nodeText(n map[string]json.RawMessage) string {
	var members []string
	for _, name := range [...]string{"node_id", "op", "inputs", "params", "timeout_ms", "timeout", "on_error", "optional", "scheduling", "extensions"} {
		if value, ok := n[name]; ok {
			members = append(members, fmt.Sprintf("%q: %s", name, spaced(value)))
		}
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// writeTable writes a member with one entry a line, unless it has none.
func writeTable(b *strings.Builder, name string, table map[string]json.RawMessage) {
	if len(table) == 0 {
		return
	}
	fmt.Fprintf(b, ",\n  %q: {", name)
	for i, id := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(b, "%s\n    %q: %s", comma(i), id, spaced(table[id]))
	}
	b.WriteString("\n  }")
}
