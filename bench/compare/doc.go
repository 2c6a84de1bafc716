// Package compare measures several engines side by side and says how they differ.
//
//	for each Redis latency, for each load:           a Point
//	    for each round:
//	        for each engine: warm up, measure        A B A B: what drifts, drifts for all
//	    per engine: medians over rounds, all latencies merged, ratios to the first engine     a Cell
//
// # Statistics
//
// A throughput is the median over the rounds, with the confidence interval that
// benchstat gives: no distribution is assumed, the bounds are order statistics of the
// sample (golang.org/x/perf/benchmath, AssumeNothing, 95 %). That takes at least
// six rounds; with fewer there is no interval, and it is printed as ±∞.
//
// A ratio is the median, with its interval, of the ratios within each round: two engines'
// turns in a round are seconds apart, so that noise which is slower than that cancels out.
//
// Latencies of all rounds go into one histogram before percentiles are taken, so
// that no bad round is hidden, and the maximum is that of all requests.
//
// # The knee
//
// Over a sweep of concurrencies the knee is the lowest at which throughput has got to
// 90 % of the best that any of them reached. What is in flight beyond it mostly waits; the
// report says by how much the 99th percentile has grown where the sweep ends. If the knee is
// the last concurrency of the sweep, there is none within it. See Knee.
package compare
