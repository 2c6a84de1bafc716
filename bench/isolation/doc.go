// Package isolation, which follows the engine's needs, measures what a large request costs its
// neighbours: small requests arrive at half of the engine's capacity, and five large ones come
// between them. Latency of the small ones counts from when they were due.
//
// One plan serves both kinds. The lists of its user decide which one a request is, so that an older
// build can run the same load.
package isolation
