package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rankd/rankd/internal/devredis"
)

// The users of the data set.
const (
	smallUsers = 1000 // ids from 1: the users of small requests; each follows four others and has four media
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

// loadIsolation fills the server that text names with the users of the scenarios. The server is empty.
func loadIsolation(ctx context.Context, text string, scenarios []isolationScenario) error {
	err := devredis.Write(ctx, text, func(write func(command ...string) error) error {
		l := loader{write: write}
		for id := int64(1); id <= smallUsers; id++ {
			var follows []string
			for k := range int64(smallList) {
				follows = append(follows, number((id+k*k+k)%smallUsers+1))
			}
			l.user(id)
			l.list("follow:", id, follows)
			l.list("media:", id, numbers(100_000+id*smallList, smallList))
		}
		for _, s := range scenarios {
			l.user(s.heavy)
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

// isolationScenario is a kind of large request, and the bound that the small ones beside it have to keep.
// Immutable.
type isolationScenario struct {
	name, doc string
	plan      string // its text; its name is the scenario's
	heavy     int64  // the user of the large requests
	// maxP99 bounds the 99th percentile of the small ones.
	maxP99 time.Duration

	load func(*loader) // stores what the user reads
}

// isolationScenarios returns all scenarios, in the order in which they run.
func isolationScenarios() []isolationScenario {
	return []isolationScenario{
		{
			name: "large_replies", heavy: mediaUser, maxP99: 20 * time.Millisecond, load: loadMedia,
			doc: fmt.Sprintf("follow(%d) → media(%d): 67 MiB of replies to one batch", mediaOwners, mediaEach),
			plan: viewerPlan("large_replies", fmt.Sprintf(`
    {"node_id": "follow", "op": "core::follow", "inputs": ["viewer"], "params": {"endpoint": "ep_0001", "fanout": %d}},
    {"node_id": "media", "op": "core::media", "inputs": ["follow"], "params": {"endpoint": "ep_0001", "fanout": %d}}`,
				mediaOwners, mediaEach), "media"),
		},
		{
			name: "many_rows", heavy: rowsUser, maxP99: 5 * time.Millisecond, load: loadRows,
			doc: fmt.Sprintf("follow(%d): %d commands in one batch", manyRows, manyRows),
			plan: viewerPlan("many_rows", fmt.Sprintf(`
    {"node_id": "follow", "op": "core::follow", "inputs": ["viewer"], "params": {"endpoint": "ep_0001", "fanout": %d}}`,
				manyRows), "follow"),
		},
	}
}

// viewerPlan returns a plan of viewer, nodes, and a take of ten rows from the last of them.
func viewerPlan(name, nodes, last string) string {
	return fmt.Sprintf(`{"schema_version": 1, "plan_name": %q, "nodes": [
    {"node_id": "viewer", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},%s,
    {"node_id": "top", "op": "core::take", "inputs": [%q], "params": {"count": 10}}
], "outputs": ["top"]}`, name, nodes, last)
}

// arrivalsMax bounds the arrivals of a round, whose users go along with it.
const arrivalsMax = 1_000_000

// users returns the users of n arrivals: small ones in turn, and so many large ones, evenly spread.
func (s *isolationScenario) users(n, large int) []int64 {
	users := make([]int64, n)
	for i := range users {
		users[i] = int64(i%smallUsers) + 1
	}
	for i := range large {
		users[(2*i+1)*n/(2*large)] = s.heavy
	}
	return users
}
