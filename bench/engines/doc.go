// Package engines makes engines into targets of a load: it reads what a user
// writes after --engines and opens what was asked for on a Redis.
package engines
