package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/registry"
)

// This file says what is wrong with a value, for artifacts and for the sources of plans. Each text follows the name of the
// value: "must be 1 to 5, not 7". It is empty if nothing is wrong.

// IntFault says why an Int is out of its bounds. shown is how the value is written.
func (r *SourceRule) IntFault(i int64, shown string) string {
	return boundsFault(r.Min, r.Max, i, shown)
}

// FloatFault says why a Float is out of its bounds.
func (r *SourceRule) FloatFault(f float64) string {
	return boundsFault(r.FloatMin, r.FloatMax, f, fmt.Sprint(f))
}

func boundsFault[T cmp.Ordered](least, most *T, value T, shown string) string {
	switch {
	case least != nil && most != nil && (value < *least || value > *most):
		return fmt.Sprintf("must be %v to %v, not %s", *least, *most, shown)
	case least != nil && value < *least:
		return fmt.Sprintf("must be at least %v, not %s", *least, shown)
	case most != nil && value > *most:
		return fmt.Sprintf("must be at most %v, not %s", *most, shown)
	}
	return ""
}

// TextFault says why a String or an Enum is not one of OneOf. A nil text is not a string. shown is how the value is written.
func (r *SourceRule) TextFault(text *string, shown string) string {
	if r.OneOf == nil || text != nil && slices.Contains(r.OneOf, *text) {
		return ""
	}
	quoted := make([]string, len(r.OneOf))
	for i, each := range r.OneOf {
		quoted[i] = excerpt.Quote(each)
	}
	return fmt.Sprintf("must be %s, not %s", listed(quoted), shown)
}

// KeyFault says why a key of the registry does not fit. shown is how the key is written.
func (r *SourceRule) KeyFault(key *registry.Key, shown string) string {
	switch {
	case r.Writes && !key.Writable:
		return fmt.Sprintf("must be a key that the task may write, and %s is read-only", shown)
	case r.KeyTypes != nil && !slices.Contains(r.KeyTypes, key.Type):
		types := make([]string, len(r.KeyTypes))
		for i, t := range r.KeyTypes {
			types[i] = t.String()
		}
		return fmt.Sprintf("must be a key of type %s, not %s of type %s", listed(types), shown, key.Type)
	}
	return ""
}

// ItemsFault says why a list must not have so many items.
func ItemsFault(least, most, count int) string {
	if least <= count && count <= most {
		return ""
	}
	return fmt.Sprintf("must have %d to %d items, not %d", least, most, count)
}

// listed writes: a, b or c.
func listed(all []string) string {
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " or " + all[last]
	}
	return strings.Join(all, "")
}
