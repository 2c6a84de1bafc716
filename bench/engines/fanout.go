package engines

import (
	"encoding/json"
	"fmt"
)

// WithFanout returns the artifact with n as the fanout of every node that has
// one. It changes nothing else, and checks nothing else.
func WithFanout(artifact []byte, n int) ([]byte, error) {
	var doc, node, params map[string]json.RawMessage
	if err := json.Unmarshal(artifact, &doc); err != nil {
		return nil, fmt.Errorf("set fanout: %w", err)
	}
	var nodes []json.RawMessage
	if err := json.Unmarshal(doc["nodes"], &nodes); err != nil {
		return nil, fmt.Errorf("set fanout: nodes: %w", err)
	}
	for i, text := range nodes {
		node, params = nil, nil
		if err := json.Unmarshal(text, &node); err != nil {
			return nil, fmt.Errorf("set fanout: node %d: %w", i, err)
		}
		if node["params"] == nil {
			continue
		}
		if err := json.Unmarshal(node["params"], &params); err != nil {
			return nil, fmt.Errorf("set fanout: params of node %d: %w", i, err)
		}
		if _, has := params["fanout"]; !has {
			continue
		}
		params["fanout"] = fmt.Appendf(nil, "%d", n)
		node["params"] = mustMarshal(params)
		nodes[i] = mustMarshal(node)
	}
	doc["nodes"] = mustMarshal(nodes)
	return mustMarshal(doc), nil
}

// mustMarshal puts together what has just been taken apart.
func mustMarshal(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
