package builtin

import "github.com/rankd/rankd/task"

// candidatesReference documents candidates.
func candidatesReference() task.Reference {
	return task.Reference{
		Text: "`candidates` reads ids that something else has put into Redis: an inbox, a list of similar items, the most popular of a country. " +
			"A `key` without `{id}` makes it a source, which reads one key for the request. With `{id}` it reads one key for each row of its input, " +
			"and its result has the rows of all keys.\n\n" +
			"A key is as in Redis, with marks in it: `{user}` is the user of the request, `{id}` the id of a row, and another name a field of the request's " +
			"context that is an int, a string or a bool (`1` or `0`). Two braces stand for one, as in the hash tag `{{u:{user}}}`. A key has at most 512 bytes and 16 marks. " +
			"A string of the context brings at most 512 bytes.\n\n" +
			"The ids of a list come from its head, where `LPUSH` puts the newest. A sorted set gives the highest score first. `reverse` starts at the other end. " +
			"A set has no order: `candidates` reads it whole and takes the lowest ids.",
		Writes: "the column of `score`, if given; the result has no other columns, also none of the input",
		Redis: "One command for each key: `LRANGE`, `SMEMBERS`, `ZREVRANGE` or, with `reverse`, `ZRANGE`. A `limit` above 10,000 makes one command for each 10,000 " +
			"entries, so an entry may be there twice, or missing, if the key changes meanwhile. One round trip carries up to 4,096 commands, and " +
			"fewer if their entries could exceed the rows that the request may still make.",
		Order: "The keys follow the order of the input's rows. Within a key the rows follow the order of its list, or of its scores; Redis orders members of equal score by their bytes, descending, and " +
			"ascending with `reverse`. Ids of a set ascend.",
		Nulls: "A null field of the context, or one that the request lacks, makes no key. The result then has no rows. The column of `score` has no nulls.",
		Empty: "A key that does not exist has no entries. An input without rows gives a result without rows and asks Redis nothing.",
		Duplicates: "Each entry becomes a row: an id that is there twice, in one key or in two, has two rows. Rows of the input with the same id each bring the entries of its key. " +
			"[dedupe](dedupe.md) removes the duplicates.",
		Failures: "The node fails if a key has another type than `kind` (with `on_error` `partial` such a key has no entries, and the row that asked counts as dropped), if a string of the context is too long for a key, or if Redis cannot be reached. An entry that is not an integer of 64 bits, or " +
			"whose score is not finite, is dropped after the limit and counted: `malformed` of `--metrics`.",
		Example: task.Example{
			Plan:  "ctx.candidates({ endpoint: redis, key: \"inbox:{user}\", kind: \"sorted_set\", limit: 3, score: Key.score })",
			Redis: []string{"ZADD inbox:1 0.5 11 2.25 12 1.5 13 0.25 14 3 draft"},
		},
	}
}
