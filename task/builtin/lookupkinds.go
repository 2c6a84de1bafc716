package builtin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
)

// A lookupKind is what a lookup reads. Immutable; any goroutine.
type lookupKind struct {
	name    string
	command string
	reply   resp.Kind       // of the command; Bulk includes Null
	types   []registry.Type // of the column of `value`; nil: of any
	fields  bool            // it makes the columns of `fields`, instead of `value`
	asks    int             // about how many ids one command asks for, if one key serves all rows; 0: each id has a key
	absent  string          // the value if there is no key; "": none
	doc     string          // what becomes of it
}

// lookupKinds are what a lookup may read. A node without a kind reads the first kind with fields, or the first
// without.
var lookupKinds = [...]lookupKind{
	{name: "hash", command: "HMGET", reply: resp.Array, fields: true, doc: "the fields of the hash at the key"},
	{name: "json", command: "GET", reply: resp.Bulk, fields: true, doc: "values of the JSON document in the string at the key"},
	{name: "string", command: "GET", reply: resp.Bulk, doc: "the string at the key"},
	{name: "counter", command: "GET", reply: resp.Bulk, types: []registry.Type{registry.Int, registry.Float}, absent: "0",
		doc: "the number in the string at the key, as `INCR` keeps it; 0 if there is no key"},
	lengthKind("string", "STRLEN", "bytes of the string"),
	lengthKind("list", "LLEN", "entries of the list"),
	lengthKind("set", "SCARD", "members of the set"),
	lengthKind("sorted_set", "ZCARD", "members of the sorted set"),
	lengthKind("hash", "HLEN", "fields of the hash"),
	{name: "score", command: "ZMSCORE", reply: resp.Array, types: []registry.Type{registry.Float}, asks: memberCommandMax,
		doc: "the score of the row's id in the sorted set at the key"},
	{name: "member", command: "SMISMEMBER", reply: resp.Array, types: []registry.Type{registry.Bool}, asks: memberCommandMax,
		doc: "whether the row's id is in the set at the key"},
	{name: "bit", command: "GETBIT", reply: resp.Integer, types: []registry.Type{registry.Bool}, asks: 1,
		doc: "the bit of the string at the key whose offset is the row's id"},
}

func lengthKind(of, command, what string) lookupKind {
	return lookupKind{name: of + "_length", command: command, reply: resp.Integer, types: []registry.Type{registry.Int},
		doc: "the number of " + what + " at the key; 0 if there is no key"}
}

// lookupKindNames returns the names of the kinds.
func lookupKindNames() (names []string) {
	for i := range lookupKinds {
		names = append(names, lookupKinds[i].name)
	}
	return names
}

// lookupKindOf returns the kind of a node.
func lookupKindOf(p *plan.NodeParams) *lookupKind {
	name, fields := p.String("kind"), p.Given("fields")
	return &lookupKinds[slices.IndexFunc(lookupKinds[:], func(k lookupKind) bool { return k.name == name || name == "" && k.fields == fields })]
}

// lookupKindTable returns the kinds as the rows of a table in Markdown.
func lookupKindTable() string {
	var b strings.Builder
	b.WriteString("| `kind` | what it reads | parameter | types | Redis |\n|---|---|---|---|---|\n")
	for i := range lookupKinds {
		k := &lookupKinds[i]
		types := "any"
		if k.types != nil {
			types = k.typeNames()
		}
		b.WriteString("| `" + k.name + "` | " + k.doc + " | `" + k.param() + "` | " + types + " | `" + k.command + "` |\n")
	}
	return b.String()
}

// typeNames names the types that the column may have.
func (k *lookupKind) typeNames() string {
	var names []string
	for _, t := range k.types {
		names = append(names, t.String())
	}
	return strings.Join(names, " or ")
}

// takesType reports whether the column of `value` may have a type.
func (k *lookupKind) takesType(t registry.Type) bool {
	return k.types == nil || slices.Contains(k.types, t)
}

// param returns the parameter that names the columns.
func (k *lookupKind) param() string {
	if k.fields {
		return "fields"
	}
	return "value"
}

// keyCommand returns the command that reads keys with this prefix and suffix, of a hash these fields.
func (k *lookupKind) keyCommand(prefix, suffix string, fields []string) *resp.Template {
	return resp.NewKeyTemplate(k.command, prefix, suffix, fields...)
}

// shape identifies the meaning of a read into columns of these keys: see taskrun.RecallRule.
func (k *lookupKind) shape(keys []*registry.Key) string {
	shape := k.name + " "
	for _, key := range keys {
		shape += key.Type.String()
		if k.fields {
			shape += " " + strconv.Quote(key.Field) + ","
		}
	}
	return shape
}
