// Package compare, which follows the engine's needs, measures several engines side by
// side and reports how they differ. Each report opens with the answer in one sentence:
// who is ahead, by how much, and where the lead stops. See Comparison.Answer.
//
//	for each condition, for each load:               a Point
//	    for each round:
//	        for each engine: warm up, measure        A B A B: drift affects all alike
//	    per engine: medians over rounds, all latencies merged, ratios to the first engine     a Cell
//
// # Statistics
//
// A throughput is the median over the rounds with the confidence interval of benchstat. It
// assumes no distribution: the bounds are order statistics of the sample
// (golang.org/x/perf/benchmath, AssumeNothing, 95 %). An interval needs at least six
// rounds; with fewer it is unknown and printed as ±∞.
//
// A ratio is the median of the ratios within each round, with its interval. Within a round
// the measurements of two engines are seconds apart, so slower noise cancels out. Two
// engines are level if the interval of their ratio contains 1.
//
// The latencies of all rounds go into one histogram, from which the percentiles come. So no
// bad round is hidden, and the maximum covers all requests.
//
// # The knee
//
// The knee of a sweep is the lowest concurrency whose throughput reaches 90 % of the best
// throughput in the sweep. Requests in flight beyond it mostly wait; the report says by how
// much the 99th percentile has grown at the end of the sweep. A sweep has no knee if only
// its last concurrency reaches 90 %. See Knee.
package compare
