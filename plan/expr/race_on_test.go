//go:build race

package expr

// raceDetector: with it a sync.Pool drops things at random, so allocations vary.
const raceDetector = true
