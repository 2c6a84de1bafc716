// Package rowset holds candidate rows as columns.
//
// A Batch is immutable. It has ids and columns. A Column is of one of six kinds: float64, int64, bool and vectors of
// float32, each with validity, strings as places in a list, and string sets as codes into a dictionary. A RowSet is a batch and the
// ordered list of its active rows. filter, sort and take make a new list over the same batch. vm makes a new batch
// that shares all columns except those it writes. concat and the sources make new batches. No task copies a column to
// drop or reorder rows.
//
//	Batch (shared)                          RowSets over it
//	row   id    score   country             all      filter    sort     take 2
//	 0    11    0.3     0 ─┐ Dict           (nil)    [0,2,3]   [3,2,0]  [3,2]
//	 1    12    null    1 ─┤ "DE"             N=4      N=3       N=3      N=2
//	 2    13    0.9     0 ─┘ "US"
//	 3    14    1.5    -1 (null)
//
// An ascending list of rows is a selection vector, any other a permutation.
// A nil list means the first N rows in batch order, the densest form.
//
// Concat joins row sets, Gather makes a batch of any rows of another, Scatter spreads values of the active
// rows over their batch, With adds columns to a batch. Each takes all types of column; the assembly
// behind them does the work. A Builder makes a column row by row,
// from texts, from JSON or from values of Go; ParseInt and its siblings read the texts.
//
// Sort is the only long computation here: a Stop ends it early. SchemaDelta compares
// the columns of a node's inputs and result.
package rowset
