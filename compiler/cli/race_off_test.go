//go:build !race

package cli

// manyPlans is the size of a large folder.
const manyPlans = 1000
