package task

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A request may have rows of both kinds: an id means a text only where the node's rows have texts.
func TestIDsOfANode(t *testing.T) {
	params := new(expr.Params)
	params.SetIDs(rowset.NewIDDict())
	of := func(kind registry.Type) *Ctx {
		return &Ctx{Node: &plan.Node{InputEntity: &registry.Entity{ID: kind}}, Params: params}
	}
	ids, err := of(registry.String).NumberIDs(nil, []byte("a"), []byte("b"))
	require.NoError(t, err)
	texts := of(registry.String).IDTexts()
	assert.Equal(t, []string{"a", "b"}, []string{texts.At(0), texts.At(1)})
	assert.Equal(t, "b", of(registry.String).IDText(ids[1]))
	for _, c := range []*Ctx{of(registry.Int), {Node: new(plan.Node), Params: params}, {Node: of(registry.String).Node, Params: new(expr.Params)}} {
		assert.Nil(t, c.IDTexts())
		assert.Equal(t, "1", c.IDText(1))
	}

	_, err = of(registry.String).NumberIDs(nil, make([]byte, 65<<20))
	require.ErrorIs(t, err, ErrTooManyRows)
	require.ErrorIs(t, err, rowset.ErrTooManyIDs)
	_, err = (&Ctx{Params: new(expr.Params)}).NumberIDs(nil, []byte("a"))
	require.ErrorIs(t, err, ErrInvalid)
}
