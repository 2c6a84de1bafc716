package plan

import (
	"slices"

	"github.com/rankd/rankd/plan/expr"
)

// The capabilities that an artifact may require. None has a payload.
const (
	// capExtensions: artifacts may have extensions.
	capExtensions = "cap.rfc.0001.extensions_capabilities.v1"
	// MinRowsCapability: a plan may say how few rows an output should have. An engine that does not know it would answer
	// with fewer, and not say so.
	MinRowsCapability = "cap.rankd.min_rows.v1"
	// OnErrorCapability: nodes may say on_error and optional.
	OnErrorCapability = "cap.rankd.on_error.v1"
	// ReturnsCapability: a plan may say which columns go out. An engine that does not know it would send them all.
	ReturnsCapability = "cap.rankd.returns.v1"
	// LenientCapability: a plan may say what holds for all nodes that read from outside (lenient), and a node may have a
	// share of the time as its timeout.
	LenientCapability = "cap.rankd.lenient.v1"
	// LogCapability: a plan may say which values the log of served rows has. An engine that does not know it would log
	// others, private ones too.
	LogCapability = "cap.rankd.served_log.v1"
	// OutputNamesCapability: a plan may name its outputs. An engine that does not know it would show them as one list.
	OutputNamesCapability = "cap.rankd.output_names.v1"
)

// Capabilities returns the capabilities of this engine.
func Capabilities() []string {
	return []string{expr.Capability, LenientCapability, MinRowsCapability, OnErrorCapability, OutputNamesCapability, ReturnsCapability, LogCapability, capExtensions}
}

// supported reports whether this engine has a capability.
func supported(capability string) bool { return slices.Contains(Capabilities(), capability) }
