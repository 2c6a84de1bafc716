package plan

import (
	"strings"

	"github.com/rankd/rankd/internal/jsondoc"
)

// Source is what the compiler of a plan knows beyond the artifact: how the source writes the values. Immutable once
// built; any goroutine.
type Source struct {
	// Words are the values that the source writes differently from the artifact, by their paths:
	// "nodes[2].params.out_key".
	Words map[string]Word
	// Draft says that nodes may be missing, so that Check looks only at those which are there.
	Draft bool
}

// Word is a value as the source writes it. Immutable; any goroutine.
type Word struct {
	Text string // "Key.score"
	// Foreign says that no artifact can hold the value. The artifact has a null instead, which is refused whatever
	// its type.
	Foreign bool
}

// nouns are the words of sources for what artifacts hold.
var nouns = map[string]string{
	Key.describe():        "a key",
	Endpoint.describe():   "an endpoint",
	NodeRef.describe():    "a candidate set",
	ExprID.describe():     "an expression",
	PredID.describe():     "a predicate",
	"an array of strings": "an array of candidate sets", // the inputs: no other list of a source can be wrong
	onErrorWant:           `"fail", "empty", "skip", "partial", "null" or a candidate set`,
}

// noun says what a value must be, as the author of the plan calls it.
func (s *Source) noun(want string) string {
	if noun, ok := nouns[want]; ok && s != nil {
		return noun
	}
	return want
}

// shown describes the value at a path as its author wrote it. inArtifact is how artifacts describe it.
func (s *Source) shown(path, inArtifact string) string {
	if s == nil {
		return inArtifact
	}
	if word, ok := s.Words[path]; ok {
		return word.Text
	}
	return strings.TrimPrefix(strings.TrimPrefix(inArtifact, "the integer "), "the number ")
}

// absent reports whether the value at a path says nothing.
func (s *Source) absent(path string, v *jsondoc.Value) bool {
	return v == nil || v.Kind == jsondoc.Null && (s == nil || !s.Words[path].Foreign)
}
