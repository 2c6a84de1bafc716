package isolation

import (
	"context"
	"fmt"
	"strconv"

	"github.com/rankd/rankd/internal/devredis"
)

// The users of the data set.
const (
	SmallUsers = 1000 // ids from 1: the users of small requests; each follows four others and has four media
	mediaUser  = 2001 // follows mediaOwners, each with mediaEach media
	rowsUser   = 2002 // follows manyRows

	smallList   = 4
	mediaOwners = 500
	mediaEach   = 10_000
	mediaOwner1 = 10_001
	media1      = 10_000_000 // eight digits: 500 lists of 10,000 are 67 MiB of replies
	manyRows    = 400_000
	row1        = 1_000_001
)

// Load fills the server that text names with the users of the scenarios. The server is empty.
func Load(ctx context.Context, text string, scenarios []Scenario) error {
	err := devredis.Write(ctx, text, func(write func(command ...string) error) error {
		l := loader{write: write}
		for id := int64(1); id <= SmallUsers; id++ {
			var follows []string
			for k := range int64(smallList) {
				follows = append(follows, number((id+k*k+k)%SmallUsers+1))
			}
			l.user(id)
			l.list("follow:", id, follows)
			l.list("media:", id, numbers(100_000+id*smallList, smallList))
		}
		for _, s := range scenarios {
			l.user(s.Heavy)
			s.load(&l)
		}
		return l.err
	})
	if err != nil {
		return fmt.Errorf("load the data of the isolation scenarios: %w", err)
	}
	return nil
}

// loadMedia stores a user with so many owners of media, and their media.
func loadMedia(l *loader) {
	l.list("follow:", mediaUser, numbers(mediaOwner1, mediaOwners))
	for i := range int64(mediaOwners) {
		l.user(mediaOwner1 + i)
		l.list("media:", mediaOwner1+i, numbers(media1+i*mediaEach, mediaEach))
	}
}

// loadRows stores a user who follows very many, and those.
func loadRows(l *loader) {
	l.list("follow:", rowsUser, numbers(row1, manyRows))
	for i := range int64(manyRows) {
		l.user(row1 + i)
	}
}

// loader writes commands. It keeps the first error. One goroutine.
type loader struct {
	write func(command ...string) error
	err   error
}

func (l *loader) user(id int64) { l.add("HSET", "user:"+number(id), "country", "US") }

// list writes a list, in commands of at most 10,000 entries.
func (l *loader) list(prefix string, id int64, entries []string) {
	const most = 10_000
	for len(entries) > 0 {
		n := min(len(entries), most)
		l.add(append([]string{"RPUSH", prefix + number(id)}, entries[:n]...)...)
		entries = entries[n:]
	}
}

func (l *loader) add(words ...string) {
	if l.err == nil {
		l.err = l.write(words...)
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// numbers returns n numbers from first on.
func numbers(first int64, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = number(first + int64(i))
	}
	return all
}
