package devredis

import "strconv"

// Users is the number of users of the demo data set; their ids are 1 … Users.
const Users = 1000

const (
	listMin  = 4   // entries of a follow or recommendation list, at least
	listMax  = 120 // and at most
	mediaMax = 40  // entries of a media list, at most

	// mediaFirst is the smallest media id: far from user ids, so that a candidate's kind is obvious.
	mediaFirst = 100_000
)

// countries with their share in percent; the remaining users have no country. The order is part of the data set.
var countries = [...]struct {
	code  string
	share uint64
}{
	{"US", 33}, {"IN", 13}, {"BR", 10}, {"GB", 8}, {"DE", 7}, {"JP", 7}, {"FR", 5}, {"CA", 5},
	{"MX", 3}, {"ID", 2}, {"ES", 1}, {"NL", 1},
}

// user is one user of the data set.
type user struct {
	id              int
	name            string
	country         string // "" means that the hash has no such field
	follow          []string
	recommendations []string
	media           []string
}

// makeUser computes the user with that id, 1 … Users.
func makeUser(id int) user {
	u := user{id: id, name: "user " + strconv.Itoa(id)}
	u.country = country(id)
	follows := between(listMin, listMax, draw(id, 1))
	recommendations := between(listMin, listMax, draw(id, 2))
	if id == 1 { // the user of the demos
		u.country = "US"
		follows, recommendations = listMax, listMax
	}
	u.follow = userIDs(id, 3, follows)
	u.recommendations = userIDs(id, 4, recommendations)
	u.media = mediaIDs(id, between(listMin, mediaMax, draw(id, 5)))
	return u
}

func country(id int) string {
	percent := draw(id, 0) % 100
	for _, c := range countries {
		if percent < c.share {
			return c.code
		}
		percent -= c.share
	}
	return ""
}

// userIDs returns n different ids of users other than id: a walk around the
// circle of all users, in steps that share no factor with its length.
func userIDs(id int, stream uint64, n int) []string {
	start := draw(id, stream)
	steps := [...]uint64{1, 3, 7, 9} // last digits without factor 2 or 5
	step := draw(id, stream+100)%100*10 + steps[start>>32%4]
	ids := make([]string, 0, n)
	for at := start % Users; len(ids) < n; at = (at + step) % Users {
		if other := int(at) + 1; other != id {
			ids = append(ids, strconv.Itoa(other))
		}
	}
	return ids
}

// mediaIDs returns the n newest of the media ids that belong to a user.
func mediaIDs(id, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = strconv.Itoa(mediaFirst + id*mediaMax + mediaMax - 1 - i)
	}
	return ids
}

// between maps a random number to least … most, the small ones more often: few
// users follow many.
func between(least, most int, random uint64) int {
	const one = 1 << 32
	u := random % one
	return least + int(u*u/one*uint64(most-least+1)/one)
}

// draw returns the random number of a user and a stream: the finalizer of
// splitmix64 over the two and a fixed seed.
func draw(id int, stream uint64) uint64 {
	const seed = 0x72616e6b64 // "rankd"
	z := (seed+uint64(id))*0x9e3779b97f4a7c15 + stream*0xd1342543de82ef95
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
