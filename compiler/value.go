package compiler

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/rankd/rankd/registry"
)

// value is a token: plan code has it in place of a value that is known only at run time. It implements
// goja.DynamicObject. One goroutine at a time.
type value struct {
	host  *host
	kind  kind
	name  string // "Key.id"; "" for what operators make
	tree  *tree  // unless it is opaque or broken
	truth bool   // a number that is 1 or 0 for true or false: of type bool
	// elements is number or text: what a set has.
	elements kind
	key      *registry.Key   // if it is a key
	param    *registry.Param // if it is a parameter
	at       int             // offset in the bundle of where it was made
}

// describe names the value in messages.
func (v *value) describe() string {
	switch {
	case v.name != "":
		return v.name
	case v.kind == number:
		return "this expression"
	case v.kind == predicate:
		return "this predicate"
	}
	return "this value"
}

// Get implements goja.DynamicObject: the members of a token.
func (v *value) Get(name string) goja.Value {
	h := v.host
	if v.kind == broken {
		switch name {
		case "then", "toJSON", "constructor":
			return nil
		}
		return h.brokenCall
	}
	switch name {
	case "in":
		return h.vm.ToValue(func(call goja.FunctionCall) goja.Value {
			site := h.callSite()
			return h.in(v, call.Argument(0), site.arg(0), site.start)
		})
	case "includes":
		if v.kind == set {
			return h.vm.ToValue(func(call goja.FunctionCall) goja.Value {
				site := h.callSite()
				return h.member(v, call.Argument(0), site.arg(0), site.start)
			})
		}
	case "then": // of a promise
		return nil
	case "constructor":
		h.lookAt("constructor", v, h.u.hereName(name))
		return h.brokenCall
	case "toJSON": // JSON.stringify asks for it first
		return h.vm.ToValue(func(goja.FunctionCall) goja.Value { h.lookAt("JSON.stringify", v, h.site()); return h.vm.ToValue("") })
	case "toString", "toLocaleString", "valueOf", "toFixed":
		return h.vm.ToValue(func(goja.FunctionCall) goja.Value { return h.convert(v, "string") })
	}
	hint := "expressions have one method: .in([1, 2])"
	written := textMethods[name]
	switch {
	case v.kind == set:
		hint = "a set has one method: .includes(x)"
	case v.kind.isText() && written != "":
		hint = "write " + fmt.Sprintf(written, short(v))
	}
	h.u.failAt(h.u.hereName(name), "unknown-method", v.describe()+" has no "+quote(name), hint)
	return h.brokenCall
}

// Set implements goja.DynamicObject.
func (v *value) Set(string, goja.Value) bool { return v.host.refuseSet(v.describe()) }

// Has implements goja.DynamicObject.
func (v *value) Has(name string) bool { return name == "in" }

// Delete implements goja.DynamicObject.
func (v *value) Delete(string) bool { return false }

// Keys implements goja.DynamicObject. Who asks for the members looks at the token.
func (v *value) Keys() []string {
	if v.kind != broken {
		v.host.lookAt("a list of members", v, v.host.u.here())
	}
	return nil
}

// refuseSet reports an assignment to a member of what the host owns.
func (h *host) refuseSet(what string) bool {
	h.u.failAt(h.u.here(), "read-only", what+" cannot be changed", "declare a variable: const x = ...")
	return true
}

// fixed reports that plan code gives what the host owns another prototype.
func (h *host) fixed(c goja.FunctionCall) goja.Value {
	if v := c.Argument(0); hosted(v) && tokenOf(v) == nil {
		what := plainWords(v)
		if m, ok := export[*members](v); ok {
			what = m.name
		}
		h.refuseSet(what)
	}
	return goja.Undefined()
}

// quiet writes NaN of doubles in an array buffer as elsewhere: the engine's has other bits.
func (h *host) quiet(c goja.FunctionCall) goja.Value {
	buffer, _ := c.Argument(0).Export().(goja.ArrayBuffer)
	for b := buffer.Bytes()[c.Argument(1).ToInteger():][:8*c.Argument(2).ToInteger()]; len(b) > 0; b = b[8:] {
		if f := math.Float64frombits(binary.NativeEndian.Uint64(b)); f != f {
			binary.NativeEndian.PutUint64(b, 0x7ff8<<48)
		}
	}
	return goja.Undefined()
}

// halves reports whether a JSON text has half a surrogate pair, which no string of Go holds.
func halves(text goja.String) bool {
	var units []rune // of UTF-16
	for i := 0; i < text.Length(); i++ {
		unit := rune(text.CharAt(i))
		if unit == '\\' && i+1 < text.Length() {
			if i++; text.CharAt(i) == 'u' && i+4 < text.Length() {
				if code, err := strconv.ParseUint(text.Substring(i+1, i+5).String(), 16, 16); err == nil {
					unit = rune(code)
					i += 4
				}
			}
		}
		units = append(units, unit)
	}
	for i := 0; i < len(units); i++ {
		if !utf16.IsSurrogate(units[i]) {
			continue
		}
		if i++; i == len(units) || utf16.DecodeRune(units[i-1], units[i]) == utf8.RuneError {
			return true
		}
	}
	return false
}

