package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/pelletier/go-toml/v2"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

// AliasesFile is the file of a plan folder that gives plans second names. It need not exist.
const AliasesFile = "aliases.toml"

// AliasesBytesMax is how many bytes a file of aliases may have.
const AliasesBytesMax = 1 << 20

// Alias is a name under which requests ask for one of two plans: each user for the same one. Immutable once built; any goroutine.
type Alias struct {
	Name   string
	A, B   string  // names of plans; B is "" if all requests get A
	BShare float64 // percent of the users that get B, from 0 to 100
	Salt   string  // hashed together with the user; aliases with equal salts choose alike
}

// The sides of an Alias.
const (
	SideA = "a"
	SideB = "b"
)

// Side returns which plan of an alias a user gets, and its name. user is the id as text: the digits of an integer.
//
// The users of B are those whose position is below BShare percent, so a higher share moves none from B to A. The position of a
// user is the upper 53 bits of the 64-bit xxHash (XXH64, seed 0) of salt, ":" and user, by 2^53: from 0 to below 1. docs/change-a-plan.md has test vectors.
func (a *Alias) Side(user []byte) (side, plan string) {
	if a.B != "" && a.position(user)*100 < a.BShare {
		return SideB, a.B
	}
	return SideA, a.A
}

// String says which plans the alias stands for: "home_v7, and home_v8 for 5 % of the users".
func (a *Alias) String() string {
	if a.B == "" {
		return a.A
	}
	return fmt.Sprintf("%s, and %s for %v %% of the users", a.A, a.B, a.BShare)
}

// position returns a number from 0 to below 1.
func (a *Alias) position(user []byte) float64 {
	var room [128]byte
	text := append(append(append(room[:0], a.Salt...), ':'), user...)
	return float64(xxhash.Sum64(text)>>11) / (1 << 53)
}

// ReadAliases reads the AliasesFile of a folder. A folder without one has none. The error names the file and all that is wrong with it.
//
//	home = "home_v7"
//	feed = { a = "feed_v1", b = "feed_v2", b_share = 5 }
func ReadAliases(folder fs.FS) (map[string]*Alias, error) {
	text, err := fileio.Read(folder, AliasesFile, AliasesBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var given map[string]any
	if err == nil {
		err = toml.Unmarshal(text, &given)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AliasesFile, err)
	}
	all := make(map[string]*Alias, len(given))
	var bad []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		a, err := aliasOf(name, given[name])
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %s: %w", AliasesFile, errtext.Quote(name), err))
		}
		all[name] = a
	}
	return all, errors.Join(bad...)
}

// aliasOf returns the alias of a name for what the file says.
func aliasOf(name string, given any) (*Alias, error) {
	a := &Alias{Name: name, Salt: name}
	share := false
	switch given := given.(type) {
	case string:
		a.A = given
	case map[string]any:
		for member, value := range given {
			ok := false
			switch member {
			case "a":
				a.A, ok = value.(string)
			case "b":
				a.B, ok = value.(string)
			case "salt":
				a.Salt, ok = value.(string)
			case "b_share":
				share = true
				if n, isInt := value.(int64); isInt {
					value = float64(n)
				}
				a.BShare, ok = value.(float64)
				ok = ok && a.BShare >= 0 && a.BShare <= 100
			default:
				return nil, fmt.Errorf("has no member %s; there are a, b, b_share and salt", errtext.Quote(member))
			}
			if !ok {
				return nil, fmt.Errorf("%s must be %s", member, map[bool]string{true: "a number from 0 to 100", false: "a string"}[member == "b_share"])
			}
		}
	default:
		return nil, errors.New(`must be the name of a plan, or { a = "…", b = "…", b_share = 5 }`)
	}
	switch {
	case !isName(name):
		return nil, ErrBadName
	case !isName(a.A) || a.B != "" && !isName(a.B):
		return nil, fmt.Errorf("a and b: %w", ErrBadName)
	case (a.B != "") != share:
		return nil, errors.New("b and b_share need each other")
	}
	return a, nil
}

// Aliased refuses aliases whose plans are not there, or whose names are those of plans. has reports whether there is a plan of that name.
func Aliased(aliases map[string]*Alias, has func(name string) bool) error {
	var bad []error
	for _, name := range slices.Sorted(maps.Keys(aliases)) {
		a := aliases[name]
		if has(name) {
			bad = append(bad, fmt.Errorf("%s: %s is the name of a plan, too", AliasesFile, name))
		}
		for _, plan := range [...]string{a.A, a.B} {
			if plan != "" && !has(plan) {
				bad = append(bad, fmt.Errorf("%s: %s: there is no plan %s", AliasesFile, name, plan))
			}
		}
	}
	return errors.Join(bad...)
}

// Version says which plan has answered a request. Immutable; any goroutine.
type Version struct {
	Plan   string `json:"plan"`
	Digest string `json:"digest"` // of the plan: see Graph.Digest
	// Alias is what the request asked for, and Side says which of its two plans the user got: "a" or "b". Empty: the request named the plan.
	Alias string `json:"alias,omitempty"`
	Side  string `json:"side,omitempty"`
	// InsteadOf is the plan in whose place Plan has answered, since that had too few rows: see Below. Empty: it was asked for.
	InsteadOf string `json:"instead_of,omitempty"`
	// Services has the versions of models that model servers have answered with, by the id of the node that has asked. A version
	// that a table pins is not there, since GenerationDigest has it. Nil: there are none.
	Services map[string]string `json:"services,omitempty"`
	// Generation is the number of the generation with which the request began, and GenerationDigest its digest; "" if
	// not all plans were loaded then.
	Generation       uint64 `json:"generation"`
	GenerationDigest string `json:"generation_digest,omitempty"`
}
