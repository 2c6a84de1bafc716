// Package expr, which is not covered by the compatibility promise, parses the expression and predicate trees
// of a plan, compiles them once, and evaluates them a column at a time over the active rows of a RowSet, with
// the null rules of the plan format.
//
// An expression gives each row a double or null, and cannot fail. A predicate
// gives each row true or false. Some of its leaves fail when a row reaches them.
// and and or stop early, row by row, so a leaf that no row reaches cannot fail.
//
// One table (Operators) has each operation: its name, operands, types, kernel, value for one row, and how plans
// write it. The parser, the compiler of plans, the types for editors, the reference and the tests are made from it.
//
// So a new operator that computes a number is one row of operators.go, and one case of the naive evaluator in
// reference_test.go. Then go test ./internal/reference ./compiler -update writes the pages. A kernel makes it faster.
//
//	            as the artifact has it   compiled      running
//	expression  expr.go                  exprcode.go   exprrun.go
//	predicate   pred.go                  predcode.go   predrun.go
//	its leaves                           leaf.go       leafrun.go
//
//	JSON tree
//	  │ Language.ParseExpr, ParsePred    once per plan
//	nodes: the tree as written, for Explain
//	  │ simplified, compiler
//	code: instructions in postfix order, constants folded; tests; leaves
//	  │ bind(batch, params)     once per call
//	bindings: per instruction null, a scalar, a column, or "to compute"
//	  │ eval, test              once per chunk
//	registers of 1024 rows, masks of 1024 bits
//
// Binding simplifies the tree for one request. The coalesce of id * coalesce(param, 0.2) becomes a scalar, and one
// multiplication per row remains. A chunk's registers fit the L1 cache, so an operation costs about as much as its
// arithmetic.
//
// Instructions compute doubles. Tests read integers, strings and sets as leaves, exactly. The
// condition of an if is a test inside an instruction, so one evaluator runs both.
//
// Positions 0 to 1023 number the rows of a chunk in the active list. Kernels read the columns of a dense row set in
// place, and first gather the columns of any other. Explain compiles the tree as it stands, with a probe after each
// part, and runs this code for one row. So an explanation has what the evaluator computes, and skips what it skips.
//
// A predicate takes a mask of positions to look at and returns the mask of those
// that are true, so and, or and not are operations on words. If less than a quarter
// of the positions is left, the predicate compacts them and skips the rest.
//
// An evaluation that is no longer wanted stops between chunks (chunks.advance), and within a chunk before the next
// string is matched with a pattern. Patterns come from requests, so their length, their character classes and their
// compiled size are bounded: neither compiling a pattern nor one match holds a worker for long. A match of a long
// string checks at intervals whether to stop.
package expr
