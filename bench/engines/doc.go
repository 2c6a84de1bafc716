// Package engines, which follows the engine's needs, makes engines into targets of a
// load. It reads the engines that a user writes after --engines, and opens them with
// rankd.Open.
package engines
