package plan

import (
	"fmt"

	"github.com/rankd/rankd/internal/errtext"
)

// Mode says which computing nodes run inline on the loop, and which run on the CPU pool. Empty means the engine's
// mode, which defaults to Adaptive. All modes give the same answers. Immutable; any goroutine.
type Mode string

// The modes.
const (
	// Adaptive runs a node inline if its predicted time is short. It hands each chain of other nodes to the pool as
	// one job.
	Adaptive Mode = "adaptive"
	// OffloadAll hands every computing node to the pool, one by one, and sorts in full even if a take follows.
	OffloadAll Mode = "offload_all"
	// InlineAll runs every permitted node inline, whatever it costs. It is for experiments: one heavy node holds up
	// all requests.
	InlineAll Mode = "inline_all"
)

// Check returns an error if m is not one of the modes. The error lists the modes, and follows the name of a setting.
func (m Mode) Check() error {
	switch m {
	case Adaptive, OffloadAll, InlineAll:
		return nil
	}
	return fmt.Errorf("must be adaptive, offload_all or inline_all, not %s", errtext.Quote(string(m)))
}

// TopK reports whether a sort that a take follows selects the first rows. Otherwise it sorts in full.
func (m Mode) TopK() bool { return m != OffloadAll }
