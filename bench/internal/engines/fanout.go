package engines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// WithFanout returns the artifact with n as the fanout of every node that has
// one. It changes nothing else, and checks nothing else.
func WithFanout(artifact []byte, n int) ([]byte, error) {
	var doc map[string]any
	d := json.NewDecoder(bytes.NewReader(artifact))
	d.UseNumber() // numbers stay as they are written
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("set fanout: %w", err)
	}
	nodes, sound := doc["nodes"].([]any)
	for _, v := range nodes {
		node, isNode := v.(map[string]any)
		params, isParams := node["params"].(map[string]any)
		sound = sound && isNode && (isParams || node["params"] == nil)
		if params["fanout"] != nil {
			params["fanout"] = n
		}
	}
	if !sound {
		return nil, errors.New("set fanout: the document is not a plan")
	}
	return json.Marshal(doc)
}
