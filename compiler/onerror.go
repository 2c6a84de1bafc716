package compiler

import (
	"slices"

	"github.com/dop251/goja"

	"github.com/rankd/rankd/plan"
)

// onErrors are the words that the option onError takes.
var onErrors = []string{plan.OnErrorFail.String(), plan.OnErrorEmpty.String(), plan.OnErrorSkip.String(), plan.OnErrorPartial.String()}

// onError reads the option onError: a word, or the rows that take the place of the node's.
func (o *optionReader) onError(v goja.Value) {
	if fallback, ok := export[*node](v); ok && fallback.method != nil {
		o.node.onError, o.node.fallback = nil, fallback
		return
	}
	if !goja.IsString(v) || !slices.Contains(onErrors, v.String()) {
		o.fail("onError", true, "enum", "onError must be %s, or a candidate set, not %s", `write onError: "empty"`, listed(quoted(onErrors), "or"), plainWords(v))
		return
	}
	o.node.onError = v.String()
}

// optional reads the option optional.
func (o *optionReader) optional(v goja.Value) {
	b, ok := boolean(v)
	if !ok {
		o.wrong("optional", "true or false", v, "write optional: true")
		return
	}
	o.node.optional = b
}

func quoted(words []string) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = quote(word)
	}
	return all
}

// lenient reports whether the node says what happens if it fails, or is optional.
func (n *node) lenient() bool { return n.onError != nil || n.fallback != nil || n.optional }

// writeOnError adds what the node says of it to its object in the artifact.
func (n *node) writeOnError(object map[string]any) {
	switch {
	case n.fallback != nil:
		object["on_error"] = map[string]any{"fallback": n.fallback.id}
	case n.onError != nil:
		object["on_error"] = n.onError
	}
	if n.optional {
		object["optional"] = true
	}
}
