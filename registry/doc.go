// Package registry holds what plans refer to by number or id: keys (columns),
// params (values that a request may set) and endpoints (where I/O goes).
//
// The tables are TOML files in one folder; a set with the defaults is embedded.
//
//	keys.toml               one [[key]] per column, the same in every environment
//	params.toml             one [[param]] per request parameter, likewise
//	endpoints.<env>.toml    one [[endpoint]] per endpoint of dev, test or prod
//
// Loading is fail-closed. It reads every endpoints file that is there, not only
// the one of its environment, because ids, names and kinds have to agree: a plan
// that loads in dev must load in prod. All problems are reported at once, each
// with file and entry.
package registry
