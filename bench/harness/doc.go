// Package harness, which is not covered by the compatibility promise, is what the experiments of "rankd
// bench" have in common.
//
//	for each scenario:                          a load, a plan
//	    for each round:
//	        for each subject, in turn:          an engine, a front: a Sample     A B C, B C A, C A B: drift affects all alike
//	    per subject: medians, intervals, ratios to another subject               a Result
//	results ─▶ Verdicts, Sections of tables and charts ─▶ a Report ─▶ text, JSON, HTML
//
// An experiment declares its Figures: the name of each in JSON, how it is computed from the samples of the rounds, and its column.
// The rest is here. Each report opens with its answer in one sentence. Package cli has a file for each experiment.
//
// # Statistics
//
// A figure is the median over the rounds with the confidence interval of benchstat. It assumes no distribution: the bounds are order
// statistics of the sample (golang.org/x/perf/benchmath, AssumeNothing, 95 %). An interval needs at least six rounds; with fewer it
// is unknown and printed as ±∞.
//
// A ratio, or a difference, is the median of those within each round, with its interval. Within a round two subjects are measured
// seconds apart, so slower noise cancels out. Two subjects are level if the interval of their ratio contains 1.
//
// Latencies of all rounds may go into one histogram, from which percentiles come. So no bad round is hidden, and the maximum covers
// all requests.
//
// # The page
//
// The HTML page needs neither a network nor other files: it can be mailed, archived and printed. Apache ECharts draws its charts in
// the reader's browser. The folder echarts holds the build that goes into each page ("common": the usual charts, on a canvas),
// unchanged from the npm package echarts 6.1.0, with its license and notice. charts.go defines the charts by means of go-echarts.
package harness
