package trace

import (
	"fmt"

	"github.com/rankd/rankd/internal/errtext"
)

// Detail says how much is recorded about a request.
type Detail uint8

// The levels of detail, each with all of the one before.
const (
	Off       Detail = iota // nothing
	JustNodes               // how each node ran; no tracks, flows and timers
	Full                    // what each thread and connection did
)

var detailNames = [...]string{"off", "nodes", "full"}

// String returns the name of the level.
func (d Detail) String() string { return detailNames[d] }

// ParseDetail returns the level of that name. The error says which names there are, and fits behind the name of a
// setting.
func ParseDetail(name string) (Detail, error) {
	for i, known := range detailNames {
		if name == known {
			return Detail(i), nil
		}
	}
	return 0, fmt.Errorf("must be off, nodes or full, not %s", errtext.Quote(name))
}
