//go:build race

package rowset_test

// raceDetector: with it a sync.Pool drops things at random, so allocations vary.
const raceDetector = true
