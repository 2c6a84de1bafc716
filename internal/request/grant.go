package request

import "slices"

// Grant is one field of a request that needs the permission of the engine and, behind a front, of the caller's entry.
type Grant uint8

// The grants, by the name of the field.
const (
	GrantScheduling Grant = iota // "scheduling"
	GrantTrace                   // "trace"
	GrantExplain                 // "explain"
	GrantNow                     // "now"
	GrantTraffic                 // "traffic"

	// GrantCount is the number of grants.
	GrantCount
)

var grantNames = [GrantCount]string{GrantScheduling: "scheduling", GrantTrace: "trace", GrantExplain: "explain", GrantNow: "now", GrantTraffic: "traffic"}

// String returns the name of the field.
func (g Grant) String() string { return grantNames[g] }

// ParseGrant returns the grant with the name of a field.
func ParseGrant(name string) (g Grant, ok bool) {
	i := slices.Index(grantNames[:], name)
	return Grant(max(i, 0)), i >= 0
}

// Grants are the fields that a caller may set. Immutable once in use; any goroutine.
type Grants [GrantCount]bool

// Lacking returns a field that the request sets without a grant; ok is false if there is none.
func (all *Grants) Lacking(r *Request) (g Grant, ok bool) {
	for g := range GrantCount {
		if g.AskedBy(r) && !all[g] {
			return g, true
		}
	}
	return 0, false
}

// AskedBy reports whether the request sets the field.
func (g Grant) AskedBy(r *Request) bool {
	switch g {
	case GrantScheduling:
		return r.Scheduling != ""
	case GrantTrace:
		return r.Trace
	case GrantNow:
		return !r.Now.IsZero()
	case GrantTraffic:
		return r.Traffic != ""
	default:
		return r.Explain.Asked()
	}
}
