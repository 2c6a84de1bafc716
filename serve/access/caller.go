package access

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"sync/atomic"

	"github.com/rankd/rankd/internal/request"
)

// Rules say what a caller may ask. The zero value allows nothing. One goroutine at a time.
type Rules struct {
	// Name tells callers apart in logs and metrics: 1 to 64 letters, digits, ".", "_" and "-".
	Name string
	// Plans are patterns of the plans that the caller may name, as path.Match reads them: "feed_*".
	Plans []string
	// Overrides are patterns of the parameters that it may set in "param_overrides".
	Overrides []string
	// Grants are the fields that it may set.
	Grants []request.Grant
	// MaxInflight is how many requests of the caller may be under way at the same time. Zero means no bound.
	MaxInflight int
}

// Anonymous is the name of the caller without a token.
const Anonymous = "anonymous"

// Caller says who asks, and what it may ask. Immutable, except that the store marks a caller whose entry has changed,
// and that its requests under way are counted; any goroutine.
type Caller struct {
	name             string
	plans, overrides patterns
	granted          request.Grants
	maxInflight      int64
	inflight         *atomic.Int64 // requests under way, of all entries that the token has had

	digest     [sha256.Size]byte // of its token; zero if it has none
	superseded atomic.Bool       // The file now has another entry for the token, or none.
}

// nameForm is the form of names. It limits what logs and metrics show of a file.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// NewCaller returns a caller without a token. The error says what is wrong with the rules, and quotes nothing
// of them.
func NewCaller(r Rules) (*Caller, error) {
	if !nameForm.MatchString(r.Name) {
		return nil, errors.New("name must be 1 to 64 letters, digits, \".\", \"_\" or \"-\"")
	}
	if r.MaxInflight < 0 {
		return nil, errors.New("max_inflight must not be negative")
	}
	c := &Caller{
		name: r.Name, plans: slices.Clone(r.Plans), overrides: slices.Clone(r.Overrides),
		maxInflight: int64(r.MaxInflight), inflight: new(atomic.Int64),
	}
	if err := errors.Join(c.plans.check("plans"), c.overrides.check("overrides")); err != nil {
		return nil, err
	}
	for _, g := range r.Grants {
		c.granted[g] = true
	}
	return c, nil
}

// Name returns the name of the caller.
func (c *Caller) Name() string { return c.name }

// Number tells callers with tokens apart, and stays the same when their rights change. It is zero without a token.
func (c *Caller) Number() uint64 { return binary.LittleEndian.Uint64(c.digest[:]) }

// Granted returns the fields of a request that the caller may set.
func (c *Caller) Granted() *request.Grants { return &c.granted }

// MayPlan reports whether the caller may ask for the plan.
func (c *Caller) MayPlan(plan string) bool { return c.plans.match(plan) }

// MayOverride reports whether the caller may set the parameter in "param_overrides".
func (c *Caller) MayOverride(param string) bool { return c.overrides.match(param) }

// Begin counts a request of the caller. If as many are under way as the caller may have, Begin counts nothing and
// reports false. Each Begin that succeeds needs one End, on the same Caller.
func (c *Caller) Begin() bool {
	if c.inflight.Add(1) > c.maxInflight && c.maxInflight > 0 {
		c.inflight.Add(-1)
		return false
	}
	return true
}

// End says that a request of the caller is no longer under way.
func (c *Caller) End() { c.inflight.Add(-1) }

// sameRights reports whether both may ask the same under the same name.
func (c *Caller) sameRights(other *Caller) bool {
	return c.name == other.name && c.granted == other.granted && c.maxInflight == other.maxInflight &&
		slices.Equal(c.plans, other.plans) && slices.Equal(c.overrides, other.overrides)
}

// patterns are checked patterns of path.Match.
type patterns []string

func (p patterns) check(field string) error {
	for i, pattern := range p {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%s: pattern %d is malformed; it has letters, \"*\", \"?\" and sets such as [a-z]", field, i+1)
		}
	}
	return nil
}

// match reports whether some pattern matches the name. It allocates nothing.
func (p patterns) match(name string) bool {
	for _, pattern := range p {
		if pattern == "*" {
			return true
		}
		if ok, _ := path.Match(pattern, name); ok { // check has refused what is malformed
			return true
		}
	}
	return false
}

// Format prints the name of the caller, for every verb: a digest must not be in a log.
func (c *Caller) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.name) }
