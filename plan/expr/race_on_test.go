//go:build race

package expr

// raceDetector says that the race detector is on. A sync.Pool then drops things at random, so
// allocations vary.
const raceDetector = true
