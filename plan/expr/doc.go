// Package expr parses the expression and predicate trees of a plan, compiles
// them once, and evaluates them a column at a time over the active rows of a
// RowSet, with the null rules of the plan format.
//
// An expression gives each row a double or null, and cannot fail. A predicate
// gives each row true or false. Some of its leaves fail when a row reaches them.
// and and or stop early, row by row, so a leaf that no row reaches cannot fail.
//
//	JSON tree
//	  │ ParseExpr, ParsePred    once per plan
//	program: instructions in postfix order, constants folded
//	  │ bind(batch, params)     once per call
//	bindings: per instruction null, a scalar, a column, or "to compute"
//	  │ eval, test              once per chunk
//	registers of 1024 rows, masks of 1024 bits
//
// Binding makes the tree smaller for one request. In id * coalesce(param, 0.2)
// the coalesce becomes a scalar, and one multiplication a row remains. A chunk's
// registers fit the L1 cache, so an operation costs about as much as its arithmetic.
//
// Positions 0 to 1023 number the rows of a chunk in the active list. Kernels read
// the columns of a dense row set in place, and gather those of any other first.
// A predicate takes a mask of positions to look at and returns the mask of those
// that are true, so and, or and not are operations on words. If less than a quarter
// of the positions is left, the predicate compacts them and skips the rest.
//
// An evaluation that is no longer wanted stops between chunks (chunks.advance),
// and within a chunk before the next string that a pattern is matched with.
// Patterns come from requests, so their length, their character classes and
// their compiled size are bounded: neither compiling a pattern nor one match holds
// a worker for long. A match of a long string asks on its way whether to stop.
package expr