// make returns a new token as an object.
func (h *host) make(v *value) goja.Value {
	v.host = h
	return h.wrap(v)
}

func (h *host) wrap(d goja.DynamicObject) *goja.Object {
	object := h.vm.NewDynamicObject(d)
	_ = object.SetPrototype(h.prototype) // a dynamic object takes any prototype
	return object
}

// tokenOf returns the token that v is, or nil.
func tokenOf(v goja.Value) *value {
	t, _ := export[*value](v)
	return t
}

// export returns the host's object behind a value of plan code, or nil. It checks the type first, because goja
// exports any other object as a whole, with everything that it refers to.
func export[T any](v goja.Value) (t T, ok bool) {
	object, isObject := v.(*goja.Object)
	if !isObject || object.ExportType() != reflect.TypeFor[T]() {
		return t, false
	}
	t, ok = object.Export().(T)
	return t, ok
}

// boolean returns the value of a boolean.
func boolean(v goja.Value) (value, ok bool) {
	if _, isObject := v.(*goja.Object); isObject || v == nil {
		return false, false
	}
	value, ok = v.Export().(bool)
	return value, ok
}

// hosted reports whether the host made a value.
func hosted(v goja.Value) bool {
	object, ok := v.(*goja.Object)
	return ok && object.ExportType().Implements(reflect.TypeFor[goja.DynamicObject]())
}

// keyValue returns the token of a key.
func (h *host) keyValue(key *registry.Key) *value {
	v := &value{name: "Key." + key.Name, key: key}
	v.read(key.Type, "key_ref", map[string]any{"key_id": key.ID})
	if v.kind == textParam {
		v.kind = text
	}
	return v
}

// paramValue returns the token of a parameter.
func (h *host) paramValue(param *registry.Param) *value {
	v := &value{name: "P." + param.Name, param: param}
	v.read(param.Type, "param_ref", map[string]any{"param_id": param.ID})
	if v.kind == textParam {
		v.tree = needsTypes(v.tree)
	}
	return v
}

// read sets the kind and the tree of a key or a parameter.
func (v *value) read(typ registry.Type, op string, members map[string]any) {
	v.tree = leaf(op, members)
	switch typ {
	case registry.Float:
		v.kind = number
	case registry.Int:
		v.kind, v.tree.whole = number, true
	case registry.Bool:
		v.kind, v.truth = number, true
	case registry.String:
		v.kind = textParam
	case registry.StringSet, registry.StringList:
		v.kind, v.elements, v.tree.typed = set, text, true
	case registry.IntList:
		v.kind, v.elements, v.tree.typed = set, number, true
	case registry.Vector:
		v.kind, v.tree.typed = vectorKey, true
	default:
		v.kind, v.tree = opaque, nil
	}
}

// plainWords describes a value of plan code for messages.
func plainWords(v goja.Value) string {
	if t := tokenOf(v); t != nil {
		if t.name != "" {
			return t.name + ", " + t.kind.String()
		}
		return t.kind.String()
	}
	if n, ok := export[*node](v); ok {
		return n.name()
	}
	if e, ok := export[*endpoint](v); ok {
		return e.describe()
	}
	switch {
	case v == nil || goja.IsUndefined(v):
		return "undefined"
	case goja.IsNull(v):
		return "null"
	case goja.IsString(v):
		return quote(v.String())
	case goja.IsBigInt(v):
		return v.String() + "n"
	case goja.IsNumber(v):
		return v.String()
	}
	if _, ok := goja.AssertFunction(v); ok {
		return "a function"
	}
	if object, ok := v.(*goja.Object); ok {
		switch {
		case object.ClassName() == "Array":
			return "an array"
		case isPromise(v):
			return "a promise"
		}
		return "an object"
	}
	return v.String()
}

// isPromise reports whether v is what an async function returns.
func isPromise(v goja.Value) bool {
	object, ok := v.(*goja.Object)
	return ok && object.ExportType() == reflect.TypeFor[*goja.Promise]()
}

