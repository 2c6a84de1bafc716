// Package registry holds what plans refer to by number or id: keys (columns),
// params (values that a request may set) and endpoints (where I/O goes).
//
// The tables are TOML files in one folder; a set with the defaults is embedded.
//
//	keys.toml               one [[key]] per column, the same in every environment
//	params.toml             one [[param]] per request parameter, likewise
//	endpoints.<env>.toml    one [[endpoint]] per endpoint of dev, test or prod
//
// A column also has a short form, name = "type", in a table named after the entity that has the column. A parameter
// has one in the tables context and overrides. Their ids are in the file registry.lock, which [Lock] writes: an id is
// never given twice.
//
// Loading is fail-closed. It reads every endpoints file in the folder, not only the
// one of its environment, because ids, names and kinds must agree: a plan that loads
// in dev must load in prod. Load reports all problems at once, each with file and
// entry. It lists the first 20 and counts the rest.
//
// An endpoint names its server by url, or by host and port: see [ParseServer]. Its password is in the table, in a
// file or in the environment; a [Secret] hides it in everything that is printed. Loading does not read passwords, so
// that tables can be checked where they are missing. Registry.ReadSecrets reads them.
//
// A table is a regular file of at most 1 MiB. Loading first compares its text with the struct of its rows
// (checkShape), so that a problem names line and field, and then decodes it. Key 1 is the row id, and its name must
// be id, as in responses. Names are unique, so no column can be a second id in a candidate.
//
// docs/glossary.md explains the words that this package shares with others.
package registry
