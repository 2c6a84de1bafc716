package scheduler

// Checks of this package's tests, for the external tests of all three engines.
var (
	RequireRows       = requireRows
	RequireNode       = requireNode
	OpenFDs           = openFDs
	AssertNothingLeft = assertNothingLeft
)

// RaceDetector is raceDetector.
const RaceDetector = raceDetector
