package peers

import "context"

// Store reads from Redis. Each call is one wave: its commands go out together, and
// it returns when all are answered. Any goroutine.
//
// A key that does not exist is an empty list or a user without country; a key of the
// wrong type is an error.
type Store interface {
	// ReadLists reads LRANGE of each list and fills in IDs.
	ReadLists(ctx context.Context, lists []Lists) error
	// ReadUsers reads HGETALL of each user and fills in Countries.
	ReadUsers(ctx context.Context, users []Users) error
	// Traffic counts what went to Redis since the store was opened.
	Traffic() Traffic
	// Close frees all that the store holds. Nothing may be in flight.
	Close()
}

// Lists are the lists prefix+id of some rows. One goroutine at a time.
type Lists struct {
	Prefix string
	Of     []int64 // the rows
	Fanout int     // entries to read of each list, at least 1

	// IDs are the ids in these lists, row after row, without entries that are not ids.
	IDs []int64
}

// Users are the users with these ids. One goroutine at a time.
type Users struct {
	IDs []int64

	Countries []Country // parallel to IDs
}

// Country is a user's field "country". Immutable.
type Country struct {
	Name  string
	Known bool // false if the user does not exist or has no such field
}

// Users are stored as hashes under this prefix, with this field.
const (
	userPrefix   = "user:"
	countryField = "country"
)

// wideWave is the number of commands from which a wave is worth a batch of its own, however
// many other waves are in flight.
const wideWave = 32

// listCommands returns the number of commands that read lists.
func listCommands(lists []Lists) (n int) {
	for i := range lists {
		n += len(lists[i].Of)
	}
	return n
}

func userCommands(users []Users) (n int) {
	for i := range users {
		n += len(users[i].IDs)
	}
	return n
}
