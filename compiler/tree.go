package compiler

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/rankd/rankd/plan/expr"
)

// treeMaxNodes bounds the size of one expression. Plans that build an expression in a loop reach
// it; a shared part counts each time that it occurs.
const treeMaxNodes = 100_000

// A tree is an expression or a predicate of the IR. Parts are shared between trees. Immutable once
// built.
type tree struct {
	op      string
	members map[string]any // besides op and the operands
	names   []string       // of the operands
	args    []*tree
	nodes   int // of the tree
	depth   int
	typed   bool // needs expr.Capability
	whole   bool // a plain integer: a key, a parameter or a constant
	fails   bool // may fail when the plan runs: it matches a pattern from the request
}

// leaf returns a tree without operands.
func leaf(op string, members map[string]any) *tree {
	return &tree{op: op, members: members, nodes: 1, depth: 1}
}

// branch returns a tree with operands.
func branch(op string, members map[string]any, names []string, args ...*tree) *tree {
	t := &tree{op: op, members: members, names: names, args: args, nodes: 1}
	for _, arg := range args {
		t.nodes += arg.nodes
		t.depth = max(t.depth, arg.depth)
		t.typed = t.typed || arg.typed
		t.fails = t.fails || arg.fails
	}
	t.depth++
	return t
}

func constNumber(value float64) *tree {
	if value == 0 && math.Signbit(value) {
		return leaf("const_number", map[string]any{"value": json.RawMessage("-0.0")})
	}
	return leaf("const_number", map[string]any{"value": value})
}

// constWhole returns an integer that a double may not hold.
func constWhole(digits string) *tree {
	t := needsTypes(leaf("const_number", map[string]any{"value": json.RawMessage(digits)}))
	t.whole = true
	return t
}

func constText(value string) *tree {
	return needsTypes(leaf("const_string", map[string]any{"value": value}))
}

// needsTypes marks a new tree as one that needs expr.Capability.
func needsTypes(t *tree) *tree {
	t.typed = true
	return t
}

func constNull() *tree { return leaf("const_null", nil) }

func constBool(value bool) *tree { return leaf("const_bool", map[string]any{"value": value}) }

// tooLarge returns why an artifact cannot hold the tree, or "".
func (t *tree) tooLarge() string {
	switch {
	case t.depth > expr.MaxDepth:
		return fmt.Sprintf("the expression nests deeper than %d levels", expr.MaxDepth)
	case t.nodes > treeMaxNodes:
		return fmt.Sprintf("the expression has more than %d operations", treeMaxNodes)
	}
	return ""
}

// object returns the tree as a JSON object.
func (t *tree) object() map[string]any {
	object := map[string]any{"op": t.op}
	for name, value := range t.members {
		object[name] = value
	}
	for i, arg := range t.args {
		object[t.names[i]] = arg.object()
	}
	return object
}
