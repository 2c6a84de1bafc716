//go:build !race

package endtoend

const raceDetector = false
