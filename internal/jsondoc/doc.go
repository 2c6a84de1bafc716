// Package jsondoc reads one strict JSON document into a tree. The plan and request
// formats need distinctions that encoding/json loses, and the tree keeps them: integer
// literals and floats, signed and unsigned integers, case-sensitive names, duplicate
// names, and the byte offset of each value and of the first fault.
//
// The grammar is RFC 8259 to the letter, tokenized by jsontext: no comments, no NaN, no trailing comma, no raw
// control character in a string, no escape of half a surrogate pair, no invalid UTF-8. Four limits make a hostile
// document cost its sender more than its reader: nesting (MaxDepth), values (MaxValues), the range of numbers (each
// must fit a double), and only white space after the document.
//
// The package also has the other ways to read and write JSON: a Reader pulls values out of documents too large for a
// tree, a Scanner finds the ends of documents in a stream, and AppendString and its siblings write.
package jsondoc
