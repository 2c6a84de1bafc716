package rowset

import (
	"cmp"

	"github.com/rankd/rankd/registry"
)

// A field is the key and the type of a column. Immutable.
type field struct {
	key registry.KeyID
	typ registry.Type
}

// sameFields reports whether both batches have the same floats and strings, and nothing else.
func (b *Batch) sameFields(o *Batch) bool {
	if len(b.Floats) != len(o.Floats) || len(b.Strings) != len(o.Strings) || b.rare != nil || o.rare != nil {
		return false
	}
	for i := range b.Floats {
		if b.Floats[i].Key != o.Floats[i].Key {
			return false
		}
	}
	for i := range b.Strings {
		if b.Strings[i].Key != o.Strings[i].Key {
			return false
		}
	}
	return true
}

// compare orders fields by type, and those of one type by key.
func (f field) compare(g field) int {
	return cmp.Or(cmp.Compare(f.typ, g.typ), cmp.Compare(f.key, g.key))
}

// fewFields is how many fields a list on the stack has room for.
const fewFields = 16

// appendFields appends the fields of all columns, grouped by type, each group ascending by key.
func (b *Batch) appendFields(dst []field) []field {
	for i := range b.Floats {
		dst = append(dst, field{b.Floats[i].Key, registry.Float})
	}
	for i := range b.Strings {
		dst = append(dst, field{b.Strings[i].Key, registry.String})
	}
	if b.rare == nil {
		return dst
	}
	for i := range b.rare.ints {
		dst = append(dst, field{b.rare.ints[i].Key, registry.Int})
	}
	for i := range b.rare.bools {
		dst = append(dst, field{b.rare.bools[i].Key, registry.Bool})
	}
	for i := range b.rare.sets {
		dst = append(dst, field{b.rare.sets[i].Key, registry.StringSet})
	}
	return dst
}
