// Package rowcache keeps values from Redis in memory, so that a row that one request has just read is not
// read again for the next one.
//
// A Table belongs to one endpoint and to the loop. An entry is found by its key and by its Shape, which identifies
// what was read of the key: the command, its fields and their types. Its value is opaque bytes, in the form that
// columns take. An entry holds no memory of a request, and the table no pointers, so that the garbage collector never
// looks into it.
//
//	Get ──▶ index ──▶ entries in two rings: small (new ones) and main (those that were used again)
//	Put ──▶ small, or main if the key was here lately (ghost)
//
// The policy is S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023).
//
// # Reads and invalidations
//
// A server reports changed keys on a separate connection (resp.Tracker), and answers reads on others. The loop may
// read the two in any order. So code that sends a read first takes a Token. Put keeps the value only if the table has
// not learned of a change of the key since then:
//
//   - The server wrote the key before it answered the read: the value is new.
//   - It wrote the key after: its message is read after the Put, and drops the entry; or between Token and Put, and then
//     the stamp of the key is younger than the token, so that the value is not kept.
//
// No order between the connections is needed. Nothing is noted for a read in flight, so nothing is left behind when
// it fails or is cancelled. If two keys share a stamp, a value may be dropped needlessly. A change of all keys uses
// tokens, too, and not time: the loop's time lags behind the clock by which reads are sent.
//
// A table that relies on a source (Table.Rely) finds nothing while the source is not trusted. So a value from memory
// is no older than the last change that the loop has read, and no older than the silence that the source allows.
// TestTrackingSimulation checks both.
//
// docs/glossary.md explains the words that this package shares with others.
package rowcache
