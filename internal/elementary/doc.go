// Package elementary has the functions of JavaScript's Math that take more than a few operations of the processor:
// exponentials, logarithms, powers, roots, and functions of angles. Constants of plans and rows are computed by them.
//
// Each result is the double nearest to the true value or, rarely, its neighbor: the error is below 0.55 units in the
// last place. A result that is a double is exact: Log10 of 1000, Log2 of a power of two, Cbrt of a cube. Pow of 10 and
// an integer is the double that its literal means. Special values are those of ECMAScript.
//
// The bits are the same on every processor. There is no assembly, and a compiler may not fuse a product with a sum:
// a conversion rounds each product. math.FMA, which rounds once on every processor, finds what a product loses.
//
// # Methods
//
// Exp and Log reduce their argument by a table, and add a short polynomial to an entry (P. T. P. Tang, Table-driven
// implementation of the exponential function in IEEE floating-point arithmetic, ACM TOMS 15, 1989; of the logarithm
// function, ACM TOMS 16, 1990). The entry is the larger by far, so the last addition makes nearly the whole error.
// The polynomials are those of Taylor, on intervals so short that the next term does not count.
//
// The other functions are computed as pairs: sums of two doubles, of at least 60 bits (T. J. Dekker, A floating-point
// technique for extending the available precision, Numerische Mathematik 18, 1971; Y. Hida, X. S. Li, D. H. Bailey,
// Algorithms for quad-double precision floating point arithmetic, ARITH-15, 2001). They, too, add a short polynomial to
// an entry of a table, by the theorem of addition of the function. So only what is near to the entry in size needs the
// second double, and no result a second attempt. An angle loses its multiple of π/128 in two steps, of which a fused
// multiplication makes the first exact (W. J. Cody, W. Waite, Software manual for the elementary functions, 1980).
// Angles of more than 2^19 are reduced by the bits of 128/π that matter (M. H. Payne, R. N. Hanek, Radian reduction for
// trigonometric functions, SIGNUM Newsletter 18, 1983). testdata/tables.py makes the tables by arithmetic of 1,400 bits,
// and golden.py of elementarytest makes what tests compare with.
package elementary
