//go:build race

package scheduler

// raceDetector: with it a seed of the simulation takes ten times as long.
const raceDetector = true
