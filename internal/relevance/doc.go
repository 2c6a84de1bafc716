// Package relevance says how good rankings are, by judgments: which rows are relevant to a request, and how much.
//
// [Read] reads judgments, [Parse] a measure by its name, and a [Table] has the means of measures over requests. Each formula names
// its source. Where tools differ, trec_eval 9.0.8 (NIST) is followed, and [Choices] has the other ways: testdata has what trec_eval says of
// generated judgments and rankings.
package relevance
