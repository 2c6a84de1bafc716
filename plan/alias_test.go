package plan

import (
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func aliases(text string) (map[string]*Alias, error) {
	return ReadAliases(fstest.MapFS{AliasesFile: {Data: []byte(text)}})
}

func TestReadAliases(t *testing.T) {
	none, err := ReadAliases(fstest.MapFS{})
	require.NoError(t, err)
	assert.Empty(t, none)
	all, err := aliases("home = \"home_v7\"\nfeed = { a = \"feed_v1\", b = \"feed_v2\", b_share = 5 }\n[shop]\na = \"s1\"\nb = \"s2\"\nb_share = 0.5\nsalt = \"summer\"\n")
	require.NoError(t, err)
	assert.Equal(t, map[string]*Alias{
		"home": {Name: "home", A: "home_v7", Salt: "home"},
		"feed": {Name: "feed", A: "feed_v1", B: "feed_v2", BShare: 5, Salt: "feed"},
		"shop": {Name: "shop", A: "s1", B: "s2", BShare: 0.5, Salt: "summer"},
	}, all)
	for text, want := range map[string]string{
		"home = 5":                                         "home\": must be the name of a plan, or {",
		"home = \"../x\"":                                  "a and b: a plan name consists of",
		"\"a b\" = \"x\"":                                  "a plan name consists of",
		"home = { a = \"x\", b = \"y\" }":                  "b and b_share need each other",
		"home = { a = \"x\", b_share = 5 }":                "b and b_share need each other",
		"home = { a = 5 }":                                 "a must be a string",
		"home = { a = \"x\", b = \"y\", b_share = 101 }":   "b_share must be a number from 0 to 100",
		"home = { a = \"x\", b = \"y\", b_share = nan }":   "b_share must be a number from 0 to 100",
		"home = { a = \"x\", b = \"y\", b_share = \"5\" }": "b_share must be a number from 0 to 100",
		"home = { a = \"x\", share = 5 }":                  "has no member \"share\"; there are a, b, b_share and salt",
		"home = ":                                          "aliases.toml: ",
	} {
		_, err := aliases(text)
		require.ErrorContains(t, err, want, text)
		assert.ErrorContains(t, err, AliasesFile)
	}
}

// TestPositions checks the test vectors of docs/change-a-plan.md, by which programs in other
// languages find the same sides.
func TestPositions(t *testing.T) {
	for _, c := range []struct {
		salt, user string
		position   float64
	}{
		{"home", "1", 0.27622106652660405}, {"home", "42", 0.6798649201570877}, {"home", "4294967295", 0.9213336019837389}, {"home", "u-7", 0.08071895495079862}, {"", "", 0.4706878859045286}, {"summer", "42", 0.7353181186413037},
	} {
		assert.InDelta(t, c.position, (&Alias{Salt: c.salt}).position([]byte(c.user)), 0, "%q %q", c.salt, c.user)
	}
}

// TestSharesGrow: a share has about that part of the users. A larger share moves nobody out of
// b.
func TestSharesGrow(t *testing.T) {
	const users = 20_000
	was := make(map[string]bool)
	for _, share := range []float64{0, 0.1, 1, 5, 50, 99.9, 100} {
		a, n := &Alias{Name: "home", A: "x", B: "y", BShare: share, Salt: "home"}, 0
		for id := range users {
			user := strconv.Itoa(id)
			side, plan := a.Side([]byte(user))
			require.Equal(t, map[string]string{SideA: "x", SideB: "y"}[side], plan)
			require.False(t, was[user] && side == SideA, "user %s has left b", user)
			if was[user] = side == SideB; was[user] {
				n++
			}
		}
		assert.InDelta(t, share*users/100, n, 4*71, share) // four standard deviations of a coin
	}
	assert.Len(t, was, users)
	a, b := &Alias{A: "x", B: "y", BShare: 50, Salt: "one"}, &Alias{A: "x", B: "y", BShare: 50, Salt: "two"}
	same := 0
	for id := range users {
		sideA, _ := a.Side([]byte(strconv.Itoa(id)))
		sideB, _ := b.Side([]byte(strconv.Itoa(id)))
		if sideA == sideB {
			same++
		}
	}
	assert.InDelta(t, users/2, same, 4*71, "salts are independent")
}
