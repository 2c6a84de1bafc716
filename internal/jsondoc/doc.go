// Package jsondoc reads one strict JSON document into a tree that keeps what
// the plan and request formats distinguish and encoding/json does not: integer
// literals from floats, signed from unsigned ones, case-sensitive names,
// duplicate names, and the byte offset of each value and of the first fault.
//
// The grammar is RFC 8259 to the letter, tokenized by jsontext: no comments, no
// NaN, no trailing comma, no raw control character in a string, no escape of
// half a surrogate pair, no invalid UTF-8. On top of it stand four limits, so
// that a hostile document costs its sender more than its reader: nesting
// (MaxDepth), values (MaxValues), numbers (each must fit a double), and nothing
// but white space after the document.
package jsondoc
