// Package enginetest opens engines for tests of the library, on a Redis with demo data, on tables and on plans of
// their own.
package enginetest
