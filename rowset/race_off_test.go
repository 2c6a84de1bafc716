//go:build !race

package rowset_test

const raceDetector = false
