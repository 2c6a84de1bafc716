//go:build race

package server

// raceDetector says whether this test was built with the race detector. The soak's server is
// then built with it, too.
const raceDetector = true
