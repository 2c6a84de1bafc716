// Package engines, which is not covered by the compatibility promise, makes engines into targets of a load.
// It reads the engines that a user writes after --engines, and opens them with rankd.Open.
package engines
