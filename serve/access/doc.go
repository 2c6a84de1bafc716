// Package access, which is not covered by the compatibility promise, decides who may ask a server for what.
//
//	file of tokens ─▶ Store ─▶ Lookup(token) ─▶ *Caller ─▶ May, MayPlan, MayOverride
//	                    ▲                          │
//	                 Reload                      Renew, once a request on a long connection
//
// A [Store] knows a [Caller] by the digest of its token. The file holds only digests, so a copy of it gives access to
// nothing. Without a file everybody is one anonymous caller, whose rights come from flags. [Certificates] are the
// server's other secret that changes while it runs.
//
// The package knows neither sockets nor engines. No error and no printed form of its types quotes
// a token, a digest or a key.
package access
