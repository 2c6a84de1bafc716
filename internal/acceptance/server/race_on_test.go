//go:build race

package endtoend

// raceDetector says whether this test was built with the race detector. The soak's server is
// then built with it, too.
const raceDetector = true
