package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
)

// fault says what is wrong with a value. Its text follows the name of the value: "must be 1 to 5, not 7". The zero
// value says that nothing is wrong. In the functions of this file, shown is the value as its author wrote it.
// Immutable.
type fault struct{ code, text string }

// boundsFault says why a number is out of its bounds.
func boundsFault[T cmp.Ordered](least, most *T, value T, shown string) fault {
	text := ""
	switch {
	case least != nil && most != nil && (value < *least || value > *most):
		text = fmt.Sprintf("must be %v to %v, not %s", *least, *most, shown)
	case least != nil && value < *least:
		text = fmt.Sprintf("must be at least %v, not %s", *least, shown)
	case most != nil && value > *most:
		text = fmt.Sprintf("must be at most %v, not %s", *most, shown)
	default:
		return fault{}
	}
	return fault{FaultRange, text}
}

// textFault says that a value, which may be no string, is not one of OneOf.
func (r *SourceRule) textFault(shown string) fault {
	quoted := make([]string, len(r.OneOf))
	for i, each := range r.OneOf {
		quoted[i] = errtext.Quote(each)
	}
	return fault{FaultEnum, fmt.Sprintf("must be %s, not %s", listed(quoted), shown)}
}

// keyFault says why a key of the registry does not fit.
func (r *SourceRule) keyFault(key *registry.Key, shown string) fault {
	switch {
	case r.Writes && !key.Writable:
		return fault{FaultKey, fmt.Sprintf("must be a key that the task may write, and %s is read-only", shown)}
	case r.KeyTypes != nil && !slices.Contains(r.KeyTypes, key.Type):
		types := make([]string, len(r.KeyTypes))
		for i, t := range r.KeyTypes {
			types[i] = t.String()
		}
		return fault{FaultKey, fmt.Sprintf("must be a key of type %s, not %s of type %s", listed(types), shown, key.Type)}
	}
	return fault{}
}

// itemsFault says why a list has too few or too many items.
func itemsFault(least, most, count int) fault {
	if least <= count && count <= most {
		return fault{}
	}
	return fault{FaultRange, fmt.Sprintf("must have %d to %d items, not %d", least, most, count)}
}

// listed writes: a, b or c.
func listed(all []string) string {
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " or " + all[last]
	}
	return strings.Join(all, "")
}
