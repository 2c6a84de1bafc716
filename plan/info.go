package plan

import "github.com/rankd/rankd/registry"

// Info describes a plan for people and tools (--print-plan-info). Immutable once
// built; any goroutine.
type Info struct {
	Name    string     `json:"plan_name"`
	Digest  string     `json:"digest"` // hex SHA-256 of the artifact
	Nodes   []NodeInfo `json:"nodes"`  // in the plan's order
	Sources []string   `json:"sources"`
	Outputs []string   `json:"outputs"`
	// OutputNames are the names of Outputs, in order; nil: they have none.
	OutputNames []string `json:"output_names,omitempty"`
	// MinRows is how few rows each output should have, in order, 0: any number; and Below what happens otherwise.
	MinRows []int  `json:"min_rows,omitempty"`
	Below   string `json:"below,omitempty"`
	// Resident are the names of the plans whose rows nodes read from the engine's memory; nil: they read none.
	Resident []string `json:"resident,omitempty"`
}

// Fallback returns the name of the plan that answers if this one has too few rows, "" if there is none.
func (i *Info) Fallback() string { return Below(i.Below).Plan() }

// NodeInfo describes one node. Immutable once built; any goroutine.
type NodeInfo struct {
	ID       string         `json:"node_id"`
	Op       string         `json:"op"`
	Inputs   []string       `json:"inputs"`
	Refs     []string       `json:"refs,omitempty"` // ids of nodes in parameters
	Deps     int            `json:"deps"`           // completions that the node waits for
	UsedBy   []string       `json:"used_by"`        // one entry per edge
	Output   bool           `json:"output"`
	Params   map[string]any `json:"params,omitempty"` // defaults filled in
	Timeout  int64          `json:"timeout_ms,omitempty"`
	Inline   *bool          `json:"inline,omitempty"`
	CostHint int64          `json:"cost_estimate_us,omitempty"`
	OnError  string         `json:"on_error,omitempty"`         // "empty", "skip", "partial", "null" or "fallback"; empty for "fail"
	AutoWhy  string         `json:"on_error_because,omitempty"` // why the plan's policy chose on_error, or why it left "fail"
	Share    string         `json:"timeout,omitempty"`          // of what is left of the request's time: "40%"
	AnswerBy string         `json:"answer_by,omitempty"`        // the share of the request's time after which the plan gives the node up
	Fallback string         `json:"fallback,omitempty"`         // id of the node that runs if this one fails
	Optional bool           `json:"optional,omitempty"`
	Ahead    []string       `json:"reads_ahead_for,omitempty"` // ids of later nodes for which this one reads, too
	// SourceSpan is the place in the plan's source, "plans/x.plan.ts:14:9", and ExprSpan the place
	// of the expression or predicate.
	SourceSpan string `json:"source_span,omitempty"`
	ExprSpan   string `json:"expr_span,omitempty"`
}

// Info returns the description of g.
func (g *Graph) Info() Info {
	info := Info{
		Name: g.Name, Digest: g.Digest,
		Nodes:   make([]NodeInfo, len(g.Nodes)),
		Sources: g.ids(g.Sources), Outputs: g.ids(g.Outputs), OutputNames: g.OutputNames, Resident: g.Resident,
	}
	info.MinRows, info.Below = g.MinRows, string(g.Below)
	for i, n := range g.Nodes {
		info.Nodes[i] = NodeInfo{
			ID: n.ID, Op: n.Op,
			Inputs: g.ids(n.Inputs), Refs: g.ids(n.Refs), Deps: n.Deps, UsedBy: g.ids(n.Succs), Output: n.IsOutput,
			Params:  n.paramInfo(),
			Timeout: n.Timeout.Milliseconds(), Inline: n.Inline, CostHint: n.CostHint.Microseconds(),
			SourceSpan: n.SourceSpan, ExprSpan: n.ExprSpan,
			Optional: n.Optional, AutoWhy: n.AutoWhy, Share: n.Share.String(), AnswerBy: n.AnswerBy.String(),
		}
		for _, later := range n.Ahead {
			info.Nodes[i].Ahead = append(info.Nodes[i].Ahead, later.ID)
		}
		if n.Lenient() {
			info.Nodes[i].OnError = n.OnError.String()
		}
		if n.Fallback != nil {
			info.Nodes[i].Fallback = n.Fallback.ID
		}
	}
	return info
}

func (g *Graph) ids(nodes []int) []string {
	ids := make([]string, len(nodes))
	for i, node := range nodes {
		ids[i] = g.Nodes[node].ID
	}
	return ids
}

func (n *Node) paramInfo() map[string]any {
	params := n.Params.info()
	if n.Trace != "" {
		params["trace"] = n.Trace
	}
	return params
}

// info returns the values by name.
func (p *NodeParams) info() map[string]any {
	params := make(map[string]any, len(p.values)+1)
	for i := range p.values {
		value := &p.values[i]
		if !value.schema.List {
			params[value.schema.Name] = value.info()
			continue
		}
		items := make([]any, len(value.items))
		for k := range items {
			items[k] = value.items[k].info()
		}
		params[value.schema.Name] = items
	}
	return params
}

// info returns the value of a parameter that is not a List, or one item of a List.
func (v *paramValue) info() any {
	switch v.schema.Type {
	case Int:
		if given, ok := v.object.(*RequestInt); ok {
			info := map[string]any{"param": given.Param.Name, "max": given.Most}
			if given.HasDefault {
				info["default"] = given.Default
			}
			return info
		}
		return v.i
	case Float:
		return v.f
	case Bool:
		return v.b
	case Key:
		if key, ok := v.object.(*registry.Key); ok {
			return key.Name
		}
		return nil
	case Object:
		if fields, ok := v.object.(*NodeParams); ok {
			return fields.info()
		}
		return nil
	default:
		return v.s
	}
}
