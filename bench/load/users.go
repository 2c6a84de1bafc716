package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/rankd/rankd/internal/jsondoc"
)

// Users are the users of the requests of a load, and how they were chosen. Immutable.
type Users struct {
	Spec string `json:"spec"` // as ParseUsers reads it
	// IDs are the users in the order of the requests, which go round and round. They repeat where users
	// differ in popularity.
	IDs       []int64 `json:"-"`
	Different int     `json:"different"` // users among them
	// Name is the text of which users' ids are made, with {} in the place of the integer. Empty: they are integers.
	Name string `json:"name,omitempty"`
	// Requests are documents, as on stdin: the user k is that of the request k-1. Nil: users have nothing but their ids.
	Requests [][]byte `json:"-"`
}

// UsersMax bounds the ids, which go along with every round.
const UsersMax = 100_000

const (
	userMax = 1<<32 - 1
	zipf    = "zipf:"
	// zipfDraws is the number of requests after which a popular user's order repeats.
	zipfDraws = 1 << 16
	zipfMax   = 10 // of the exponent: more is one user
)

// ParseUsers reads users in one of the forms
//
//	1                one user
//	1,5-8            users in turn, ids and ranges
//	zipf:1.1,1-1000  users by popularity: the share of the k-th is proportional to k to the power of -1.1
//	zipf:1.1         all users by popularity
//	u-{1-1000}       users whose ids are strings, u-1 to u-1000; so may the others be written
//	ab-7,cd-8        users whose ids are strings, in turn
//
// All users are ids and ranges as in the second form, or empty if nobody knows them: the last form is an error then. The draws of a zipf are
// the same in every run.
func ParseUsers(text, all string) (Users, error) {
	exponent, popular := strings.CutPrefix(text, zipf)
	if popular && all != "" && !strings.Contains(text, ",") {
		text += "," + all
	}
	u, list := Users{Spec: text}, text
	if popular {
		var found bool
		if exponent, list, found = strings.Cut(text[len(zipf):], ","); !found {
			return Users{}, errors.New("popularity is written zipf:exponent,low-high, as in zipf:1.1,1-1000")
		}
	}
	if before, rest, found := strings.Cut(list, "{"); found {
		inner, after, closed := strings.Cut(rest, "}")
		if !closed || strings.ContainsAny(after, "{}") {
			return Users{}, fmt.Errorf("%q has not one pair of braces, as u-{1-1000} has", list)
		}
		u.Name, list = before+"{}"+after, inner
	}
	if u.Name == "" && !isNumbers(list) {
		return u.named(strings.Split(list, ","), exponent, popular)
	}
	seen := make(map[int64]bool)
	for field := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(field, "-")
		if !isRange {
			high = low
		}
		from, lowErr := strconv.ParseInt(low, 10, 64)
		to, highErr := strconv.ParseInt(high, 10, 64)
		if lowErr != nil || highErr != nil || from < 1 || to < from || to > userMax {
			return Users{}, fmt.Errorf("%q is neither an id nor a range of ids", field)
		}
		if to-from >= int64(UsersMax-len(u.IDs)) {
			return Users{}, fmt.Errorf("more than %d users", UsersMax)
		}
		for id := from; id <= to; id++ {
			u.IDs = append(u.IDs, id)
			seen[id] = true
		}
	}
	u.Different = len(seen)
	if !popular {
		return u, nil
	}
	return u.drawn(exponent)
}

// isNumbers reports whether a list has nothing but ids and ranges, or what looks like them.
func isNumbers(list string) bool {
	for field := range strings.SplitSeq(list, ",") {
		if strings.Trim(field, "0123456789-") != "" || strings.Count(field, "-") > 1 {
			return strings.HasPrefix(field, strings.TrimSuffix(zipf, ":")) // no user, but a slip of the pen
		}
	}
	return true
}

// named completes users whose ids are these texts.
func (u Users) named(texts []string, exponent string, popular bool) (Users, error) {
	documents := make([][]byte, len(texts))
	for i, id := range texts {
		if id == "" || strings.Contains(id, "}") || isNumbers(id) && strings.Contains(id, "-") {
			return Users{}, fmt.Errorf("%q stands among ids that are strings: it is empty, a range, or has a brace", id)
		}
		documents[i] = append(jsondoc.AppendString([]byte(`{"user_id":`), id), '}')
	}
	if u = u.Asking(documents); !popular {
		return u, nil
	}
	return u.drawn(exponent)
}

// Asking returns users who ask with these documents, in their order.
func (u Users) Asking(documents [][]byte) Users {
	u.Requests, u.IDs = documents, nil
	seen := make(map[string]bool)
	for i, text := range documents {
		u.IDs = append(u.IDs, int64(i+1))
		seen[string(text)] = true
	}
	u.Different = len(seen)
	return u
}

// drawn returns as many draws among the users as repeat after zipfDraws.
func (u Users) drawn(exponent string) (Users, error) {
	s, err := strconv.ParseFloat(exponent, 64)
	if err != nil || !(s > 1 && s <= zipfMax) {
		return Users{}, fmt.Errorf("the exponent of a zipf is a number above 1 and up to %d, not %q", zipfMax, exponent)
	}
	draws := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), s, 1, uint64(len(u.IDs)-1))
	ranked := u.IDs
	u.IDs = make([]int64, zipfDraws)
	seen := make(map[int64]bool)
	for i := range u.IDs {
		u.IDs[i] = ranked[draws.Uint64()]
		seen[u.IDs[i]] = true
	}
	u.Different = len(seen)
	return u, nil
}

// String says which users they are, in words for a report.
func (u Users) String() string {
	switch {
	case u.Different == 1:
		return "one user (" + u.Spec + ")"
	case strings.HasPrefix(u.Spec, zipf):
		return fmt.Sprintf("%d users by popularity (%s)", u.Different, u.Spec)
	default:
		return fmt.Sprintf("%d users in turn (%s)", u.Different, u.Spec)
	}
}
