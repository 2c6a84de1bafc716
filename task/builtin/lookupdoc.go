package builtin

import "github.com/rankd/rankd/task"

// lookupReference documents lookup.
func lookupReference() task.Reference {
	return task.Reference{
		Text: "`lookup` reads one hash for each distinct id and makes a column of each of `fields`. The registry names the hash field of a key (`field`; the key's name if it does not) and " +
			"its type. With `value` in place of `fields` it reads a string for each id into one column.\n\n" +
			"The type says which texts are values: an int is a decimal integer of 64 bits; a float a finite decimal number; a bool `1`, `0`, `true` or `false`; a string any bytes. A string set is a " +
			"list with commas between its members, or a JSON array of strings. A value is missing if the key does not exist, if it lacks the field, if its text is not such a value (as " +
			"`nan`, `inf` and numbers out of range), or if the row is too old. `missing` says what becomes of it; `drop` drops a row if one of its values is missing.\n\n" +
			"`max_age` and `timestamp` leave out stale hashes: a row is too old if its timestamp is more than `max_age` before the arrival of the request, and also if it has none. " +
			"All its values are then missing.\n\n" +
			"The `key` may hold `{user}` and fields of the context besides `{id}`: see [candidates](candidates.md). `by` takes the id from a column: a lookup of `author:{id}` by `author_id` reads the authors of items.",
		Reads:  "the column of `by`, if given",
		Writes: "the columns of `fields`, or of `value`; a column of the input with such a key is replaced",
		Redis:  "One `HMGET`, or one `GET`, for each distinct id: up to 4,096 in one round trip.",
		Order:  "The rows keep their order and their places.",
		Nulls: "A row whose `by` is null has no key: its values are missing. All values of all rows are missing if a field of the context in the key is null. " +
			"A plan does not load if `missing` is `null` and a key is not nullable, or if it is `default` and a key has no default.",
		Empty:      "The result of an input without rows has none, and Redis is asked nothing.",
		Duplicates: "Rows with the same id are read once and get the same values.",
		Failures: "The node fails if a key is not a hash (with `value`: not a string; `on_error` `partial` drops the rows of that key and counts them), if Redis cannot be reached, and with `missing` `fail` at the first missing value, whose key and field the error names. " +
			"Otherwise a text that does not parse does not fail the node. It is counted: `malformed` of `--metrics`.",
		Example: task.Example{
			Plan: "ctx.candidates({ endpoint: redis, key: \"inbox:{user}\" })\n" +
				"  .lookup({ endpoint: redis, key: \"article:{id}\", fields: [Key.title, Key.likes], missing: \"drop\" })",
			Redis: []string{"RPUSH inbox:1 11 12 13", "HSET article:11 title 'Rain in June' likes 12", "HSET article:12 title 'Snow in May'",
				"HSET article:13 title 'Sun' likes 40"},
		},
	}
}
