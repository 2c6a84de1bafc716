//go:build race

package endtoend

// raceDetector says whether this test was built with the race detector, which the soak's server then is, too.
const raceDetector = true
