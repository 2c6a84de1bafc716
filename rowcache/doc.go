// Package rowcache, which follows the engine's needs, keeps what was read from Redis in memory, so that a row that a
// request has read a moment ago is not read again for the next one.
//
// A Table belongs to one endpoint and to the loop. An entry is found by its key and by its Shape, which stands for what
// was read of the key: the command, its fields and their types. Its value is opaque bytes, in the form in which columns take
// them. An entry holds no memory of a request, and the table no pointers, so that the garbage collector never looks into it.
//
//	Get ──▶ index ──▶ entries in two rings: small (new ones) and main (those that were used again)
//	Put ──▶ small, or main if the key was here lately (ghost)
//
// The policy is S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023).
//
// # Reads and invalidations
//
// A server tells of changed keys on a connection of its own (resp.Tracker), and answers reads on others. The
// loop may read the two in any order. So whoever sends a read takes a Token before, and Put keeps the value only if the
// table has heard of no change of the key since:
//
//   - The server wrote the key before it answered the read: the value is new.
//   - It wrote the key after: its message is read after the Put, and drops the entry; or between Token and Put, and then
//     the stamp of the key is younger than the token, so that the value is not kept.
//
// No order between the connections is needed. Nothing is noted for a read in flight, so nothing is left behind when
// one fails or is cancelled. Two keys may have one stamp: then a value is not kept though it might be. A change of all keys goes by tokens, too,
// and not by time: the loop's time lags behind the clock by which reads are sent.
//
// A table that relies on a source (Table.Rely) finds nothing while the source is not trusted. So a value from memory is no older than the last change that
// the loop has read, and no older than what the source promises of silences. TestTrackingSimulation holds both.
//
// docs/glossary.md explains the words that this package shares with others.
package rowcache
