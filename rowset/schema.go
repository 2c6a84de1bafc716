package rowset

import (
	"slices"

	"github.com/rankd/rankd/registry"
)

// SchemaDelta says which columns a node took in and gave out. The lists hold the keys of columns of
// all types, ascending and without duplicates. They never hold the id. Immutable once built;
// any goroutine.
type SchemaDelta struct {
	NodeID  string
	In      []registry.KeyID // union over inputs and node references
	Out     []registry.KeyID
	New     []registry.KeyID // Out without In
	Removed []registry.KeyID // In without Out
}

// NewSchemaDelta compares the columns of a node's inputs and node references with the columns of
// its result. Each row set has a batch.
func NewSchemaDelta(nodeID string, inputs, refs []RowSet, out RowSet) SchemaDelta {
	d := SchemaDelta{NodeID: nodeID, Out: out.Batch.AppendKeys(nil)}
	for _, in := range inputs {
		d.In = in.Batch.AppendKeys(d.In)
	}
	for _, ref := range refs {
		d.In = ref.Batch.AppendKeys(d.In)
	}
	slices.Sort(d.In)
	d.In = slices.Compact(d.In)
	d.New = without(d.Out, d.In)
	d.Removed = without(d.In, d.Out)
	return d
}

// without returns those keys that drop lacks.
func without(keys, drop []registry.KeyID) (rest []registry.KeyID) {
	for _, k := range keys {
		if !slices.Contains(drop, k) {
			rest = append(rest, k)
		}
	}
	return rest
}
