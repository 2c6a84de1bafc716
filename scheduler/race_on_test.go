//go:build race

package scheduler

// raceDetector says that the race detector is on. A seed of the simulation then takes ten times
// as long.
const raceDetector = true
