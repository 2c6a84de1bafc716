// Package cli is "rankd serve": its flags, and the life of the server.
//
//	flags ─▶ engine, tokens, certificates ─▶ listen ─▶ ready ─▶ SIGTERM: not ready ─▶ drain delay
//	                                                      ─▶ stop accepting ─▶ answer what is in flight ─▶ close
//
// The fronts and the service know nothing of flags and signals; this package builds them and passes them what they
// need. flags.go has the flags and their checks. address.go says where to listen, server.go builds the parts, and
// life.go runs them. reload.go reads tokens and certificates again.
package serve
