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
// with file and entry, but for those beyond the first 20, which are counted.
//
// A table is a regular file of at most 1 MiB. Key 1 is the row id and named id, as
// responses name it: as names are unique, no column can be a second id in a candidate.
package registry
