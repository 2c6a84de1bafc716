package scheduler

// This file exports checks of the internal tests to the external tests of all three engines.
var (
	RequireRows       = requireRows
	RequireNode       = requireNode
	OpenFDs           = openFDs
	AssertNothingLeft = assertNothingLeft
)

// RaceDetector is raceDetector.
const RaceDetector = raceDetector

// The bounds of what runs on the loop before it was measured, and without a wait.
const (
	FirstRowsMax  = firstRowsMax
	LoopRowsMax   = loopRowsMax
	LoopValuesMax = loopValuesMax
)
