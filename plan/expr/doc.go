// Package expr parses the expression and predicate trees of a plan, compiles
// them once, and evaluates them a column at a time over the active rows of a
// RowSet, with the null rules of the plan format.
//
// An expression gives each row a double or null, and cannot fail. A predicate
// gives each row true or false, and some of its leaves fail when a row reaches
// them; and, or stop early, row by row, so a leaf that no row reaches is silent.
//
//	JSON tree
//	  │ ParseExpr, ParsePred    once per plan
//	code: instructions in postfix order, constants folded
//	  │ bind(batch, params)     once per call
//	bindings: per instruction null, a scalar, a column, or "to compute"
//	  │ eval, test              once per chunk
//	registers of 1024 rows, masks of 1024 bits
//
// Binding is where a request makes the tree smaller: in id * coalesce(param,
// 0.2) the coalesce becomes a scalar, whatever the request sets, and one
// multiplication a row is left. A chunk's registers fit the L1 cache, so an
// operation costs about as much as its arithmetic.
//
// Rows inside a chunk go by position 0 to 1023 in the active list. In a dense
// row set the columns are read in place; otherwise they are gathered first.
// A predicate takes a mask of positions to look at and returns those that are
// true, so and, or and not are operations on words. If few positions are left
// (below a quarter), they are moved together and the rest is not computed.
//
// An evaluation that is no longer wanted stops between chunks (chunks.advance),
// and within a chunk between the strings that a pattern is matched with.
// Patterns come from requests, so their length, their character classes and
// their compiled size are bounded: neither compiling one nor one match holds a
// worker for long. A match of a long string asks on its way whether to stop.
package expr