// tree returns the tree of an operand of this kind, or nil after it has reported a fault at the
// offset. what names the operation.
func (h *host) tree(v goja.Value, want kind, nulls bool, at int, what string) *tree {
	if t := tokenOf(v); t != nil {
		switch {
		case t.kind == want, want == text && t.kind.isText():
			return t.tree
		case want == predicate && t.truth:
			return branch("cmp", map[string]any{"cmp": "!="}, memberNames(comparison("!=")), t.tree, constNumber(0))
		case t.kind == broken:
		default:
			h.wrongKind(t, want, at, what)
		}
		return nil
	}
	switch {
	case want == predicate:
		if b, ok := boolean(v); ok {
			return constBool(b)
		}
	case goja.IsNull(v) && nulls:
		return constNull()
	case want == text:
		if goja.IsString(v) {
			return constText(v.String())
		}
	case goja.IsNumber(v):
		f := v.ToFloat()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			h.u.failAt(at, "not-finite", "the constant "+v.String()+" in "+what+" is not finite", "artifacts hold finite numbers")
			return nil
		}
		return constNumber(f)
	}
	hint := "write a constant, a key, a parameter or an operation on them"
	_, isBool := boolean(v)
	if want == vectorKey {
		h.u.failAt(at, "type", what+" takes a vector, not "+plainWords(v), "write a key of type vector")
		return nil
	}
	if want == text {
		h.u.failAt(at, "type", what+" takes a string, not "+plainWords(v), textHint)
		return nil
	}
	switch {
	case isBool && (what == "operator ??" || what == "coalesce"):
		hint = "write x == null || x for x ?? true, and x != null && x for x ?? false"
	case goja.IsNull(v):
		hint = "arithmetic with null gives null in every row; coalesce(x, 0) replaces nulls"
	case goja.IsUndefined(v):
		hint = "a variable or an option has no value here: look for a misspelled name or a missing return"
	case goja.IsString(v):
		hint = "strings are for == on a string key, .in and regex"
	case goja.IsBigInt(v):
		hint = "write the number without n"
		if f, exact := new(big.Float).SetString(v.String()); !exact || f.MinPrec() > 53 {
			hint = "arithmetic is that of doubles, which do not have this integer: compare with it, as in Key.id == " + v.String() + "n"
		}
	case want == predicate:
		hint = "write a comparison, .in, regex or true or false"
	}
	h.u.failAt(at, "type", what+" takes "+want.String()+", not "+plainWords(v), hint)
	return nil
}

// textMethods are the methods of JavaScript's strings that have a counterpart, and how to write it.
var textMethods = map[string]string{
	"includes": `contains(%s, "new")`, "indexOf": `contains(%s, "new")`, "startsWith": `startsWith(%s, "new")`, "endsWith": `endsWith(%s, "new")`,
	"toLowerCase": `lower(%s)`, "toLocaleLowerCase": `lower(%s)`, "length": `length(%s)`, "concat": `%s + "new"`,
	"match": `regex(%s, "^new")`, "search": `regex(%s, "^new")`,
}

// textHint says which strings an operand may be.
const textHint = `write a string key, a string parameter or a string, as in contains(Key.title, P.query)`

// wrongKind reports a token where another kind belongs.
func (h *host) wrongKind(t *value, want kind, at int, what string) {
	hint := "write a comparison, as in Key.id > 5"
	switch {
	case want == text:
		hint = textHint
	case want == predicate && t.kind == number:
		hint = "compare it: " + short(t) + " != 0"
	case want == number && t.kind == predicate:
		hint = "write p ? 1 : 0 for it, or filter by it; a < x < b is a < x && x < b"
	case want == predicate && t.kind.isText():
		hint = "compare it: " + short(t) + ` != ""; for a || b of strings write a ?? b`
	case t.kind == text:
		hint = "strings are for " + short(t) + " == \"US\", .in([\"US\", \"CA\"]) and regex(" + short(t) + ", \"^U\")"
	case t.kind == madeText:
		hint = "strings are for == \"US\", .in([\"US\", \"CA\"]), length and the column of a string key"
	case t.kind == textParam:
		hint = "strings are for " + short(t) + " == \"US\", .in([\"US\", \"CA\"]) and the pattern of regex"
	case t.kind == set:
		hint = "write " + short(t) + ".includes(x)"
	case t.kind == vectorKey:
		hint = "write dot(" + short(t) + ", Key.other), cosine, l2 or norm"
	case want == vectorKey:
		hint = "write a key of type vector"
	case t.kind == opaque:
		hint = "expressions cannot read values of this type"
	}
	wanted := want.String()
	if want == text {
		wanted = "a string" // of any sort
	}
	h.u.failAt(at, "type", what+" takes "+wanted+", not "+article(t), hint)
}

// article describes a token after "not".
func article(t *value) string {
	if t.name == "" {
		return t.kind.String()
	}
	switch {
	case t.kind == opaque && t.key != nil:
		return t.name + " (a key of type " + t.key.Type.String() + ")"
	case t.kind == opaque && t.param != nil:
		return t.name + " (a parameter of type " + t.param.Type.String() + ")"
	}
	return t.name + " (" + strings.TrimPrefix(strings.TrimPrefix(t.kind.String(), "a "), "an ") + ")"
}

// short writes a token in a hint.
func short(t *value) string {
	if t.name != "" {
		return t.name
	}
	return "x"
}

// result returns the token for a tree, or a broken one after it has reported that it is too large.
func (h *host) result(kind kind, t *tree, at int) goja.Value {
	if why := t.tooLarge(); why != "" {
		h.u.failAt(at, "too-large", why, "compute a part into a column with .vm first")
		h.u.stop()
		return h.broken
	}
	return h.make(&value{kind: kind, tree: t, at: at})
}
