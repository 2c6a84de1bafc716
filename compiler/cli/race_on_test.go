//go:build race

package cli

// manyPlans is the size of a large folder. The race detector makes compilers ten times slower.
const manyPlans = 100
