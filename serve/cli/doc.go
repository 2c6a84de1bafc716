// Package cli, which follows the engine's needs, is "rankd serve": its flags, and the
// life of the server.
//
//	flags ─▶ engine, tokens, certificates ─▶ listen ─▶ ready ─▶ SIGTERM: not ready ─▶ drain delay
//	                                                      ─▶ stop accepting ─▶ answer what is in flight ─▶ close
//
// The fronts and the service know nothing of flags and signals; this package builds them and passes them what
// they need. flags.go says which flags there are and what they must not be, address.go where to listen, server.go builds the
// parts, life.go runs them, reload.go reads tokens and certificates again.
package cli
